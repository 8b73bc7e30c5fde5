"""
A call of an intrinsic function, `States.Format('it\\'s {}', $['n'][0])`, and the text that one makes.

moto reads the call as the JSON of the definition has it, with JSON's own escapes, and knows none of the
language's four. Of a path it takes one step in brackets after each dot, and drops the next ones in silence.
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
from moto.stepfunctions.parser.asl.parse.intrinsic.intrinsic_parser import IntrinsicParser
from moto.stepfunctions.parser.asl.parse.intrinsic.preprocessor import Preprocessor

_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPE_OR_BRACES = re.compile(r"\\.?|\{\}|[{}]", re.DOTALL)
_ESCAPED = "'{}\\"
# Text in quotes, or to the end of a call that moto refuses; and where two steps in brackets meet.
_QUOTED_OR_STEPS = re.compile(r"'(?:[^'\\]|\\.)*'?|\]\.?\[", re.DOTALL)
_CONTROLS = {control: 0xFDD0 + control for control in range(32)}
"""moto's lexer takes no control character. The 32 code points from U+FDD0 on are no characters."""
_TO_CONTROLS = {stand_in: control for control, stand_in in _CONTROLS.items()}


def install() -> None:
    """Put this module's patches in place."""
    IntrinsicParser.parse = staticmethod(_parse)
    Preprocessor.visitFunc_arg_string = _text
    Preprocessor.visitFunc_arg_json_path = _path
    Preprocessor.visitFunc_arg_context_path = _context_path
    StringFormat._eval_body = _format
    json_to_string.JsonToString._eval_body = _json_to_string


_original_parse = IntrinsicParser.parse
_original_format = StringFormat._eval_body


def _parse(text: str) -> Any:
    call: str = json.loads(f'"{text}"')
    return _original_parse(_QUOTED_OR_STEPS.sub(_readable, call))


def _readable(found: re.Match[str]) -> str:
    """What moto's lexer takes, for text in quotes or where two steps meet."""
    return "].[" if found[0].startswith("]") else found[0].translate(_CONTROLS)


def _path(_preprocessor: Preprocessor, call: Any) -> ArgumentJsonPath:
    return ArgumentJsonPath(_as_written(call.JSON_PATH_STRING().getText()))


def _context_path(_preprocessor: Preprocessor, call: Any) -> ArgumentContextPath:
    return ArgumentContextPath(_as_written(call.CONTEXT_PATH_STRING().getText()))


def _as_written(path: str) -> str:
    return _QUOTED_OR_STEPS.sub(_original, path)


def _original(found: re.Match[str]) -> str:
    """The reverse of `_readable`."""
    return "][" if found[0].startswith("]") else found[0].translate(_TO_CONTROLS)


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
