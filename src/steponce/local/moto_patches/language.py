"""What the states language means: times, error names, absent paths, sizes."""

from __future__ import annotations

import datetime
import functools
import json
import math
from typing import Any

from moto.stepfunctions.parser import quotas
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.error_equals_decl import ErrorEqualsDecl
from moto.stepfunctions.parser.asl.component.common.error_name.error_name import ErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEventException
from moto.stepfunctions.parser.asl.component.common.string.string_expression import StringVariableSample
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.state import state as state_module
from moto.stepfunctions.parser.asl.component.state.choice.comparison.comparison_func import (
    ComparisonFuncValue,
)
from moto.stepfunctions.parser.asl.component.state.choice.comparison.comparison_operator_type import (
    ComparisonOperatorType,
)
from moto.stepfunctions.parser.asl.component.state.choice.comparison.comparison_variable import (
    ComparisonVariable,
)
from moto.stepfunctions.parser.asl.component.state.choice.comparison.variable import NoSuchVariable
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import (
    StateTaskService,
)
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.timestamp import Timestamp
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.utils import json_path
from moto.stepfunctions.parser.asl.utils.json_path import NoSuchJsonPathError

from steponce.local.errors import not_supported
from steponce.local.moto_patches.patching import replace_everywhere
from steponce.local.moto_patches.times import aws_time, time_of
from steponce.workflow import WORKFLOW_LIMIT

_UNCATCHABLE = "States.Runtime"
_NOT_MATCHED_BY_ALL = "States.DataLimitExceeded"
_ALL = "States.ALL"
_TASK_FAILED = "States.TaskFailed"
_NOT_MATCHED_BY_TASK_FAILED = "States.Timeout"


def install() -> None:
    """Put this module's patches in place."""
    state_module.StateData = _state_data
    CustomErrorName.__init__ = ErrorName.__init__
    ErrorEqualsDecl._eval_body = _match_error
    ComparisonVariable._eval_body = _compare_variable
    Timestamp._get_wait_seconds = _seconds_until
    Timestamp._from_timestamp_string = staticmethod(time_of)  # moto knows no offset
    ComparisonFuncValue._eval_body = _compare_value
    StateTaskService._before_eval_execution = _check_parameters
    replace_everywhere(quotas.is_within_size_quota, is_within_size_quota)
    # moto builds the text of the whole program for a log line, once for each level that an error passes.
    EvalComponent._log_exception = _log_nothing
    EvalComponent._log_failure_event_exception = _log_nothing
    # Building a path's parser takes a millisecond each time; a definition has dozens of paths.
    json_path.parse = functools.lru_cache(maxsize=4096)(json_path.parse)


# `CustomErrorName` refuses names that begin with `States.`, so that a Fail state that passes on
# `States.Timeout`, or a function that raises it, would end as States.Runtime.

_original_before = StateTaskService._before_eval_execution
_original_compare = ComparisonFuncValue._eval_body


def _seconds_until(wait: Timestamp, env: Environment) -> int:
    """
    moto compares the timestamp with the laptop's own time zone, and ends up to a second too early.

    `str(datetime)` of Python is no timestamp on AWS, for it has a blank in place of the T.
    """
    wait.string.eval(env=env)
    text = env.stack.pop()
    until = time_of(text)
    if until is None:
        raise FailureEventException(wait._create_failure_event(env, str(text)))
    return max(0, math.ceil((until - datetime.datetime.now(datetime.UTC)).total_seconds()))


def _log_nothing(_component: EvalComponent, *_: Any, **__: Any) -> None:
    """Errors are in the execution's history."""


def _state_data(EnteredTime: str, Name: str) -> dict[str, Any]:  # noqa: N803 - the context object's names
    """moto writes microseconds and +00:00."""
    return {"EnteredTime": aws_time(datetime.datetime.fromisoformat(EnteredTime)), "Name": Name}


def _match_error(decl: ErrorEqualsDecl, env: Environment) -> None:
    """
    Whether ErrorEquals matches the error on the stack.

    moto lets States.ALL catch everything. On AWS nothing catches States.Runtime, and States.ALL does not
    catch States.DataLimitExceeded. moto lets States.TaskFailed catch no name of AWS's own. On AWS it
    "matches any known error name except for `States.Timeout`".
    Source: Step Functions Developer Guide, "Handling errors in Step Functions workflows".
    """
    raised: ErrorName | None = env.stack.pop()
    error = raised.error_name if raised else None  # moto's Map passes on None for an error without a name
    names = {name.error_name for name in decl.error_names}
    if error == _UNCATCHABLE:
        matches = False
    elif error in names:
        matches = True
    elif _ALL in names:
        matches = error != _NOT_MATCHED_BY_ALL
    else:
        matches = _TASK_FAILED in names and error != _NOT_MATCHED_BY_TASK_FAILED
    env.stack.append(matches)


def _compare_variable(comparison: ComparisonVariable, env: Environment) -> None:
    """
    Compare the value at a path.

    moto lets an absent one be unequal to everything; on AWS the execution fails. It also takes each variable
    of the workflow for absent, for it reads them with JSONata.
    """
    if isinstance(comparison.variable.string_sampler, StringVariableSample):
        raise RuntimeError(not_supported(f"the variable {comparison.variable.string_sampler.expression}."))
    comparison.variable.eval(env)
    asks_presence = comparison.comparison_function.operator_type == ComparisonOperatorType.IsPresent
    if isinstance(env.stack[-1], NoSuchVariable) and not asks_presence:
        path = comparison.variable.string_sampler.literal_value
        raise NoSuchJsonPathError(json_path=path, data=env.states.get_input())
    comparison.comparison_function.eval(env)


def _compare_value(function: ComparisonFuncValue, env: Environment) -> None:
    """moto looks for the right side of `…Path` in the input only; AWS knows the context object as well."""
    path = function.value
    if function.operator_type.name.endswith("Path") and isinstance(path, str) and path.startswith("$$."):
        value = json_path.extract_json(path[1:], env.states.context_object.context_object_data)
        plain = ComparisonOperatorType[function.operator_type.name.removesuffix("Path")]
        function = ComparisonFuncValue(operator_type=plain, value=value)
    _original_compare(function, env)


def is_within_size_quota(value: Any) -> bool:
    """moto counts blanks and escapes, and refuses the last byte of the 262,144."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
    return len(text.encode("utf-8", errors="surrogatepass")) <= WORKFLOW_LIMIT


def _check_parameters(
    task: StateTaskService, env: Environment, *, raw_parameters: Any, **others: Any
) -> None:
    """moto checks what a task answers, not what it is given."""
    task._verify_size_quota(env=env, value=raw_parameters)
    _original_before(task, env, raw_parameters=raw_parameters, **others)
