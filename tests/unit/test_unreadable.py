"""Records that something else has damaged: every reader names them, and none stumbles."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from steponce import Receipt, fence
from steponce.aws import times
from steponce.aws.dynamodb import Item, read_each
from steponce.callbacks.step import AwaitingStep
from steponce.cli import commands, target
from steponce.errors import RecordUnreadable, Refused
from steponce.locks.record import Lock
from steponce.locks.results import Results
from steponce.operator.erasure import erase, find_kept
from steponce.recovery.leases import lease_is_over
from steponce.report.story import Record, Waiting
from tests.unit.cli.test_locks import OUTPUTS, FakeStack
from tests.unit.one_machine import World

NOON = "2026-01-31T12:00:00.000Z"
SECRET = "tok_secret"
LOCK: Item = {
    "lockToken": {"S": "acme/o-1"},
    "status": {"S": "FAILED"},
    "openStatus": {"S": "FAILED#3"},
    "lockedBy": {"S": "arn:execution:order-1"},
    "executionName": {"S": "order-1"},
    "callId": {"S": "me"},
    "requestId": {"S": "order-1"},
    "attempt": {"N": "2"},
    "created": {"S": NOON},
    "expectedCompletion": {"S": NOON},
    "actualCompletion": {"S": NOON},
    "payloadHash": {"S": "ab12"},
    "expiresAt": {"S": NOON},
    "ttl": {"N": "1777723200"},
    "result": {"S": "1"},
    "failure": {"S": '{"Error": "Boom", "Cause": null}'},
    "interventions": {"S": '[{"at": "2026", "by": "ann", "what": "held", "why": "x"}]'},
}
STEP: Item = {
    "awaitingStepId": {"S": "as_1"},
    "step": {"S": "confirmation"},
    "status": {"S": "ANSWERING"},
    "openStatus": {"S": "ANSWERING#3"},
    "taskToken": {"S": "t"},
    "execution": {"S": "arn:execution:order-1"},
    "requestId": {"S": "order-1"},
    "lockToken": {"S": "acme/o-1"},
    "callId": {"S": "me"},
    "attempt": {"N": "1"},
    "enteredAt": {"S": NOON},
    "retryCount": {"N": "0"},
    "expiresAt": {"S": NOON},
    "answer": {"S": '{"outcome": "success", "output": 1}'},
    "claim": {"S": "c"},
    "answeredAt": {"S": NOON},
}
TEXTS = st.text(max_size=9) | st.sampled_from(
    [
        *(
            SECRET,
            NOON,
            "null",
            "[]",
            "{}",
            "[1]",
            "NaN",
            "1e400",
            "[-1e400]",
            "PENDING",
            "[" * 9_999,
            "9" * 9_999,
        ),
        *('{"Error": [1]}', '[{"at": null}]', '{"outcome": 1}', '{"outcome": "success"}'),
        '{"outcome": "failure", "error": 1, "cause": null}',
        *("9999-12-31T23:59:59.999-14:00", "0001-01-01T00:00:00+14:00", "2026-01-31T12:00:00"),
    ]
)
NUMBERS = st.sampled_from(
    ["1.5", "-1", "0", "1e5", "1E+125", "9" * 38, str(2**53), str(2**53 - 1), "0.1", "-9.9E-130"]
) | st.integers(-9, 10**38).map(str)
VALUES = st.one_of(
    st.none(),
    st.builds(lambda text: {"S": text}, TEXTS),
    st.builds(lambda number: {"N": number}, NUMBERS),
    st.sampled_from(
        [
            *({"NULL": True}, {"BOOL": False}, {"B": b"\xff"}, {"L": [{"S": SECRET}]}, {"M": {}}),
            *({"SS": [SECRET]}, {"NS": ["1"]}, {"BS": [b"x"]}),
        ]
    ),
)
Read = Callable[[Item], Any]


def read_lock(item: Item) -> Lock:
    """A lock, and everything that is made of one."""
    lock = Lock.from_item(item)
    json.dumps(asdict(Receipt.from_lock("order-1", lock, Results(), duplicate=True)), allow_nan=False)
    json.dumps(asdict(Record.from_lock(lock)), allow_nan=False)
    lock.is_reusable(NOON)
    lock.work_timeout(900)
    lease_is_over(lock)
    return lock


def read_step(item: Item) -> AwaitingStep:
    """A step, and everything that is made of one."""
    step = AwaitingStep.from_item(item)
    json.dumps(step.public())
    json.dumps(asdict(Waiting.from_step(step, "Wait", with_answer=True)))
    return step


def damaged(sound: Item, damage: dict[str, Any], key: str) -> Item:
    """An item with other attributes, some of them gone; its key is what the table demands."""
    return {
        name: value for name, value in ({**sound, **damage, key: sound[key]}).items() if value is not None
    }


def test_an_endless_number_is_no_json() -> None:
    """Python reads it, and writes `Infinity`, which nothing else reads."""
    with pytest.raises(RecordUnreadable, match="result is no JSON"):
        Lock.from_item(LOCK | {"result": {"S": "[1, -1e400]"}})


@pytest.mark.parametrize(
    ("sound", "read", "key"),
    [(LOCK, read_lock, "lockToken"), (STEP, read_step, "awaitingStepId")],
    ids=["lock", "step"],
)
@given(data=st.data())
def test_whatever_is_in_a_record_nothing_else_is_raised(data: Any, sound: Item, read: Read, key: str) -> None:
    """It is read, or refused with its key and one of its attributes; and what that holds is not quoted."""
    damage = data.draw(st.dictionaries(st.sampled_from(sorted(sound)), VALUES, min_size=1, max_size=3))
    item = damaged(sound, damage, key)
    skipped: list[RecordUnreadable] = []
    before, after = damaged(sound, {}, key), damaged(sound, {}, key)
    found = list(read_each([before, item, after], read, lambda error, _: skipped.append(error)))

    assert 3 == len(found) + len(skipped)
    assert [read(before), read(after)] == [found[0], found[-1]]
    for error in skipped:
        assert (sound[key]["S"], True) == (error.key, error.attribute in damage)
        assert error.attribute in str(error)
        assert SECRET not in str(error)


def test_nor_is_it_quoted_by_the_error_before() -> None:
    """A traceback shows that as well."""
    with pytest.raises(RecordUnreadable) as raised:
        Lock.from_item(LOCK | {"created": {"S": SECRET}})
    assert SECRET not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize(
    "name", ["status", "lockedBy", "callId", "executionName", "requestId", "attempt", "created"]
)
def test_a_lock_without_what_every_lock_has_is_none(name: str) -> None:
    """Never one with an empty field."""
    for damage in ({name: None}, {name: {"S": ""}}):
        with pytest.raises(RecordUnreadable, match=f"'acme/o-1' cannot be read: its attribute {name} "):
            Lock.from_item(damaged(LOCK, damage, "lockToken"))


@pytest.mark.parametrize(("seconds", "is_read"), [("99999999", True), ("100000000", False)])
def test_a_time_out_that_no_state_may_have_is_refused(seconds: str, is_read: bool) -> None:
    """Python's calendar ends before some of them would."""
    with nullcontext() if is_read else pytest.raises(RecordUnreadable, match="workTimeoutSeconds"):
        Lock.from_item(LOCK | {"workTimeoutSeconds": {"N": seconds}})


