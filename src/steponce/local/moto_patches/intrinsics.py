"""
A call of an intrinsic function, `States.Format('it\\'s {}', $['n'][0])`, and the text that one makes.

moto reads the call as the JSON of the definition has it, with JSON's own escapes, and knows none of the
language's four. Of a path it takes one step in brackets after each dot, and drops the next ones in silence,
as it drops what follows `$.gr` in `$.größe`, and `-id` in `$.order-id`. So each path is handed to it as a
name that its lexer takes, which knows no null either, and what it cannot read is refused.
Its `States.JsonToString` writes six characters for each that is not in ASCII, so a text in another alphabet
grew threefold and passed the limit of a state.

Source: Reserved characters in intrinsic functions, Step Functions Developer Guide.
"""

from __future__ import annotations

import json
import re
from typing import Any

from moto.stepfunctions.parser.asl.component.intrinsic.argument.argument import (
    ArgumentContextPath,
    ArgumentJsonPath,
    ArgumentLiteral,
)
from moto.stepfunctions.parser.asl.component.intrinsic.function.statesfunction.generic.string_format import (
    StringFormat,
)
from moto.stepfunctions.parser.asl.component.intrinsic.function.statesfunction.json_manipulation import (
    json_to_string,
)
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.parse.asl_parser import ASLParserException, SyntaxErrorListener
from moto.stepfunctions.parser.asl.parse.intrinsic import intrinsic_parser
from moto.stepfunctions.parser.asl.parse.intrinsic.preprocessor import Preprocessor

_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPE_OR_BRACES = re.compile(r"\\.?|\{\}|[{}]", re.DOTALL)
_ESCAPED = "'{}\\"
# Text in quotes, or to the end of a call that moto refuses; null; and a path of input or context object.
_QUOTED_OR_PATH = re.compile(
    r"""'(?:[^'\\]|\\.)*'?|(?<![\w$.-])null(?![\w-])"""
    r"""|(\$\$?)(?=[.\[])((?:[^\s,()\[\]'"]|\["""
    r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\[\]'"]"""
    r"""|\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\[\]'"])*\])*\])+)""",
    re.DOTALL,
)
_STAND_IN = ".path"
_NULL = "$" + _STAND_IN
_CONTROLS = {control: 0xFDD0 + control for control in range(32)}
"""moto's lexer takes no control character. The 32 code points from U+FDD0 on are no characters."""
_TO_CONTROLS = {stand_in: control for control, stand_in in _CONTROLS.items()}


def install() -> None:
    """Put this module's patches in place."""
    intrinsic_parser.IntrinsicParser.parse = staticmethod(_parse)
    Preprocessor.visitFunc_arg_string = _text
    Preprocessor.visitFunc_arg_float = _number
    Preprocessor.visitFunc_arg_json_path = _path
    Preprocessor.visitFunc_arg_context_path = _context_path
    StringFormat._eval_body = _format
    json_to_string.JsonToString._eval_body = _json_to_string


_original_format = StringFormat._eval_body


def _parse(text: str) -> tuple[Any, Any]:
    """
    The function that a call names, and the call's tree. moto goes on after an error, with what it could read.

    Raises:
        ASLParserException: the call cannot be read; the state machine is not made.
    """
    call: str = json.loads(f'"{text}"')
    told = SyntaxErrorListener()
    stream = intrinsic_parser.InputStream(_QUOTED_OR_PATH.sub(_readable, call))
    lexer = intrinsic_parser.ASLIntrinsicLexer(stream)
    parser = intrinsic_parser.ASLIntrinsicParser(intrinsic_parser.CommonTokenStream(lexer))
    for reader in (lexer, parser):
        reader.removeErrorListeners()
        reader.addErrorListener(told)
    tree = parser.func_decl()
    if told.errors:
        raise ASLParserException([f"{call!r} cannot be read as a call of an intrinsic function"])
    return Preprocessor().visit(tree), tree


def _readable(found: re.Match[str]) -> str:
    """What moto's lexer takes, for text in quotes, for null or for a path."""
    if found[0] == "null":
        return _NULL
    if found[1] is None:
        return found[0].translate(_CONTROLS)
    return f"{found[1]}{_STAND_IN}{found[2].encode().hex()}"


def _path(_preprocessor: Preprocessor, call: Any) -> ArgumentJsonPath | ArgumentLiteral:
    path = call.JSON_PATH_STRING().getText()
    return ArgumentLiteral(None) if path == _NULL else ArgumentJsonPath(_as_written(path))


def _context_path(_preprocessor: Preprocessor, call: Any) -> ArgumentContextPath:
    return ArgumentContextPath(_as_written(call.CONTEXT_PATH_STRING().getText()))


def _as_written(path: str) -> str:
    """The path in the place of which `_readable` has put a name."""
    root, stand_in, name = path.partition(_STAND_IN)
    return root + bytes.fromhex(name).decode() if stand_in else path


def _number(_preprocessor: Preprocessor, call: Any) -> ArgumentLiteral:
    return ArgumentLiteral(float(call.NUMBER().getText()))


def _text(_preprocessor: Preprocessor, call: Any) -> _Text:
    return _Text(call.STRING().getText()[1:-1].translate(_TO_CONTROLS))


class _Text(ArgumentLiteral):
    """Text in a call. `definition_value` has the escapes, so that `States.Format` knows its own braces."""

    def _eval_body(self, env: Environment) -> None:
        env.stack.append(_ESCAPE.sub(_unescaped, self.definition_value))


def _unescaped(escape: re.Match[str]) -> str:
    if not escape[1] or escape[1] not in _ESCAPED:
        raise ValueError(f"{escape[0]!r} is an open escape; the escapes are \\' \\{{ \\}} and \\\\")
    return escape[1]


def _format(function: StringFormat, env: Environment) -> None:
    first = function.argument_list.arguments[0]
    if not isinstance(first, _Text):
        _original_format(function, env)
        return
    function.argument_list.eval(env=env)
    values = iter(env.stack.pop()[1:])

    def put(found: re.Match[str]) -> str:
        if found[0] == "{}":
            return str(StringFormat._to_str_repr(next(values)))
        if found[0] in ("{", "}"):
            raise ValueError(f"{found[0]!r} must be escaped")
        return found[0][1]

    try:
        env.stack.append(_ESCAPE_OR_BRACES.sub(put, first.definition_value))
    except StopIteration:
        raise ValueError(f"There are fewer values than {{}} in {first.definition_value!r}") from None


def _json_to_string(function: json_to_string.JsonToString, env: Environment) -> None:
    function.argument_list.eval(env=env)
    (value,) = env.stack.pop()
    env.stack.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
