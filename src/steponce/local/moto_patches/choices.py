"""What a rule of a Choice state takes for a time, and for a match."""

from __future__ import annotations

import fnmatch
import glob
import re
from typing import Any

from moto.stepfunctions.parser.asl.component.state.choice.comparison.operator.implementations import (
    is_operator,
    string_operators,
)

from steponce.local.moto_patches.times import time_of

_PARTS = re.compile(r"\\.?|\*|[^\\*]+", re.DOTALL)


def install() -> None:
    """Put this module's patches in place."""
    is_operator.IsTimestamp.string_to_timestamp = staticmethod(time_of)
    string_operators.StringMatches._compare = staticmethod(_matches)


def _matches(value: Any, pattern: str) -> bool:
    r"""
    moto takes the pattern for a shell's, in which `?` and `[` mean something too.

    Raises:
        ValueError: the pattern has an open escape.

    Source: Amazon States Language, StringMatches: "No characters other than "*" have any special meaning
    during matching", `\*` stands for `*` and `\\` for `\`, and "if an open escape backslash \ is found in the
    StringMatches string, the interpreter will throw a runtime error".
    """
    in_a_shell = "".join(map(_in_a_shell, _PARTS.findall(pattern)))
    return isinstance(value, str) and fnmatch.fnmatchcase(value, in_a_shell)


def _in_a_shell(part: str) -> str:
    if part == "*":
        return part
    if part.startswith("\\") and part not in ("\\*", "\\\\"):
        raise ValueError(f"{part!r} is an open escape in StringMatches; the escapes are \\* and \\\\")
    return glob.escape(part.removeprefix("\\"))
