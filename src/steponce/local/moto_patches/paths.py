"""
What a path finds, and where a ResultPath puts a result.

AWS's JSONPath is Jayway's. A path of names and indexes is definite: it names one place, and finds the value
there. A path with a filter, a wildcard, a slice, several names or indexes, or `..` finds a list, also of one
value or none.
"""

from __future__ import annotations

import copy
import operator
import re
from typing import Any

from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import (
    FailureEvent,
    FailureEventException,
)
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import (
    StatesErrorNameType,
)
from moto.stepfunctions.parser.asl.component.common.path import result_path
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.utils import json_path

from steponce.local.moto_patches.patching import replace_everywhere

_NAMES = re.compile(r"""'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?""")
_CHOICE = re.compile(r"\.[.*]|\[[^\]\[]*[*?:,]")
_DEFINITE_BEGINNING = re.compile(
    r"""\$(?:\.[^.*\[]+|\['(?:[^'\\]|\\.)*'\]|\["(?:[^"\\]|\\.)*"\]|\[-?\d+\])*"""
)
_DOTTED = re.compile(
    r"""'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?"""
    r"""|(?:\.(?=[\w-]*[^\x00-\x7f])|(?<!\d)\.(?=\d+(?:[^\W\d]|-)))([\w\x80-\U0010ffff-]+)"""
)
_FOR_LISTS = re.compile(r"\[[-\d:]")  # a slice, or several indexes
_INDEX_AT_THE_END = re.compile(r"\[-?\d+\]$")


def install() -> None:
    """Put this module's patches in place."""
    replace_everywhere(json_path.extract_json, _extract)
    result_path.parse = _parse_result_path
    result_path.ResultPath._eval_body = _put


_original_put = result_path.ResultPath._eval_body
_original_parse = result_path.parse


def _extract(path: str, data: Any) -> Any:
    """
    The value at a path, or the values.

    moto finds a list where the last step but one is an index, and a value where a wildcard finds only one.

    Raises:
        NoSuchJsonPathError: the place of a definite path is absent, or what another one chooses from.
    """
    found = _values(path, data)
    if _CHOICE.search(_NAMES.sub("", path)):
        if found or _may_be_empty(path, data):
            return found
    elif found:
        return found[0]
    raise json_path.NoSuchJsonPathError(json_path=path, data=data)


def _values(path: str, data: Any) -> list[Any]:
    return [match.value for match in json_path.parse(_readable(path)).find(data)]


def _readable(path: str) -> str:
    """The path with brackets for names after a dot that jsonpath-ng does not read: `$.größe`, `$.3ds`."""
    return _DOTTED.sub(_in_brackets, path)


def _in_brackets(found: re.Match[str]) -> str:
    return f".['{found[1]}']" if found[1] else found[0]


def _may_be_empty(path: str, data: Any) -> bool:
    """Whether there is something to choose from, so that a path that finds nothing finds an empty list."""
    if json_path._contains_slice_or_wildcard_array(path):
        return True
    step = _DEFINITE_BEGINNING.sub("", path, count=1)
    kinds = (list,) if _FOR_LISTS.match(step) else (list, dict)
    return any(isinstance(value, kinds) for value in _values(path.removesuffix(step), data))


def _parse_result_path(path: str) -> Any:
    return _original_parse(_readable(path))


def _put(place: result_path.ResultPath, env: Environment) -> None:
    """
    Put a result at its place in the input.

    jsonpath-ng takes a list for the values of several indexes; a function can put it there itself. Where the
    way leads through a null it leaves out the result without a word, and through a text it fails.

    Raises:
        FailureEventException: States.ResultPathMatchFailure.

    Source: Amazon States Language, Appendix A: "A Task State's ResultPath field cannot be applied to the
    input the state received."
    """
    path = place.result_path_src
    if path is not None and _INDEX_AT_THE_END.search(path) and isinstance(env.stack[-1], list):
        result = copy.deepcopy(env.stack[-1])
        env.stack[-1] = lambda _old, values, index: operator.setitem(values, index, result)
    try:
        _original_put(place, env)
    except (AttributeError, TypeError) as error:
        raise _does_not_match(path, env) from error
    if path is not None and not _values(path, env.stack[-1]):
        raise _does_not_match(path, env)


def _does_not_match(path: str | None, env: Environment) -> FailureEventException:
    name = StatesErrorNameType.StatesResultPathMatchFailure
    cause = f"The ResultPath {path!r} cannot be applied to the input of the state."
    told = EventDetails(taskFailedEventDetails=TaskFailedEventDetails(error=name.to_name(), cause=cause))
    return FailureEventException(
        FailureEvent(env, StatesErrorName(typ=name), HistoryEventType.TaskFailed, event_details=told)
    )
