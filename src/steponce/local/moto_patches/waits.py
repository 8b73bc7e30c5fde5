"""
What waits for a point in time: Wait states, retries, and the time-out of a whole execution.

moto waits on the machine's clock. Here all wait on the stack's, which a test may move.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace

from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.program import program
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
from moto.stepfunctions.parser.asl.eval.environment import Environment

from steponce.local import stack_time


def install() -> None:
    """Put this module's patches in place."""
    WaitFunction._wait_interval = _wait
    retrier_decl.time = SimpleNamespace(sleep=stack_time.sleep)
    program.threading = SimpleNamespace(Thread=_Interpretation)


def _wait(_function: WaitFunction, env: Environment, wait_seconds: float) -> None:
    end = stack_time.monotonic() + wait_seconds
    while env.is_running() and (left := end - stack_time.monotonic()) > 0:
        env.program_state_event.wait(stack_time.stretch(left))


class _Interpretation(threading.Thread):
    """The thread of an execution, which its starter joins for as long as TimeoutSeconds says."""

    def join(self, timeout: float | None = None) -> None:
        if timeout is None:
            super().join()
            return
        end = stack_time.monotonic() + timeout
        while self.is_alive() and (left := end - stack_time.monotonic()) > 0:
            super().join(stack_time.stretch(left))
