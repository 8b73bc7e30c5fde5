"""Machines as people have them, wrapped: the same outputs and errors, and each effect once."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from steponce.cost import Assumptions, estimate
from tests.counting.units import transitions
from tests.machines import Case
from tests.machines.around import AROUND, AS_IT_IS
from tests.machines.inline import APPROVAL, INLINE, LATER, ORDER, SOON
from tests.patience import PATIENCE_SECONDS, eventually
from tests.workflow.scene import Scene
from tests.workflow.wrapped import Pair, make_pair

RUNS = [
    pytest.param(case, place, id=f"{case.name} {place}", marks=[] if case.usual else [pytest.mark.full])
    for case in [*INLINE, *AROUND]
    if case.runs
    for place in range(len(case.inputs))
]

BESIDE_ITS_PATH = {
    "poller": "a loop may be longer than the path says",
    "retry": "a retry comes on top",
    "absent path": "States.Runtime ends it in the middle of its path",
}
PRICED = [
    case for case in [*INLINE, *AROUND] if case.runs and case.inputs and case.name not in BESIDE_ITS_PATH
]

_pairs: dict[str, Pair] = {}


def pair_of(scene: Scene, case: Case) -> Pair:
    """Both machines, made when the first test asks for them."""
    if case.name not in _pairs:
        _pairs[case.name] = make_pair(scene, case)
    return _pairs[case.name]


def outcome(execution: dict[str, Any], key: str) -> tuple[Any, ...]:
    """The output of an execution, or its error and cause; ids differ."""
    output = json.loads(execution.get("output", "null").replace(key, "ID"))
    said = (execution.get("error"), (execution.get("cause") or "").replace(key, "ID") or None)
    return execution["status"], output, *said


def without_place(text: Any) -> Any:
    """A cause without what differs each time: the invocation of a function, or the place in the history."""
    try:
        return json.loads(text)["errorMessage"]
    except (ValueError, TypeError, KeyError):
        return re.sub(r"An error occurred while executing the state '.*?' \(.*?\)\. ", "", text or "")


@pytest.mark.parametrize(("case", "place"), RUNS)
def test_a_wrapped_machine_does_what_it_did_and_does_it_once(scene: Scene, case: Case, place: int):
    """Its output is the result, its error is the request's; and the same request again has no effect."""
    pair = pair_of(scene, case)
    answer = case.answers[place] if case.answers else None
    plain, request = scene.new_id("plain"), scene.new_id("once")
    expected = pair.run_original({**case.inputs[place], "id": plain}, answer)
    ended = pair.run_wrapped({**case.inputs[place], "id": request}, answer)

    before, found = outcome(expected, plain), outcome(ended, request)
    if case.form == "around" and before[0] == "FAILED":
        child = json.loads(str(found[3]))
        found = (found[0], found[1], child.get("Error"), child.get("Cause"))
    assert (*before[:3], without_place(before[3])) == (*found[:3], without_place(found[3]))
    assert case.effects[place] == pair.effects(plain) == pair.effects(request)

    if ended.get("error") == "States.Runtime":
        # Nothing catches it, so the lock is open, and the owner check settles it later.
        assert "INPROGRESS" == scene.lock(scene.key(request)).status
        scene.delete_lock(scene.key(request))
        return
    again = pair.client.start(request, {**case.inputs[place], "id": request})
    assert (True, ended["status"] == "SUCCEEDED") == (again.duplicate, again.status == "COMPLETED")
    other = scene.new_id("again")
    pair.client.start(other, {**case.inputs[place], "id": request}, lock_token=again.lock_token)
    replayed = pair.client.wait(other, timeout_seconds=PATIENCE_SECONDS, lock_token=again.lock_token)
    assert (again.status, again.result, again.error) == (replayed.status, replayed.result, replayed.error)
    assert case.effects[place] == pair.effects(request)
    scene.delete_lock(again.lock_token)  # one that waits for a person would wait in others' tests, too


@pytest.mark.full
@pytest.mark.parametrize("case", [ORDER, APPROVAL], ids=lambda one: one.name)
def test_a_wrapped_machine_takes_the_same_way(scene: Scene, case: Case):
    """State by state, between the lock and the end of the request."""
    pair = pair_of(scene, case)
    answer = case.answers[0] if case.answers else None
    plain, request = scene.new_id("plain"), scene.new_id("once")
    expected = pair.run_original({**case.inputs[0], "id": plain}, answer)
    ended = pair.run_wrapped({**case.inputs[0], "id": request}, answer)

    own = ["IsRequestPrepared", "AcquireLock", "DoWork", "CompleteRequest"]
    states = pair.states(ended["executionArn"])
    assert [*own[:3], *pair.states(expected["executionArn"]), own[3]] == states


