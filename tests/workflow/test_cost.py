"""What `steponce cost` says of a path is what an execution on it uses, counted as `make bench` counts."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from steponce.cost import estimate
from tests import bench
from tests.counting.comparing import all_paths
from tests.counting.drives import Drive
from tests.counting.units import transitions
from tests.workflow.scene import BUG, DECLINED, UNREACHABLE, VISA, Scene
from tests.workflow.waiting import YES, Waiting

LOCKED = ("IsRequestPrepared", "AcquireLock")

Counts = tuple[int, float, float, int]
"""Transitions, writes, reads and calls of functions."""


def fresh(scene: Scene, name: str) -> None:
    scene.run(name, VISA)


def replay(scene: Scene, name: str) -> None:
    scene.run(f"{name}-first", VISA, lock_token=name)
    scene.faults.calls.clear()
    scene.run(name, VISA, lock_token=name)


def mismatch(scene: Scene, name: str) -> None:
    scene.run(f"{name}-first", VISA, lock_token=name)
    scene.faults.calls.clear()
    scene.run(name, VISA | {"amount": 501}, lock_token=name)


def replayed_error(scene: Scene, name: str) -> None:
    scene.run(f"{name}-first", DECLINED, lock_token=name)
    scene.faults.calls.clear()
    scene.run(name, DECLINED, lock_token=name)


def unexpected_end(scene: Scene, name: str) -> None:
    scene.run(name, BUG)


def by_hand(scene: Scene, name: str) -> None:
    arn = scene.client.state_machine_arn
    text = json.dumps({"payload": VISA})
    scene.stack.boto3("stepfunctions").start_execution(stateMachineArn=arn, name=name, input=text)


def confirmed(scene: Scene, name: str) -> None:
    Waiting.begin(scene, name).answer(YES)


def dead_owner(scene: Scene, name: str) -> None:
    scene.run(f"{name}-hash", VISA)
    payload_hash = scene.lock(scene.key(f"{name}-hash")).payload_hash
    scene.put_open_lock_of_another(name, name, payload_hash)
    scene.faults.calls.clear()
    scene.client.start(name, VISA, lock_token=name)


RUNS: dict[Callable[[Scene, str], None], str] = {
    fresh: "CompleteRequest",
    replay: "ReplayResult",
    mismatch: "PayloadMismatch",
    replayed_error: "RequestFailed",
    unexpected_end: "RequestFailed",
    by_hand: "CompleteRequest",
    confirmed: "CompleteRequest",
    dead_owner: "RequestFailed",
}


@pytest.mark.parametrize(("run", "end"), RUNS.items(), ids=lambda one: getattr(one, "__name__", one))
def test_a_path_uses_what_is_counted(scene: Scene, run: Callable[[Scene, str], None], end: str):
    """State by state: what its execution enters, and what the engine sends to the tables and functions."""
    name = scene.new_id("cost")

    run(scene, name)

    scene.closed(name)
    assert end == scene.states(name)[-1]
    assert expected(scene, name) == counted(scene, name)


def test_a_retry_comes_on_top(scene: Scene):
    """The path is priced without it."""
    name = scene.new_id("cost")

    scene.run(name, UNREACHABLE)

    more, _, _, calls = (
        one - other for one, other in zip(counted(scene, name), expected(scene, name), strict=True)
    )
    assert (2, 2) == (more, calls)


@pytest.mark.full
def test_bench_counts_what_cost_says(monkeypatch: pytest.MonkeyPatch):
    """On each path that it measures, without what the function of the work reads itself."""
    monkeypatch.setattr(bench, "ROUNDS", 1)
    with bench.counting() as measuring:
        here = measuring.sfn.describe_state_machine(stateMachineArn=measuring.client.state_machine_arn)
        measuring.bare()
        measuring.fresh()
        measuring.replay()
        measuring.mismatch_by_key()
    alone, *measures = measuring.measures
    assert (1, 1) == (alone.transitions, alone.work)

    replayed = (*LOCKED, "ReadLock", "IsLockHeld")
    paths = [(*LOCKED, "DoWork", "IsConfirmationWanted", "CompleteRequest")]
    paths += [(*replayed, "ReplayResult"), (*replayed, "PayloadMismatch")]
    by_states = {path.states: path.usage for path in all_paths(Drive(here["definition"]))}
    for measure, path in zip(measures, paths, strict=True):
        usage = by_states[path]
        reads = measure.reads - (alone.reads if "DoWork" in path else 0)
        counted = measure.transitions, measure.writes + measure.refused, reads
        assert (usage.transitions, usage.writes, usage.reads) == counted, measure.name


def expected(scene: Scene, name: str) -> Counts:
    """Of the path that this execution took, from the definition that the stack runs."""
    arn = scene.client.state_machine_arn
    here = scene.stack.boto3("stepfunctions").describe_state_machine(stateMachineArn=arn)
    states = tuple(scene.states(name))
    found = estimate(json.loads(here["definition"]), through=set(states), limit=500)
    (usage,) = [path.usage for path in found.listed if path.states == states]
    return usage.transitions, usage.writes, usage.reads, usage.lambda_calls


def counted(scene: Scene, name: str) -> Counts:
    """By its history, and by the proxy between the engine and what it calls."""
    calls = [call.body for call in scene.faults.calls]
    writes = sum("UpdateExpression" in body for body in calls)
    reads = sum("ConsistentRead" in body for body in calls)
    functions = sum("TableName" not in body for body in calls)
    return transitions(scene.events(scene.arn(name))), writes, reads, functions
