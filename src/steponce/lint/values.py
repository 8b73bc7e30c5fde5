"""Which values AWS takes where a definition gives a path, a call of functions, a time or an expression."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

JSONPATH = "JSONPath"
JSONATA = "JSONata"

_FUNCTIONS = {
    *("Array", "ArrayContains", "ArrayGetItem", "ArrayLength", "ArrayPartition", "ArrayRange", "ArrayUnique"),
    *("Base64Decode", "Base64Encode", "Format", "Hash", "JsonMerge", "JsonToString", "MathAdd", "MathRandom"),
    *("StringSplit", "StringToJson", "UUID"),
}
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'?")
_NAME = re.compile(r"""'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?""")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LONGEST_VARIABLE = 80


def is_path(value: Any) -> bool:
    """Whether it is a path, `$.a[0]`, with its brackets closed."""
    if not isinstance(value, str) or not value.startswith("$"):
        return False
    outside = _NAME.sub("", value)
    return all(outside.count(left) == outside.count(right) for left, right in ("[]", "()"))


def is_single(path: str) -> bool:
    """
    Whether a path names one place only, as a ResultPath must.

    Source: Amazon States Language, Reference Paths: the operators "@", "..", ",", ":", "?" and "*" are not
    supported.
    """
    outside = _NAME.sub("", path)
    return ".." not in outside and not set(outside) & set("@,:?*")


def is_call(text: str) -> bool:
    """Whether it is a call of intrinsic functions that exist, its parentheses closed."""
    code = _TEXT.sub("''", text)
    called = re.findall(r"States\.(\w+)\s*\(", code)
    closed = code.count("(") == code.count(")") and "'" not in code.replace("''", "")
    return text.startswith("States.") and code.rstrip().endswith(")") and closed and {*called} <= _FUNCTIONS


def is_timestamp(value: Any) -> bool:
    """
    Whether it is a time as `2026-11-27T09:30:00Z`.

    Source: Amazon States Language, Timestamps: RFC 3339 with an uppercase T, and an uppercase Z where no
    offset is given.
    """
    if not isinstance(value, str) or _TIMESTAMP.fullmatch(value) is None:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def is_whole(value: Any, least: int, most: int) -> bool:
    """Whether it is a whole number in these bounds."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_expression(value: Any, language: str) -> bool:
    """Whether JSONata works it out at run time."""
    return language == JSONATA and isinstance(value, str) and value.startswith("{%") and value.endswith("%}")


def is_half_an_expression(text: str) -> bool:
    """
    Whether it has only one of the two marks of an expression in JSONata.

    With both, and spaces around, AWS takes it for plain text.

    Source: Transforming data with JSONata in Step Functions: "Improperly opening or closing the expression
    will result in a validation error."
    """
    bare = text.strip()
    return bare.startswith("{%") != bare.endswith("%}")


def is_variable(name: str) -> bool:
    """
    Whether a variable can have this name.

    Source: Passing data between states with variables: a Unicode identifier of up to 80 characters, and not
    the reserved `states`.
    """
    return name.isidentifier() and len(name) <= _LONGEST_VARIABLE and name != "states"