def test_retry_later_in_the_third_state_runs_the_second_once(scene: Scene):
    """The lock is kept, and the request waits for a person; nobody runs it again."""
    pair = pair_of(scene, LATER)
    request = scene.new_id("once")
    ended = pair.run_wrapped({"id": request})

    assert ("FAILED", "RetryLaterRefused") == (ended["status"], ended["error"])
    assert "The provider cannot be reached." in ended["cause"]
    lock = eventually(lambda: scene.lock(scene.key(request)))
    assert ("FAILED", None, True) == (lock.status, lock.ttl, scene.on_open_index(lock))
    assert ("FAILED", "RetryLaterRefused") == (
        (again := pair.client.start(request, {"id": request})).status,
        again.error,
    )
    assert 2 == pair.effects(request)
    scene.delete_lock(scene.key(request))


def test_retry_later_in_the_first_state_releases_the_lock(scene: Scene):
    """Nothing has happened, so the same request may be started again."""
    pair = pair_of(scene, SOON)
    request = scene.new_id("once")
    ended = pair.run_wrapped({"id": request})

    assert ("FAILED", "RetryLater") == (ended["status"], ended["error"])
    assert "The provider cannot be reached." == json.loads(ended["cause"])["errorMessage"]
    lock = scene.lock(scene.key(request))
    assert ("RELEASED", 0) == (lock.status, pair.effects(request))
    assert not pair.client.start(request, {"id": request}).duplicate
    eventually(lambda: (one := scene.lock(scene.key(request))).attempt == 2 and one.status == "RELEASED")


def test_a_request_by_hand_needs_nothing_but_its_payload(scene: Scene):
    """The references to the execution's input find it there as well."""
    pair = pair_of(scene, ORDER)
    request = scene.new_id("hand")
    sfn = scene.stack.boto3("stepfunctions")
    arn = sfn.start_execution(
        stateMachineArn=pair.client.state_machine_arn,
        name=request,
        input=json.dumps({"payload": {"amount": 5, "id": request}}),
    )["executionArn"]
    ended = eventually(
        lambda: (one := sfn.describe_execution(executionArn=arn))["status"] != "RUNNING" and one
    )
    assert ("SUCCEEDED", {"paid": 5}, 3) == (
        ended["status"],
        json.loads(ended["output"]),
        pair.effects(request),
    )


def test_the_machine_around_is_the_one_that_was_there(scene: Scene):
    """Its execution has the payload for its input, and nothing beside."""
    pair = pair_of(scene, AS_IT_IS)
    request = scene.new_id("once")
    pair.run_wrapped({"amount": 5, "id": request})
    sfn = scene.stack.boto3("stepfunctions")
    children = sfn.list_executions(stateMachineArn=pair.original)["executions"]
    inputs = [
        json.loads(sfn.describe_execution(executionArn=one["executionArn"])["input"]) for one in children
    ]
    assert {"amount": 5, "id": request} in inputs


@pytest.mark.full
@pytest.mark.parametrize("case", PRICED, ids=lambda one: f"{one.name} {one.form}")
def test_a_wrapped_machine_uses_what_cost_says_of_its_path(scene: Scene, case: Case):
    """Its transitions, as billed; and its writes, counted between the engine and the tables."""
    pair = pair_of(scene, case)
    request = scene.new_id("once")
    scene.faults.calls.clear()
    ended = pair.run_wrapped({**case.inputs[0], "id": request}, case.answers[0] if case.answers else None)
    priced = [call.body for call in scene.faults.calls]
    if case.form == "around":  # what it starts has a price of its own
        priced = [body for body in priced if body.get("TableName") == scene.stack.outputs["LocksTable"]]
    writes = sum("UpdateExpression" in body or "Item" in body for body in priced)

    sfn = scene.stack.boto3("stepfunctions")
    here = sfn.describe_state_machine(stateMachineArn=pair.client.state_machine_arn)
    entered = set(pair.entered(ended["executionArn"]))
    assumed = Assumptions(items=len(case.inputs[0].get("items", [None])))
    found = estimate(json.loads(here["definition"]), assumptions=assumed, through=entered, limit=500)
    # Branches and items run beside each other, in any order.
    (usage,) = [path.usage for path in found.listed if set(path.states) == entered]
    assert (transitions(scene.events(ended["executionArn"])), writes) == (usage.transitions, usage.writes)
    scene.delete_lock(scene.key(request))
