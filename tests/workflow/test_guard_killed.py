"""
A guarded call that is killed at any of its lines.

A process runs the same call again and again, each time in a child that kills itself (SIGKILL) one line
further on. Afterwards the table is asked, and whoever comes next.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from steponce import AlreadyInProgress, Guard, RequestFailed
from steponce.workflow import COMPLETED, INPROGRESS, OUTCOME_UNKNOWN
from tests.workflow.scene import VISA, Scene

CALLS = """
import json, os, signal, sys
import steponce
from steponce import Guard

def tracing(number):
    package, seen = os.path.dirname(steponce.__file__), 0
    def trace(frame, event, _argument):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(package):
            return None
        if event == "line":
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    return trace, lambda: seen

table, endpoints, key, payload, effects, every = map(json.loads, sys.argv[1:])
guard = Guard(table, endpoints=endpoints)

def call(number):
    trace, seen = tracing(number)
    sys.settrace(trace)
    with guard.begin(f"{key}-{number}", payload, lease_seconds=3600) as run:
        with open(effects, "a") as written:
            written.write(f"{number}\\n")
        run.complete({"by": number})
    sys.settrace(None)
    return seen()

call("first")  # which imports on its way
lines = call("second")
for number in range(1, lines + 1, every):
    child = os.fork()
    if not child:
        call(number)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):  # else its call had fewer lines than the one that was counted
        print(number)
"""


@dataclass(frozen=True)
class Death:
    """A call that was killed at a line: its key, and whether its effect had happened."""

    key: str
    had_effect: bool


def deaths(scene: Scene, effects: Path, every: int) -> list[Death]:
    """Let calls die at every so many of their lines; in the order of the lines."""
    session, key = scene.stack.session(), scene.new_id("killed")
    found = session.get_credentials()
    environment = {
        "AWS_ACCESS_KEY_ID": found.access_key,
        "AWS_SECRET_ACCESS_KEY": found.secret_key,
        "AWS_DEFAULT_REGION": session.region_name,
    }
    told = (scene.stack.outputs["LocksTable"], dict(scene.stack.endpoints), key, VISA, str(effects), every)
    ran = subprocess.run(
        [sys.executable, "-c", CALLS, *map(json.dumps, told)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    happened = effects.read_text().splitlines()
    return [Death(f"{key}-{number}", number in happened) for number in ran.stdout.splitlines()]


def state_of(scene: Scene, death: Death) -> str | None:
    """The status of the record that it left, if it left one."""
    lock = scene.locks.get(death.key)
    return None if lock is None else lock.status


def follow(guard: Guard, key: str) -> tuple[bool, object]:
    """The next call: whether it replays, and the result."""
    with guard.begin(key, VISA) as run:
        if not run.replayed:
            run.complete("the next call's")
        return run.replayed, run.result


@pytest.mark.parametrize("every", [35, pytest.param(1, marks=[pytest.mark.full, pytest.mark.timeout(1_800)])])
def test_a_call_that_is_killed_at_any_line_is_never_repeated_by_itself(
    scene: Scene, tmp_path: Path, every: int
):
    """Before its lock it leaves nothing, with its lock an unknown outcome, after its result the result."""
    dead = deaths(scene, tmp_path / "effects", every)
    guards = {unknown: scene.stack.guard(when_outcome_unknown=unknown) for unknown in ("hold", "take-over")}
    states = [state_of(scene, one) for one in dead]
    assert [None, INPROGRESS, COMPLETED] == [state for state, _ in groupby(states)]

    for number, (one, state) in enumerate(zip(dead, states, strict=True)):
        unknown = ("hold", "take-over")[number % 2]
        if state is None:
            assert not one.had_effect
            assert (False, "the next call's") == follow(guards[unknown], one.key)
        elif state == COMPLETED:
            assert one.had_effect
            assert True is follow(guards[unknown], one.key)[0]
        else:
            with pytest.raises(AlreadyInProgress):
                follow(guards[unknown], one.key)
            scene.change_lock(one.key, leaseUntil="2020-01-01T00:00:00.000Z")
            if unknown == "hold":
                with pytest.raises(RequestFailed) as held:
                    follow(guards[unknown], one.key)
                assert OUTCOME_UNKNOWN == held.value.error
            else:
                assert (False, "the next call's") == follow(guards[unknown], one.key)
                assert 2 == scene.lock(one.key).attempt