def test_times_at_the_end_of_the_calendar_are_read() -> None:
    """Nothing is added to them that has no text."""
    item = LOCK | {"lockedBy": {"S": "process/host/1"}, "created": {"S": times.NEVER}}
    assert not lease_is_over(Lock.from_item(item))


def test_a_record_of_another_library_is_no_lock() -> None:
    """Whatever it lacks; the workflow refuses it under the same name."""
    with pytest.raises(RecordUnreadable):
        Lock.from_item({"lockToken": {"S": "k"}, "status": {"S": "COMPLETED"}, "expiration": {"N": "1"}})


# -- Commands --------------------------------------------------------------------------------------


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One machine, which every command reaches, in a pipe."""
    with mock_aws():
        found = World()
        monkeypatch.setattr(target.Target, "reach", lambda _target: FakeStack(found, OUTPUTS))
        yield found


def put(world: World, table: str, item: Item) -> None:
    world.dynamodb.put_item(TableName=table, Item=item)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the one object."""
    code = commands.run(arguments)
    return code, json.loads(capsys.readouterr().out)


def test_lists_name_what_they_leave_out(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Locks and steps; the others are listed."""
    world.put("acme/sound")
    put(world, "locks", damaged(LOCK, {"attempt": {"N": "1.5"}}, "lockToken"))
    code, told = run(capsys, "locks", "list")
    assert (0, ["acme/sound"]) == (code, [lock["lockToken"] for lock in told["locks"]])
    ((key, attribute),) = [(one["key"], one["attribute"]) for one in told["unreadable"]]
    assert ("acme/o-1", "attempt") == (key, attribute)

    put(world, "steps", STEP)
    put(world, "steps", damaged(STEP, {"step": None}, "awaitingStepId") | {"awaitingStepId": {"S": "as_2"}})
    code, told = run(capsys, "awaiting", "list")
    assert (0, ["as_1"]) == (code, [step["awaitingStepId"] for step in told["awaitingSteps"]])
    assert [{"key": "as_2", "attribute": "step", "problem": "is missing"}] == told["unreadable"]


def test_people_are_told_in_a_line(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose key may steer no terminal."""
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    monkeypatch.setenv("COLUMNS", "160")
    item = damaged(LOCK, {"attempt": None}, "lockToken") | {"lockToken": {"S": "acme/\x1b[31m"}}
    put(world, "locks", item)
    assert 0 == commands.run(["locks", "list"])
    out = capsys.readouterr().out
    assert "1 record cannot be read" in out
    assert "acme/\\x1b[31m: its attribute attempt is missing" in out


@pytest.mark.parametrize(
    "command", [["locks", "inspect"], ["locks", "release", "--yes", "--why", "x"]], ids=lambda c: c[1]
)
def test_a_command_on_one_record_says_what_is_wrong_with_it(
    world: World, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """And what to do; nothing is written."""
    item = damaged(LOCK, {"failure": {"S": "{junk"}}, "lockToken")
    put(world, "locks", item)
    code, told = run(capsys, *command, "acme/o-1")
    assert (1, "RecordUnreadable") == (code, told["error"]["type"])
    assert "'acme/o-1' cannot be read: its attribute failure is no JSON" in told["error"]["message"]
    assert "Correct the attribute" in told["error"]["message"]
    key = {"lockToken": {"S": "acme/o-1"}}
    assert item == world.dynamodb.get_item(TableName="locks", Key=key)["Item"]


def test_the_client_and_the_fence_say_the_same(world: World) -> None:
    """Nobody takes a damaged record for an answer, or for a lock."""
    put(world, "locks", damaged(LOCK, {"attempt": {"N": "1.5"}}, "lockToken"))
    with pytest.raises(RecordUnreadable):
        world.client.status("order-1", lock_token="acme/o-1")
    work = {"lockToken": "acme/o-1", "callId": "me", "attempt": 1}
    with pytest.raises(RecordUnreadable):
        fence.check(work, world.machine.locks)


AT_REST = {"status": {"S": "COMPLETED"}, "openStatus": None}


@pytest.mark.parametrize(
    "damage",
    [{"attempt": {"N": "1.5"}}, {"callId": None}, {"result": {"S": "{"}}, {"status": {"N": "1"}}],
    ids=str,
)
def test_erasing_takes_what_cannot_be_read(
    world: World, damage: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """By its key, and says so; a customer's data does not stay because it is damaged."""
    put(world, "locks", damaged(LOCK, AT_REST | damage, "lockToken"))
    put(
        world,
        "steps",
        damaged(STEP, {"status": {"S": "LATE"}, "openStatus": None, "attempt": None}, "awaitingStepId"),
    )
    code, told = run(capsys, "erase", "acme/", "--yes", "--why", "asked")
    assert (0, "erased") == (code, told["done"])
    assert ["acme/o-1", "as_1"] == [one["key"] for one in told["unreadable"]]
    for table in ("locks", "steps"):
        assert 0 == world.dynamodb.scan(TableName=table)["Count"]


@pytest.mark.parametrize(
    ("table", "item"),
    [
        ("locks", damaged(LOCK, {"status": {"S": "INPROGRESS"}, "attempt": None}, "lockToken")),
        ("locks", damaged(LOCK, {"status": {"NULL": True}}, "lockToken")),
        ("steps", damaged(STEP, {"attempt": None}, "awaitingStepId")),
    ],
    ids=["in progress", "on the open index", "waiting"],
)
def test_what_cannot_be_read_and_may_be_open_is_not_erased(world: World, table: str, item: Item) -> None:
    """Its work may run."""
    put(world, table, item)
    with pytest.raises(Refused, match=r"may be open, and its .* cannot be read.*delete it there"):
        find_kept(world.machine, world.steps, "acme/")


def test_what_is_mended_or_changed_meanwhile_is_not_erased(world: World) -> None:
    """Only what the operator was shown."""
    put(world, "locks", damaged(LOCK, AT_REST | {"attempt": {"N": "1.5"}}, "lockToken"))
    kept = find_kept(world.machine, world.steps, "acme/")
    assert SECRET not in repr(kept)
    put(world, "locks", damaged(LOCK, AT_REST, "lockToken"))
    assert 1 == erase(world.machine, world.steps, kept)
    assert 1 == world.dynamodb.scan(TableName="locks")["Count"]
