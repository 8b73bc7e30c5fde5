"""
As many executions run at once as the workers of one function can serve; the others have not begun.

moto begins every execution at once, and a burst of them fights for workers, for the table and for the one
interpreter, until their tasks run out of time. On AWS a burst waits nowhere, or is throttled. An execution
that waits here is RUNNING, as StartExecution said, and has entered no state; its TimeoutSeconds count from
when it begins.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
    state_task_service_callback as callback,
)
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction
from moto.stepfunctions.parser.asl.eval.environment import Environment

from steponce.local.moto_patches.slots import Slot, Slots
from steponce.local.runtime.functions import MOST_WORKERS

_slots = Slots(MOST_WORKERS)
_here = threading.local()


def install() -> None:
    """Put this module's patches in place."""
    Program._eval_body = _in_a_slot(Program._eval_body)
    # What only waits lets others run: for a token or another execution, for a time, for another try.
    integration = callback.StateTaskServiceCallback
    integration._eval_integration_pattern = _releasing(integration._eval_integration_pattern)
    WaitFunction._wait_interval = _releasing(WaitFunction._wait_interval)
    retrier_decl.time.sleep = _releasing(retrier_decl.time.sleep)


def enqueue(env: Environment) -> None:
    """Let an execution be the last of those that have not begun."""
    env.slot = Slot(_slots)
    env.slot.request()


def slot_here() -> Slot | None:
    """The slot of the execution or branch that this thread works for."""
    return getattr(_here, "slot", None)


@contextmanager
def on_this_thread(slot: Slot | None) -> Iterator[None]:
    """Work for this slot in the block."""
    before, _here.slot = slot_here(), slot
    try:
        yield
    finally:
        _here.slot = before


@contextmanager
def released() -> Iterator[None]:
    """Let others run while the block only waits."""
    slot = slot_here()
    with slot.released() if slot else nullcontext():
        yield


def _releasing(waiting: Any) -> Any:
    @functools.wraps(waiting)
    def wait_without_a_slot(*args: Any, **kwargs: Any) -> Any:
        with released():
            return waiting(*args, **kwargs)

    return wait_without_a_slot


def _in_a_slot(eval_body: Any) -> Any:
    """An execution has stood in line since its start; a branch or an iteration comes before those."""

    @functools.wraps(eval_body)
    def eval_in_a_slot(program: Program, env: Environment) -> None:
        slot = getattr(env, "slot", None) or Slot(_slots)
        slot.request(returning=True)
        slot.wait()
        try:
            with on_this_thread(slot):
                eval_body(program, env)
        finally:
            slot.close()

    return eval_in_a_slot
