"""
How long a task may run.

moto's clock counts the wait for a free worker as well; a burst of executions would time out in it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

from moto.stepfunctions.parser.asl.component.common.timeouts.timeout import EvalTimeoutError
from moto.stepfunctions.parser.asl.component.state.exec.execute_state import ExecutionState
from moto.stepfunctions.parser.asl.component.state.exec.state_task.state_task import StateTask
from moto.stepfunctions.parser.asl.eval.environment import Environment

from steponce.local import activity
from steponce.local.moto_patches import admission, faults
from steponce.local.runtime import clocks


def install() -> None:
    """Put this module's patches in place."""
    ExecutionState._evaluate_with_timeout = _evaluate_with_timeout


_original = ExecutionState._evaluate_with_timeout


def _evaluate_with_timeout(state: ExecutionState, env: Environment) -> None:
    if isinstance(state, StateTask):
        take_output(state, env, output_in_time(state, env))
        return
    with admission.released():  # Parallel and Map: their branches have slots of their own
        _original(state, env)


def output_in_time(task: StateTask, env: Environment, accepted: Callable[[], bool] = lambda: False) -> Any:
    """
    What the task answers, run in a frame of its own.

    Args:
        accepted: Asked when the time is over: whether the task's answer is on its way all the same.

    Raises:
        EvalTimeoutError: its time is over.
    """
    task.timeout.eval(env=env)
    timeout_seconds = env.stack.pop()
    frame = env.open_frame()
    frame.states.reset(input_value=env.states.get_input())
    frame.stack = copy.deepcopy(env.stack)
    clock = clocks.Clock(timeout_seconds, wanted=frame.is_running)
    slot = admission.slot_here()
    failures: list[Exception] = []

    def execute() -> None:
        try:
            with (
                activity.counted(),
                admission.on_this_thread(slot),
                clocks.on_this_thread(clock),
                faults.may_happen_to(task, frame),
            ):
                task._eval_execution(frame)
        except Exception as failure:  # whatever it is, the state's Retry and Catch are asked
            failures.append(failure)
        clock.finish()

    thread = threading.Thread(target=execute, daemon=True)
    thread.start()
    in_time = clock.wait()
    if not in_time and accepted():
        thread.join()
        in_time = True
    frame.set_ended()
    env.close_frame(frame)
    if not in_time:
        raise EvalTimeoutError
    if failures:
        raise failures[0]
    return frame.stack.pop()


def take_output(task: StateTask, env: Environment, output: Any) -> None:
    """What moto does with what a task answers."""
    env.stack.append(output)
    if not task._is_language_query_jsonpath():
        env.states.set_result(output)
    if task.assign_decl:
        task.assign_decl.eval(env=env)
    if task.result_selector:
        task.result_selector.eval(env=env)
    if task.result_path:
        task.result_path.eval(env)
    else:
        env.states.reset(input_value=env.stack.pop())
