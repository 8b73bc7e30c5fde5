"""
JSON's escapes in a definition's texts.

moto leaves them as they are in names of states and errors and in paths, where `\\u00fc` is not `ü`. In other
texts it reads them as Python's, which knows no `\\/` and makes two characters of a surrogate pair.
"""

from __future__ import annotations

import json
from typing import Any

from moto.stepfunctions.parser.asl.antlt4utils import antlr4utils
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor

from steponce.local.moto_patches.patching import replace_everywhere


def install() -> None:
    """Put this module's patches in place."""
    Preprocessor._inner_string_of = staticmethod(_inner_string_of)
    replace_everywhere(antlr4utils.from_string_literal, _from_string_literal)


_original_inner_string_of = Preprocessor._inner_string_of


def _inner_string_of(parser_rule_context: Any) -> str | None:
    inner = _original_inner_string_of(parser_rule_context)
    return None if inner is None else _decoded(inner)


def _from_string_literal(parser_rule_context: Any) -> str:
    return _decoded(parser_rule_context.getText()[1:-1])


def _decoded(inner: str) -> str:
    return str(json.loads(f'"{inner}"'))
