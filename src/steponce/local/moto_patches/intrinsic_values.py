"""
What intrinsic functions make of values: moto's speak of ASCII and of Python's equality, in which true is 1.

Source: Intrinsics for JSONPath state machines, Step Functions Developer Guide.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from moto.stepfunctions.parser.asl.component.intrinsic.function.statesfunction.array.array_contains import (
    ArrayContains,
)
from moto.stepfunctions.parser.asl.component.intrinsic.function.statesfunction.array.array_range import (
    ArrayRange,
)
from moto.stepfunctions.parser.asl.component.intrinsic.function.statesfunction.array.array_unique import (
    ArrayUnique,
)
from moto.stepfunctions.parser.asl.component.intrinsic.function.statesfunction.encoding_decoding import (
    base_64_decode,
    base_64_encode,
)
from moto.stepfunctions.parser.asl.component.intrinsic.function.statesfunction.states_function import (
    StatesFunction,
)
from moto.stepfunctions.parser.asl.eval.environment import Environment

from steponce.request.canonical import in_one_form

_LONGEST_TEXT = 10_000
_MOST_ITEMS = 1_000


def install() -> None:
    """Put this module's patches in place."""
    base_64_encode.Base64Encode._eval_body = _encode
    base_64_decode.Base64Decode._eval_body = _decode
    ArrayUnique._eval_body = _unique
    ArrayContains._eval_body = _contains
    ArrayRange._eval_body = _range


def _encode(function: StatesFunction, env: Environment) -> None:
    (text,) = _arguments(function, env)
    env.stack.append(base64.b64encode(_short(text).encode()).decode())


def _decode(function: StatesFunction, env: Environment) -> None:
    (text,) = _arguments(function, env)
    env.stack.append(base64.b64decode(_short(text).encode()).decode())  # MIME's has breaks of lines in it


def _unique(function: StatesFunction, env: Environment) -> None:
    (array,) = _arguments(function, env)
    found: dict[str, Any] = {}
    for item in _array(array):
        found.setdefault(_identity(item), item)
    env.stack.append(list(found.values()))


def _contains(function: StatesFunction, env: Environment) -> None:
    array, value = _arguments(function, env)
    env.stack.append(_identity(value) in map(_identity, _array(array)))


def _range(function: StatesFunction, env: Environment) -> None:
    first, last, step = map(round, _arguments(function, env))
    found = range(first, last + (1 if step > 0 else -1), step)
    if len(found) > _MOST_ITEMS:
        raise ValueError(f"An array has at most {_MOST_ITEMS} items, and this one would have {len(found)}")
    env.stack.append(list(found))


def _arguments(function: StatesFunction, env: Environment) -> list[Any]:
    function.argument_list.eval(env=env)
    found: list[Any] = env.stack.pop()
    return found


def _identity(value: Any) -> str:
    """What equal values of JSON share."""
    return json.dumps(in_one_form(value))


def _array(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no array")
    return value


def _short(text: Any) -> str:
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        raise ValueError(f"It must be text of at most {_LONGEST_TEXT:,} characters")
    return text
