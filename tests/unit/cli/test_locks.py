"""The commands for an operator: what they ask, what they say, and with which exit code they leave."""

from __future__ import annotations

import getpass
import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from moto import mock_aws

from steponce import Client
from steponce.aws import times
from steponce.cli import cancel_erase, commands, confirmation, target
from steponce.cli.console import links
from steponce.locks.record import Lock
from steponce.operator.left_work import work_left
from steponce.recovery.owner import Work
from steponce.workflow import INIT_TIME
from tests import covering
from tests.unit.cli.fakes import Run
from tests.unit.locks.large import bucket, kept
from tests.unit.one_machine import ARN, LONG_AGO, PAYLOAD, TO_WORK, World, arn, envelope

SIGNED = ("--yes", "--by", "alice", "--why", "nothing was charged")
OUTPUTS = {"AwaitingStepsTable": "steps", "WorkTimeoutSeconds": "60", "FunctionLogs": "/aws/s logs"}


class FakeStack(target.AwsStack):
    """A stack on AWS, made of one machine."""

    def __init__(self, world: World, outputs: Mapping[str, str]) -> None:
        self.name = "s"
        self.outputs = dict(outputs)
        self._world = world

    def client(self) -> Client:
        """By the rules of the Outputs, as far as they say what these tests change."""
        seconds, machine = self.outputs.get("WorkTimeoutSeconds"), self._world.client.machine
        machine.rules = replace(machine.rules, work_timeout_seconds=seconds and float(seconds))
        return self._world.client

    def boto3(self, service: str) -> Any:
        assert "dynamodb" == service
        return self._world.dynamodb


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One machine, which every command reaches, in a pipe; the user is Carol."""
    monkeypatch.setattr(getpass, "getuser", lambda: "carol")
    monkeypatch.setenv("COLUMNS", "160")
    with mock_aws():
        found = World()
        stack = FakeStack(found, OUTPUTS)
        monkeypatch.setattr(target.Target, "reach", lambda _target: stack)
        yield found


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody sits at a terminal and types these, one after the other."""
    typed: list[str] = []
    monkeypatch.setattr(confirmation, "on_a_terminal", lambda: True)
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)

    def type_next(prompt: str) -> str:
        sys.stdout.write(prompt)
        if not typed:
            raise KeyboardInterrupt
        return typed.pop(0)

    monkeypatch.setattr(click.termui, "visible_prompt_func", type_next)
    return typed


# -- the question ----------------------------------------------------------------------------------
COMMANDS = [
    ["locks", "release", "order-1"],
    ["locks", "complete", "order-1", "{file}"],
    ["locks", "retry", "order-1"],
    ["cancel", "order-1"],
    ["erase", "m/"],
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with a result."""
    path = tmp_path / "result.json"
    path.write_text('{"chargeId": "ch_1"}')
    return str(path)


def ready(world: World, command: list[str]) -> Lock:
    """Something that the command may be done to."""
    if "erase" in command:
        return world.put(status="COMPLETED", openStatus=None)
    if "cancel" not in command:
        return world.held()
    world.execution("order-1", "RUNNING", *TO_WORK)
    return world.put()


@covering.first(12, "command", COMMANDS, ids=lambda command: command[-2])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "There is no terminal to ask at. Say --yes if it is meant."),
        (["--why", "x"], "There is no terminal to ask at."),
        (["--yes"], "Say why with --why TEXT"),
        (["--yes", "--why", " "], "--why is blank."),
        (["--yes", "--why", "x" * 1_001], "--why has 1,001 characters; 1,000 are allowed."),
        (["--yes", "--why", "x", "--by", ""], "--by is blank."),
        (["--yes", "--why", "\udcff"], "--why is not UTF-8."),
    ],
)
def test_a_script_says_yes_and_why(
    world: World, run: Run, file: str, command: list[str], options: list[str], message: str
):
    """Nothing is done otherwise, and nobody waits for an answer that cannot come."""
    before = ready(world, command)

    code, told = run(*[word.format(file=file) for word in command], *options)

    assert (2, "UsageError") == (code, told["error"]["type"])
    assert message in told["error"]["message"]
    assert before == world.lock()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[-2])
def test_people_are_shown_what_it_is_about_before_they_are_asked(
    world: World, capsys: pytest.CaptureFixture[str], answers: list[str], file: str, command: list[str]
):
    """Whoever says no has changed nothing, and leaves with 1."""
    before = ready(world, command)
    answers += ["looked", "n"]

    assert 1 == commands.run([word.format(file=file) for word in command])

    said = capsys.readouterr()
    assert "" == said.out
    assert "order-1" in said.err
    assert "steponce: Declined: You have not confirmed it, so this was not done." in said.err
    assert (before, []) == (world.lock(), answers)


def test_who_says_no_is_not_told_that_nothing_was_written(
    world: World, capsys: pytest.CaptureFixture[str], answers: list[str]
):
    """What its dead owner was about to record is on record before the question."""
    states, failure = (*TO_WORK, "RecordError"), {"Error": "Boom", "Cause": None}
    world.execution("order-1", "ABORTED", *states, given=envelope() | {"failure": failure})
    world.put()
    answers += ["looked", "n"]

    assert 1 == commands.run(["locks", "release", "order-1"])

    assert "FAILED" == world.lock().status
    assert "Nothing was" not in capsys.readouterr().err


@pytest.mark.parametrize("action", ["release", "complete", "retry"])
def test_no_question_steers_the_terminal(
    world: World, capsys: pytest.CaptureFixture[str], answers: list[str], file: str, action: str
):
    """A lock token that a payload has given may hold what a terminal obeys, or a line of its own."""
    token = "m/\x1b]0;owned\x07\nLook"
    world.execution("order-1", "FAILED", *TO_WORK, "RecordError", error="Boom", given=envelope(token))
    failure = json.dumps({"Error": "Boom", "Cause": None})
    world.put(token, status="FAILED", openStatus="FAILED#3", failure=failure)
    answers += ["looked", "n"]

    assert 1 == commands.run(["locks", action, "order-1", *([file] if action == "complete" else [])])

    said = capsys.readouterr().err
    assert (False, True) == ("\x1b" in said, r"m/\x1b]0;owned\x07\nLook" in said)


def test_a_user_whose_name_is_no_text_gives_one(world: World, run: Run, monkeypatch: pytest.MonkeyPatch):
    """The record could not keep it."""
    monkeypatch.setattr(getpass, "getuser", lambda: "\udcff")
    before = world.held()

    code, told = run("locks", "release", "order-1", "--yes", "--why", "x")

    assert (2, True) == (code, "--by NAME" in told["error"]["message"])
    assert before == world.lock()


@pytest.mark.parametrize("typed", [["looked"], []], ids=["at the question", "at the reason"])
@pytest.mark.usefixtures("capsys")
def test_an_interrupted_question_changes_nothing(world: World, answers: list[str], typed: list[str]):
    """Ctrl-C is a no."""
    before = world.held()
    answers += typed

    assert 1 == commands.run(["locks", "release", "order-1"])
    assert before == world.lock()


def test_people_who_say_yes_are_on_record_with_their_reason(
    world: World, capsys: pytest.CaptureFixture[str], answers: list[str]
):
    """By the user's own name, unless --by says another."""
    world.held("[red]Boom[/red]")
    answers += ["looked", "y"]

    assert 0 == commands.run(["locks", "release", "order-1"])

    said = capsys.readouterr()
    assert "[red]Boom[/red]" in said.err
    assert "Released." in said.out
    assert "released by carol: looked" in said.out
    (done,) = world.lock().interventions
    assert ("carol", "released", "looked") == (done.by, done.what, done.why)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("  ", "The reason is blank."),
        ("caf\udce9", "The reason is not UTF-8."),
        ("x" * 1_001, "The reason has 1,001 characters; 1,000 are allowed."),
    ],
    ids=["blank", "no UTF-8", "too long"],
)
def test_a_reason_that_cannot_be_kept_is_asked_for_again(
    world: World, capsys: pytest.CaptureFixture[str], answers: list[str], typed: str, said: str
):
    """As --why refuses it."""
    world.held()
    answers += [typed, typed, "\tlooked ", "y"]

    assert 0 == commands.run(["locks", "release", "order-1"])

    assert 2 == capsys.readouterr().err.count(said)
    assert ["looked"] == [done.why for done in world.lock().interventions]


@pytest.mark.parametrize("before", [[], ["looked"]], ids=["at the reason", "at the question"])
def test_what_is_typed_in_another_encoding_changes_nothing(
    world: World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answers: list[str],
    before: list[str],
):
    """In most locales Python itself refuses it."""
    held = world.held()
    answers += before

    def read(_: str) -> str:
        return answers.pop(0) if answers else b"caf\xe9".decode()

    monkeypatch.setattr(click.termui, "visible_prompt_func", read)

    assert 2 == commands.run(["locks", "release", "order-1"])

    assert "What was typed is not UTF-8." in capsys.readouterr().err
    assert held == world.lock()


@pytest.mark.usefixtures("capsys")
def test_a_reason_that_is_given_is_not_asked_for(world: World, answers: list[str]):
    """Only the question is left; with --yes not even that."""
    world.held()
    answers += ["y"]

    assert 0 == commands.run(["locks", "release", "order-1", "--why", "looked"])
    assert [] == answers


def test_a_user_without_a_name_gives_one(world: World, run: Run, monkeypatch: pytest.MonkeyPatch):
    """As in many a container."""

    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    world.held()

    code, told = run("locks", "release", "order-1", "--yes", "--why", "x")

    assert (2, True) == (code, "--by NAME" in told["error"]["message"])
    assert 0 == run("locks", "release", "order-1", *SIGNED)[0]


# -- what they do ----------------------------------------------------------------------------------
def test_released(world: World, run: Run):
    """In a pipe it is one object, with who and why."""
    world.held()

    code, told = run("locks", "release", "order-1", *SIGNED)

    assert (0, "released", "alice", "nothing was charged", "RELEASED") == (
        code,
        told["done"],
        told["by"],
        told["why"],
        told["record"]["status"],
    )
    (done,) = told["record"]["interventions"]
    assert {"by": "alice", "what": "released", "why": "nothing was charged"} == {
        name: done[name] for name in ("by", "what", "why")
    }


def test_completed(world: World, run: Run, file: str):
    """With what the file holds."""
    world.held()

    code, told = run("locks", "complete", "m/order-1", file, *SIGNED)

    assert (0, "completed", {"chargeId": "ch_1"}) == (code, told["done"], told["record"]["result"])


def test_a_guard_s_lock_under_a_request_s_id_is_settled(world: World, run: Run):
    """By the commands that each answer names."""
    world.held()
    failure = json.dumps({"Error": "Boom", "Cause": None})
    world.put("order-1", status="FAILED", openStatus="FAILED#3", lockedBy="process/host/7", failure=failure)

    code, told = run("locks", "release", "order-1", *SIGNED)
    assert (3, "steponce locks inspect order-1 --token") == (code, told["error"]["next"][0])
    *_, release = run(*told["error"]["next"][0].split()[1:])[1]["next"]
    assert "steponce locks release order-1 --token" == release

    assert 0 == run(*release.split()[1:], *SIGNED)[0]
    assert ("RELEASED", "FAILED") == (world.lock("order-1").status, world.lock().status)


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        (["locks", "inspect", "other-1"], "complete"),
        (["show", "other-1"], "complete"),
        (["locks", "retry", "order-1", "--token", *SIGNED], "release"),
        (["erase", "order-1", *SIGNED], "inspect"),
    ],
    ids=lambda given: " ".join(given[:2]) if isinstance(given, list) else "",
)
def test_a_command_of_a_lock_is_not_taken_for_that_of_a_request(
    world: World, run: Run, file: str, command: list[str], verb: str
):
    """The lock token of other-1 is the id of order-1. The printed command means the record that was shown."""
    world.held()
    given = envelope("order-1") | {"requestId": "other-1"}
    world.execution("other-1", "FAILED", *TO_WORK, error="Boom", given=given)
    failure = json.dumps({"Error": "Boom", "Cause": None})
    plain = {"lockedBy": "process/host/7", "failure": failure}
    world.put("order-1", "other-1", status="FAILED", openStatus="FAILED#3", **plain)

    told = run(*command)[1]
    next_command = next(one for one in told.get("error", told)["next"] if f" {verb} " in one)
    signed = () if verb == "inspect" else SIGNED
    code, told = run(*next_command.replace("FILE", file).split()[1:], *signed)

    assert (0, "order-1", "other-1") == (code, told["record"]["lockToken"], told["record"]["requestId"])


def test_retried(world: World, run: Run):
    """With the receipt of the next attempt, and without the payload."""
    world.held()

    code, told = run("locks", "retry", "order-1", *SIGNED)

    assert (0, "retried", "RELEASED") == (code, told["done"], told["record"]["status"])
    assert ("RUNNING", arn("order-1--2")) == (told["receipt"]["status"], told["receipt"]["executionArn"])
    assert "tok_secret" not in json.dumps(told)


def test_a_retry_whose_start_is_refused_says_that_its_lock_is_released(world: World, run: Run):
    """And the same command starts it, once it is allowed."""
    world.held()
    world.sfn.refuse("start_execution", "AccessDeniedException")

    code, told = run("locks", "retry", "order-1", *SIGNED)

    assert (4, "StartRefused", "RELEASED") == (code, told["error"]["type"], world.lock().status)
    assert "The lock 'm/order-1' is released" in told["error"]["message"]
    assert ["steponce locks retry m/order-1 --token"] == told["error"]["next"]
    world.sfn.heal()
    assert (0, "retried") == (
        (told := run("locks", "retry", "m/order-1", "--token", *SIGNED))[0],
        told[1]["done"],
    )


def test_a_retry_whose_start_has_no_answer_does_not_ask_to_be_repeated(world: World, run: Run):
    """Exit code 4 would be an invitation to a script. The next command is to look."""
    world.held()
    world.sfn.lose_answers("start_execution")

    code, told = run("locks", "retry", "order-1", *SIGNED)

    assert (1, "StartUnknown") == (code, told["error"]["type"])
    assert ["steponce show order-1"] == told["error"]["next"]


def test_cancelled(world: World, run: Run):
    """With the record as it was settled, and what comes next."""
    ready(world, ["cancel"])

    code, told = run("cancel", "order-1", *SIGNED)

    assert (0, "cancelled", "Cancelled") == (code, told["done"], told["record"]["error"])
    assert "steponce locks retry m/order-1 --token" in told["next"]
    assert told["said"].endswith("The commands for it are refused until then.")
    code, told = run("locks", "retry", "order-1", *SIGNED)
    assert (3, True) == (code, "it may still run until" in told["error"]["message"])


def stays_inspected(run: Run, told: dict[str, Any]) -> None:
    """`locks inspect` says the same of the work."""
    inspected = run("locks", "inspect", "order-1")[1]
    assert [inspected[name] for name in OF_WORK] == [told[name] for name in OF_WORK]
    assert inspected["next"] == told["next"]


OF_WORK = ("workMayRunUntil", "workRunsIn", "workHidden", "workDoneBy")


@pytest.mark.parametrize("status", ["RUNNING", "ABORTED"])
def test_cancel_names_the_execution_that_goes_on_with_the_work(world: World, run: Run, status: str):
    """It named none, and commands that were all refused."""
    child = world.start_child(world.put(workTimeoutSeconds=60), status)
    events = world.sfn.histories[arn("order-1")]
    if status == "RUNNING":
        events.append(events.pop(-2))  # in its work

    code, told = run("cancel", "order-1", *SIGNED)

    assert (0, "cancelled", "FAILED") == (code, told["done"], told["record"]["status"])
    assert (child, []) == (told["workRunsIn"], told["next"])
    assert f"{child}, which it has started for its work, still runs. Wait for its end" in told["said"]
    stays_inspected(run, told)


def release(world: World, run: Run) -> str:
    """A request that a person has released after the failure of the execution that was its work."""
    failure = json.dumps({"Error": "States.TaskFailed", "Cause": None})
    child = world.start_child(
        world.put(status="FAILED", openStatus="FAILED#3", failure=failure, workTimeoutSeconds=60)
    )
    world.sfn.close(child, "FAILED", at=LONG_AGO)
    assert 0 == run("locks", "release", "order-1", *SIGNED)[0]
    return child


@pytest.mark.parametrize("has_record", [True, False])
@pytest.mark.parametrize("again", [True, False], ids=["redriven", "closed"])
def test_a_cancellation_that_is_final_names_the_execution_that_goes_on(
    world: World, run: Run, has_record: bool, again: bool
):
    """It said that everybody gets `Cancelled`, and nothing of the work that was running."""
    child = release(world, run)
    if again:
        world.sfn.executions[child]["status"] = "RUNNING"
    if not has_record:
        world.dynamodb.delete_item(TableName="locks", Key={"lockToken": {"S": "m/order-1"}})

    code, told = run("cancel", "order-1", *SIGNED)

    assert (0, "cancelled", None) == (code, told["done"], world.lock().open_status)
    assert (child if again else None) == told["workRunsIn"]
    assert again == (f"But the execution {child}, which it has started for its work, still" in told["said"])


@pytest.mark.parametrize("minutes", [0, 60])
def test_cancel_says_until_when_the_work_may_run(world: World, run: Run, minutes: int):
    """It said of work that had ended an hour before that it may still run."""
    closed = datetime.now(UTC) - timedelta(minutes=minutes)
    world.execution("order-1", "ABORTED", *TO_WORK, closed=closed)
    world.put(workTimeoutSeconds=5)

    told = run("cancel", "order-1", *SIGNED)[1]

    until = times.to_text(closed + timedelta(seconds=60) + INIT_TIME) if minutes == 0 else None
    assert until == told["workMayRunUntil"]
    assert (until is not None) == ("may still run" in told["said"])
    assert until is None or f"until {until} or later" in told["said"]
    assert "steponce locks retry m/order-1 --token" in told["next"]
    stays_inspected(run, told)


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        ("ThrottlingException", "a function until its time-out has passed"),
        ("ValidationException", "a function until its time-out has passed"),
        ("AccessDeniedException", "may not be looked at from here (AccessDeniedException)"),
    ],
)
def test_what_cancel_cannot_look_at_does_not_hide_that_it_is_done(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch, refused: str, says: str
):
    """The work is only looked at for the words."""
    world.execution("order-1", "ABORTED", *TO_WORK)
    world.put(workTimeoutSeconds=60)

    def then_refuse(*arguments: Any) -> Work | None:
        world.sfn.refuse("get_execution_history", refused)
        return work_left(*arguments)

    monkeypatch.setattr(cancel_erase, "work_left", then_refuse)

    code, told = run("cancel", "order-1", *SIGNED)

    assert (0, "cancelled") == (code, told["done"])
    assert says in told["said"]


ENDED: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "done": (
        ["CompleteRequest"],
        {"work": {"result": {"chargeId": "ch_1"}}},
        "its outcome, COMPLETED, stays",
    ),
    "declined": (
        ["RecordError"],
        {"failure": {"Error": "CardDeclined", "Cause": None}},
        "its outcome, FAILED with CardDeclined, waits for a person.",
    ),
}


@pytest.mark.parametrize(("states", "more", "says"), ENDED.values(), ids=ENDED)
def test_finished_work_that_is_only_recorded_is_not_called_cancelled(
    world: World, run: Run, states: list[str], more: dict[str, Any], says: str
):
    """Its execution was stopped before it had written that."""
    world.execution("order-1", "RUNNING", *TO_WORK, *states, given=envelope() | more)
    world.put()

    code, told = run("cancel", "order-1", *SIGNED)

    assert (0, "recorded", True) == (code, told["done"], told["stopped"])
    assert f"Its work had ended, so it is not cancelled: {says}" in told["said"]


def test_work_that_is_only_waited_for_no_longer_is_not_said_to_have_ended(world: World, run: Run):
    """Its error says that nobody waits for it any more. What can be done is refused for a while."""
    failure = {"Error": "States.Timeout", "Cause": None}
    world.execution("order-1", "RUNNING", *TO_WORK, "RecordError", given=envelope() | {"failure": failure})
    world.put()

    code, told = run("cancel", "order-1", *SIGNED)

    assert (0, "recorded", True) == (code, told["done"], told["stopped"])
    assert "is not cancelled: its outcome, FAILED with States.Timeout, waits for a person" in told["said"]
    assert "Its work had ended" not in told["said"]
    assert told["said"].endswith("The commands for it are refused until then.")


@pytest.mark.parametrize(
    ("status", "open_status"), [("INPROGRESS", "INPROGRESS#3"), ("COMPLETED", None), ("FAILED", "FAILED#3")]
)
def test_a_request_that_is_stopped_beside_another_s_record_is_not_called_cancelled(
    world: World, run: Run, status: str, open_status: str | None
):
    """The record is the other request's, and does not say that this one is cancelled."""
    world.execution("order-9", "RUNNING", given=envelope() | {"callId": "call-9"})
    world.execution("order-1", "RUNNING", "AcquireLock")
    world.put(name="order-9", callId="call-9", status=status, openStatus=open_status)

    code, told = run("cancel", "order-1", *SIGNED)

    assert (0, "stopped", True) == (code, told["done"], told["stopped"])


def ends(world: World) -> None:
    world.sfn.close("order-1--3", "SUCCEEDED")


def takes_the_lock(world: World, is_now: str = "RUNNING", **record: Any) -> None:
    """The message of the request has come back, and its next attempt has the lock."""
    world.execution("order-1--4", is_now, *TO_WORK, given=envelope("acme/1") | {"callId": "call-2"})
    world.put("acme/1", "order-1--4", callId="call-2", attempt=4, **record)


def has_run(world: World) -> None:
    takes_the_lock(world, "SUCCEEDED", status="COMPLETED", openStatus=None, result="1")


def changes_nothing(_world: World) -> None:
    """Nobody did anything; only the record keeps changing."""


MEANWHILE: dict[str, tuple[bool, Callable[[World], None], str]] = {
    "ended": (True, ends, "show"),
    "runs again": (False, takes_the_lock, "cancel"),
    "has run": (False, has_run, "show"),
    "keeps changing": (False, changes_nothing, "show"),
}


@pytest.mark.parametrize(("is_open", "change", "verb"), MEANWHILE.values(), ids=MEANWHILE)
def test_what_follows_a_refused_cancel_finds_the_request_by_its_lock_token(
    world: World,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    is_open: bool,
    change: Callable[[World], None],
    verb: str,
):
    """Its first attempts are forgotten. It named the id alone, by which nothing is found."""
    error = None if is_open else "RetryLater"
    states, status = (*TO_WORK, "ReleaseLock")[: 3 if is_open else 4], "RUNNING" if is_open else "FAILED"
    world.execution("order-1--3", status, *states, error=error, given=envelope("acme/1"))
    freed = {} if is_open else {"status": "RELEASED", "openStatus": None, "ttl": 4_000_000_000}
    world.put("acme/1", "order-1--3", attempt=3, **freed)

    def think(asked: confirmation.Confirmation, _shown: Any, _question: str) -> str:
        change(world)
        return str(asked.why)

    with monkeypatch.context() as patch:
        patch.setattr(confirmation.Confirmation, "ask", think)
        if change is changes_nothing:
            patch.setattr(world.machine.locks, "cancel", lambda *_, **__: False)
        code, told = run("cancel", "order-1", "--key", "acme/1", *SIGNED)

    assert (3, [f"steponce {verb} order-1 --key acme/1"]) == (code, told["error"]["next"])
    pasted = shlex.split(told["error"]["next"][0])[1:]
    assert 0 == run(*pasted, *(SIGNED if verb == "cancel" else ()))[0]


def test_what_follows_a_cancel_in_vain_finds_the_request_by_its_lock_token(world: World, run: Run):
    """As above, for a request that has its answer."""
    has_run(world)

    code, told = run("cancel", "order-1", "--key", "acme/1", *SIGNED)

    assert (3, ["steponce show order-1 --key acme/1"]) == (code, told["error"]["next"])
    assert 0 == run("show", "order-1", "--key", "acme/1")[0]


def test_cancelled_after_its_end(world: World, run: Run, monkeypatch: pytest.MonkeyPatch):
    """It says that it has stopped nothing."""
    world.execution("order-1", "RUNNING", "IsRequestPrepared")

    def think(asked: confirmation.Confirmation, _shown: Any, _question: str) -> str:
        world.sfn.close("order-1", "FAILED", "LimitChanged")
        return str(asked.why)

    monkeypatch.setattr(confirmation.Confirmation, "ask", think)

    code, told = run("cancel", "order-1", *SIGNED)

    assert (0, "cancelled", "Cancelled", False) == (
        code,
        told["done"],
        told["record"]["error"],
        told["stopped"],
    )
    assert told["said"].startswith("Its execution had ended by itself.")


def test_erased(world: World, run: Run):
    """With the lock tokens, and what stays."""
    ready(world, ["erase"])
    world.step("m/order-1")

    code, told = run("erase", "m/", *SIGNED)

    assert (0, "erased", ["m/order-1"], 1) == (code, told["done"], told["locks"], told["awaitingSteps"])
    assert any("dead-letter queue" in one for one in told["stays"])
    code, again = run("erase", "m/", *SIGNED)
    assert (0, "nothing", []) == (code, again["done"], again["locks"])
    assert told.keys() == again.keys()
    assert [told[name] for name in ("by", "why", "stays")] == [again[name] for name in ("by", "why", "stays")]


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        (["locks", "release", "order-1"], "kept with the record"),
        (["locks", "retry", "order-1"], "kept with the record, unless its lock is free already"),
        (["erase", "m/"], "printed with the answer, since the record goes"),
    ],
    ids=["release", "retry", "erase"],
)
@pytest.mark.usefixtures("answers")
def test_it_is_said_where_the_reason_goes(
    world: World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    kept: str,
):
    """In the question and in the help."""
    ready(world, command)
    asked: list[str] = []

    def interrupt(prompt: str) -> str:
        asked.append(prompt)
        raise KeyboardInterrupt

    monkeypatch.setattr(click.termui, "visible_prompt_func", interrupt)

    assert 1 == commands.run(command)
    assert f"Why ({kept})" in capsys.readouterr().err + asked[0]
    assert 0 == commands.run([*command, "--help"])
    assert f"Why; {kept}." in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("answers")
def test_one_of_a_kind_is_said_in_the_singular(world: World, capsys: pytest.CaptureFixture[str]):
    """And none in the plural."""
    ready(world, ["erase"])

    assert 0 == commands.run(["erase", "m/", *SIGNED])
    assert "Erased 1 lock record and 0 awaiting steps." in capsys.readouterr().out


@pytest.mark.usefixtures("terminal_of_many")
def test_people_see_what_would_be_erased(capsys: pytest.CaptureFixture[str]):
    """Some of it where it is much, and always how much, what stays, and what happens to a late message."""
    assert 1 == commands.run(["erase", "acme/", "--why", "x"])

    err = capsys.readouterr().err
    assert all(
        text in err
        for text in (
            "103 lock records and 0 awaiting steps",
            "COMPLETED   acme/000",
            "acme/099",
            "and 3 more",
            "delivered once more runs again",
            "Not erased: the executions' histories",
        )
    )
    assert "acme/100" not in err


@pytest.fixture
def terminal_of_many(world: World, answers: list[str]) -> None:
    """Somebody who says no, and a customer with many records."""
    answers += ["n"]
    for number in range(103):
        world.put(f"acme/{number:03}", status="COMPLETED", openStatus=None)


# -- what they refuse ------------------------------------------------------------------------------
def test_a_refusal_leaves_with_3(world: World, run: Run):
    """The record does not allow it; nothing is asked."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    world.put()

    code, told = run("locks", "release", "order-1", *SIGNED)

    assert (3, "Refused") == (code, told["error"]["type"])


@pytest.mark.parametrize("command", COMMANDS[:3] + COMMANDS[4:], ids=lambda command: command[-2])
def test_a_record_that_changes_at_the_question_leaves_with_3(
    world: World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    command: list[str],
):
    """Somebody else was quicker, and what they wrote stays."""
    ready(world, command)

    def think(_confirmation: confirmation.Confirmation, _shown: Any, _question: str) -> str:
        world.put(callId="call-2", lockedBy=arn("order-1--2"), attempt=2)
        return "because"

    monkeypatch.setattr(confirmation.Confirmation, "ask", think)

    assert 3 == commands.run([word.format(file=file) for word in command] + list(SIGNED))
    assert "RecordChanged" == json.loads(capsys.readouterr().out)["error"]["type"]
    assert ("INPROGRESS", "call-2", ()) == (
        (now := world.lock()).status,
        now.call_id,
        now.interventions,
    )


@pytest.mark.usefixtures("world")
def test_what_is_not_there_leaves_with_1(run: Run):
    """A record, an execution."""
    assert [(1, "LockNotFound"), (1, "LockNotFound"), (1, "RequestNotFound")] == [
        (code, told["error"]["type"])
        for code, told in (
            run("locks", "inspect", "nobody"),
            run("locks", "release", "nobody", *SIGNED),
            run("cancel", "nobody", *SIGNED),
        )
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["locks"], "Say which command. (Help: steponce locks --help)"),
        (["locks", "list", "--failed", "--overdue"], "exclude each other"),
        (["locks", "list", "--limit", "0"], "'--limit'"),
        (["locks", "release"], "Missing argument 'KEY'"),
        (["locks", "release", " ", *SIGNED], "it is blank"),
        (["locks", "complete", "order-1", *SIGNED], "Missing argument 'FILE'"),
        (["erase", "", *SIGNED], "everybody's"),
        (["cancel"], "Missing argument 'REQUEST_ID'"),
    ],
)
@pytest.mark.usefixtures("world")
def test_wrong_usage_leaves_with_2(run: Run, arguments: list[str], message: str):
    """And says what is wrong."""
    code, told = run(*arguments)

    assert (2, "UsageError") == (code, told["error"]["type"])
    assert message in told["error"]["message"]


@pytest.mark.parametrize("content", ["", "{", '{"a": 1, "a": 2}', "9007199254740992"])
def test_a_bad_result_is_refused_before_anything_is_written(
    world: World, run: Run, tmp_path: Path, content: str
):
    """It would be everybody's answer."""
    path = tmp_path / "bad.json"
    path.write_text(content)
    before = world.held()

    code, told = run("locks", "complete", "order-1", str(path), *SIGNED)

    assert (2, "InvalidPayload") == (code, told["error"]["type"])
    assert before == world.lock()


def test_a_large_result_goes_to_the_bucket(world: World, run: Run, tmp_path: Path):
    """It may be larger than any payload: the work could have kept it, and now a person does."""
    world.client.machine.results = bucket()
    path = tmp_path / "large.json"
    path.write_text(json.dumps("x" * 2_000_000))
    world.held()

    code, told = run("locks", "complete", "order-1", str(path), *SIGNED)

    assert (0, "completed") == (code, told["done"])
    assert "x" * 2_000_000 == world.client.start("order-1", PAYLOAD).result


def test_results_in_two_buckets_are_erased_one_bucket_after_the_other(world: World, run: Run):
    """Either was refused because of the other, so nothing was ever erased."""
    old, new = bucket("old"), bucket("new")
    for results, token in ((old, "m/order-1"), (new, "m/order-2")):
        reference = kept(results, '{"pages":1}', lock_token=token)
        world.put(token, status="COMPLETED", openStatus=None, result=reference.to_json())

    world.client.machine.results = new
    code, told = run("erase", "m/", *SIGNED)
    assert (3, "erased", ["m/order-2"], {"m/order-1": "old"}) == (
        code,
        told["done"],
        told["locks"],
        told["elsewhere"],
    )
    code, told = run("erase", "m/", *SIGNED)
    assert (3, "(old) stays: 'm/order-1'. Let the parameter ResultBucket name") == (
        code,
        re.search(r"\(old\).*name", told["error"]["message"])[0],
    )
    assert told["error"]["message"].endswith("Nothing was erased.")

    world.client.machine.results = old
    assert (0, ["m/order-1"], {}) == (
        (answer := run("erase", "m/", *SIGNED))[0],
        answer[1]["locks"],
        answer[1]["elsewhere"],
    )
    assert [] == old.objects("m/order-1") + new.objects("m/order-2")


def test_a_result_that_is_too_large_is_refused(world: World, run: Run, tmp_path: Path):
    """No workflow could replay it."""
    path = tmp_path / "large.json"
    path.write_text(json.dumps("x" * 262_143))
    world.held()

    code, told = run("locks", "complete", "order-1", str(path), *SIGNED)

    assert (2, "OutputTooLarge") == (code, told["error"]["type"])


# -- looking ---------------------------------------------------------------------------------------
@pytest.fixture
def many(world: World) -> World:
    """Three in progress, one of them late; and two that wait for a person."""
    for day, status in enumerate(("INPROGRESS", "FAILED", "INPROGRESS", "FAILED", "INPROGRESS"), 1):
        due = "2020-01-01T00:00:00.000Z" if day == 1 else f"2999-01-0{day}T00:00:00.000Z"
        world.put(f"m/{day}", str(day), status=status, openStatus=f"{status}#{day}", expectedCompletion=due)
    return world


@pytest.mark.parametrize(
    ("options", "tokens", "more"),
    [
        ([], "12345", 0),
        (["--running"], "135", 0),
        (["--overdue"], "1", 0),
        (["--failed"], "24", 0),
        (["--limit", "2"], "12", 3),
        (["--failed", "--limit", "1"], "2", 1),
    ],
)
@pytest.mark.usefixtures("many")
def test_the_list_begins_with_those_that_wait_the_longest(
    run: Run, options: list[str], tokens: str, more: int
):
    """And says how many it leaves out."""
    code, told = run("locks", "list", *options)

    listed = [one["lockToken"] for one in told["locks"]]
    assert (0, tokens, more) == (code, "".join(one[-1] for one in listed), told["more"])
    assert [one.endswith("1") for one in listed] == [one["overdue"] for one in told["locks"]]


@pytest.mark.usefixtures("many", "answers")
def test_people_get_the_list_as_a_table(capsys: pytest.CaptureFixture[str]):
    """With the rest said."""
    assert 0 == commands.run(["locks", "list", "--limit", "4"])

    out = capsys.readouterr().out
    assert all(text in out for text in ("m/1", "INPROGRESS", "2020-01-01T00:00:00", "And 1 more"))


@pytest.mark.usefixtures("world", "answers")
def test_people_are_told_that_nothing_is_open(capsys: pytest.CaptureFixture[str]):
    """An empty table says less."""
    assert 0 == commands.run(["locks", "list"])
    assert "No such lock is open." in capsys.readouterr().out


def test_inspect_tells_of_record_owner_and_next_commands(world: World, run: Run):
    """By either name; on AWS with links."""
    world.held()

    code, told = run("locks", "inspect", "order-1")

    assert (
        0,
        {"record", "owner", "workMayRunUntil", "workRunsIn", "workHidden", "workDoneBy", "links", "next"},
    ) == (code, set(told))
    assert ("m/order-1", "Boom") == (told["record"]["lockToken"], told["record"]["error"])
    assert ("FAILED", "RecordError", arn("order-1")) == (
        told["owner"]["status"],
        told["owner"]["lastState"],
        told["owner"]["executionArn"],
    )
    assert "steponce locks retry m/order-1 --token" in told["next"]
    assert {"execution", "log"} == set(told["links"])


def waits_for_two(world: World, left: str = "") -> list[str]:
    """order-1 waits in two branches: the ids of their steps. The exit of `left` is on record."""
    world.execution("order-1", "RUNNING")
    world.put()
    events: list[dict[str, Any]] = [{"type": "ParallelStateEntered"}, {"type": "ParallelStateStarted"}]
    events[0]["stateEnteredEventDetails"] = {"name": "Both"}
    for step_id, name in (("call-1", "bank"), ("call-2", "shop")):
        world.step("m/order-1", "PENDING", step_id, name=name)
    found = {step.step: step for step in world.steps.open()}
    for name, step in found.items():
        events.append({"type": "TaskStateEntered", "stateEnteredEventDetails": {"name": name}})
        events[-1]["previousEventId"] = 2
        output = json.dumps({"Payload": step.public()})
        events.append({"type": "TaskSubmitted", "taskSubmittedEventDetails": {"output": output}})
        if name == left:
            events.append({"type": "TaskStateExited", "stateExitedEventDetails": {"name": name}})
    world.sfn.histories[arn("order-1")] = [
        {"timestamp": LONG_AGO, "id": number, "previousEventId": number - 1} | one
        for number, one in enumerate(events, 1)
    ]
    return [step.id for step in sorted(found.values(), key=lambda step: step.answer_by)]


def test_inspect_names_every_step_that_waits(
    world: World, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """The one that ends first is `waitsFor`, as if it were alone."""
    ids = waits_for_two(world)

    owner = run("locks", "inspect", "order-1")[1]["owner"]

    assert (ids[0], ids) == (owner["waitsFor"], owner["waitsForAll"])
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    commands.run(["locks", "inspect", "order-1"])
    out = capsys.readouterr().out
    assert all(step_id in out for step_id in ids)
    assert re.search(r"RUNNING, in (bank and shop|shop and bank)\b", out)


@pytest.mark.parametrize("left", ["bank", "shop"])
def test_inspect_does_not_name_a_step_whose_state_was_left(world: World, run: Run, left: str):
    """Its record stays PENDING until somebody answers."""
    ids = waits_for_two(world, left)

    owner = run("locks", "inspect", "order-1")[1]["owner"]

    (step,) = [one for one in world.steps.open() if one.step != left]
    assert step.id in ids
    assert (step.id, [step.id]) == (owner["waitsFor"], owner["waitsForAll"])


@pytest.mark.parametrize("error", ["States.Timeout", "Boom"])
def test_inspect_says_until_when_its_commands_are_refused(
    world: World,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: str,
):
    """The refusal names the same time."""
    world.execution("order-1", "FAILED", *TO_WORK, "RecordError", error=error, closed=datetime.now(UTC))
    failure = json.dumps({"Error": error, "Cause": None})
    world.put(status="FAILED", openStatus="FAILED#3", failure=failure, workTimeoutSeconds=900)

    until = run("locks", "inspect", "order-1")[1]["workMayRunUntil"]
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    commands.run(["locks", "inspect", "order-1"])
    code = commands.run(["locks", "release", "order-1", *SIGNED])
    said = capsys.readouterr()

    if error == "Boom":
        assert (None, 0, False) == (until, code, "refused" in said.out)
    else:
        assert (3, True) == (code, f"until {until}; try again" in said.err)
        assert f"until {until} or later" in said.out


def test_inspect_names_the_execution_that_is_the_work_of_a_dead_owner(
    world: World, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Until its end each command is refused."""
    child = world.start_child(world.put(workTimeoutSeconds=60), "ABORTED")

    told = run("locks", "inspect", "order-1")[1]
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    commands.run(["locks", "inspect", "order-1"])

    assert (None, child) == (told["workMayRunUntil"], told["workRunsIn"])
    assert f"until {child} has ended" in " ".join(capsys.readouterr().out.split())


def test_inspect_names_only_what_works_while_the_execution_that_is_the_work_runs_again(
    world: World, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Its request waits for a person. It named three commands that were all refused."""
    failure = json.dumps({"Error": "States.TaskFailed", "Cause": None})
    lock = world.put(status="FAILED", openStatus="FAILED#3", failure=failure, workTimeoutSeconds=60)
    child = world.start_child(lock)

    told = run("locks", "inspect", "order-1")[1]
    assert (None, child, []) == (told["workMayRunUntil"], told["workRunsIn"], told["next"])

    world.sfn.executions[child]["output"] = "7"
    world.sfn.close(child, "SUCCEEDED")
    told = run("locks", "inspect", "order-1")[1]
    assert (None, ["steponce locks complete m/order-1 FILE --token"]) == (told["workRunsIn"], told["next"])
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    commands.run(["locks", "inspect", "order-1"])
    assert f"{child}, which is its work and has succeeded" in " ".join(capsys.readouterr().out.split())


def test_inspect_says_until_when_a_dead_owner_cannot_be_settled(
    world: World, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Its work may run, and so each command is refused."""
    world.execution("order-1", "ABORTED", *TO_WORK, closed=datetime.now(UTC))
    world.put(workTimeoutSeconds=900)

    until = run("locks", "inspect", "order-1")[1]["workMayRunUntil"]
    told = run("locks", "release", "order-1", *SIGNED)[1]["error"]
    shown = run("show", "order-1")[1]
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    commands.run(["locks", "inspect", "order-1"])

    assert f"may run until {until} or later" in told["message"]
    assert ["steponce show order-1"] == told["next"] == shown["next"]
    assert f"until {until} or later" in capsys.readouterr().out


@pytest.mark.parametrize("status", ["INPROGRESS", "FAILED"])
def test_the_reports_know_a_time_out_that_was_raised_since(world: World, run: Run, status: str):
    """`show` named a start that settles nothing, or commands that were refused: the record says 5 seconds."""
    closed = datetime.now(UTC) - timedelta(seconds=30)
    failure = json.dumps({"Error": "States.Timeout", "Cause": None}) if status == "FAILED" else None
    world.execution("order-1", "ABORTED", *TO_WORK, closed=closed)
    world.put(status=status, openStatus=f"{status}#3", failure=failure, workTimeoutSeconds=5)

    until = run("locks", "inspect", "order-1")[1]["workMayRunUntil"]

    assert until == times.to_text(closed + timedelta(seconds=60) + INIT_TIME)
    assert f"may run until {until} or later" in run("show", "order-1")[1]["summary"]
    assert until in run("locks", "release", "order-1", *SIGNED)[1]["error"]["message"]


def test_a_wait_knows_a_time_out_that_was_raised_since(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """It named a start that settles nothing. A longer one on record counts."""
    passed = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.append(passed.pop() + seconds))
    closed = datetime.now(UTC) - timedelta(seconds=30)
    world.execution("order-1", "ABORTED", *TO_WORK, closed=closed)
    for recorded, lasts in ((5, 60), (900, 900)):
        world.put(workTimeoutSeconds=recorded)
        until = times.to_text(closed + timedelta(seconds=lasts) + INIT_TIME)

        told = run("wait", "order-1")[1]["error"]

        assert ("Unsettled", ["steponce show order-1"]) == (told["type"], told["next"])
        assert f"may run until {until} or later" in told["message"]
        assert until in run("show", "order-1")[1]["summary"]


def test_another_machine_s_time_out_is_not_this_one_s(world: World, run: Run):
    """Its own record decides, as for the functions that settle it."""
    other = ARN.replace(":m", ":other").replace(":stateMachine:", ":execution:") + ":order-1"
    world.execution("order-1", "ABORTED", *TO_WORK)
    world.sfn.put(other, input=json.dumps({"callId": "call-1"}))
    world.sfn.close(other, "ABORTED", at=datetime.now(UTC) - timedelta(seconds=30))
    world.put(lockedBy=other, workTimeoutSeconds=5)

    assert run("locks", "inspect", "order-1")[1]["workMayRunUntil"] is None


def test_inspect_advises_as_show_for_a_released_request_that_was_redriven(world: World, run: Run):
    """It named a retry, which ran the work once more, or started nothing and said "Retried"."""
    released = times.to_text(LONG_AGO)
    world.put(status="RELEASED", openStatus=None, ttl=4_000_000_000, actualCompletion=released)
    world.execution("order-1", "RUNNING", *TO_WORK)
    world.sfn.executions[arn("order-1")]["redriveCount"] = 1

    assert ["steponce wait order-1"] == run("locks", "inspect", "order-1")[1]["next"]
    assert ["steponce wait order-1"] == run("show", "order-1")[1]["next"]
    told = run("locks", "retry", "order-1", *SIGNED)[1]
    assert ("running", [], True) == (told["done"], world.sfn.started, told["receipt"]["duplicate"])

    world.sfn.close("order-1", "FAILED", "Boom")
    looked = run("locks", "inspect", "order-1")[1]["next"]
    assert looked == run("show", "order-1")[1]["next"]
    assert ["steponce locks complete m/order-1 FILE --token", "steponce start order-1 FILE"] == looked


@pytest.mark.parametrize("error", ["AlreadyInProgress", "States.Runtime"])
@pytest.mark.parametrize("released", [1, 2])
def test_a_released_request_that_was_redriven_runs_however_a_later_attempt_has_ended(
    world: World, run: Run, file: str, released: int, error: str
):
    """`cancel` said that nothing runs, `status` said FAILED, and a retry ran the work beside it."""
    Path(file).write_text(json.dumps(PAYLOAD))
    name, later = ("order-1", "order-1--2", "order-1--3")[released - 1 : released + 1]
    world.execution("order-1", "FAILED", "AcquireLock", error="LockContended")
    world.execution(name, "RUNNING", *TO_WORK)
    world.sfn.executions[arn(name)]["redriveCount"] = 1
    given, closed = envelope() | {"callId": "call-9"}, datetime.now(UTC)
    world.execution(later, "FAILED", "AcquireLock", error=error, given=given, closed=closed)
    free = {"status": "RELEASED", "openStatus": None, "ttl": 4_000_000_000}
    before = world.put(name=name, **free, actualCompletion=times.to_text(LONG_AGO))

    for look in (["show", "order-1"], ["locks", "inspect", "order-1"]):
        assert ["steponce wait order-1"] == run(*look)[1]["next"]
    receipts = [run("status", "order-1")[1], run("start", "order-1", file)[1]]
    receipts.append(run("locks", "retry", "order-1", *SIGNED)[1]["receipt"])
    assert [("RUNNING", arn(name))] * 3 == [(one["status"], one["executionArn"]) for one in receipts]
    assert ([], before) == (world.sfn.started, world.lock())

    told = run("cancel", "order-1", *SIGNED)[1]
    assert ("cancelled", True, arn(name)) == (told["done"], told["stopped"], told["executionArn"])
    assert "its work may have taken effect" in told["said"]


DEAD: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "in its work": (["ABORTED", *TO_WORK], {}, "start"),
    "unwritten": (["FAILED", *TO_WORK], {"error": "States.DataLimitExceeded"}, "locks complete"),
    "completing": (["ABORTED", *TO_WORK, "CompleteRequest"], {}, "start"),
    "failing": (["ABORTED", *TO_WORK, "RecordError"], {}, "start"),
    "forgotten": ([], {}, "start"),
}


@pytest.mark.parametrize(("states", "ended", "then"), DEAD.values(), ids=DEAD)
def test_what_follows_a_dead_owner_s_lock_is_not_refused(
    world: World, run: Run, file: str, tmp_path: Path, states: list[Any], ended: dict[str, Any], then: str
):
    """`inspect` advised to release what the next command records as its owner's final answer."""
    outcome = {"work": {"result": 1}, "failure": {"Error": "Boom", "Cause": None}}
    payload = tmp_path / "payload.json"
    payload.write_text(json.dumps(PAYLOAD))
    if states:
        world.execution("order-1", *states, **ended, given=envelope() | outcome)
    world.put()

    (show,) = run("locks", "inspect", "order-1")[1]["next"]
    (command,) = run(*show.split()[1:])[1]["next"]

    assert command.startswith(f"steponce {then} ")
    is_start = then == "start"
    words = command.replace("FILE", str(payload) if is_start else file).split()[1:]
    assert 0 == run(*words, *(() if is_start else SIGNED))[0]


def test_a_forgotten_owner_s_request_is_shown_by_its_own_lock_token(world: World, run: Run):
    """Only its execution could say that it has one."""
    world.put("acme/1")

    (show,) = run("locks", "inspect", "acme/1", "--token")[1]["next"]
    (start,) = run(*show.split()[1:])[1]["next"]

    assert "--key acme/1" in start


def test_a_held_lock_whose_owner_s_name_another_execution_has_is_not_said_to_be_retried(
    world: World, run: Run
):
    """A message came again when the name was free again, and was turned away."""
    world.held()
    world.execution("order-1", "FAILED", "AcquireLock", error="Boom", given=envelope() | {"callId": "call-9"})

    for command in (["show", "order-1"], ["locks", "inspect", "order-1"]):
        told = run(*command)[1]
        assert ["complete", "release"] == [one.split()[2] for one in told["next"]]


def test_a_held_lock_whose_payload_is_forgotten_is_not_said_to_be_retried(world: World, run: Run):
    """`locks retry` takes the payload from the execution."""
    world.held()
    world.sfn.executions.clear()

    for command in (["show", "order-1"], ["locks", "inspect", "order-1"]):
        told = run(*command)[1]
        assert ["complete", "release"] == [one.split()[2] for one in told["next"]]


@pytest.mark.parametrize(
    ("command", "next_command"),
    [
        (
            ["locks", "inspect", "order-1"],
            "steponce locks complete m/order-1 FILE --token --stack payments-eu",
        ),
        (["show", "order-1"], "steponce locks complete m/order-1 FILE --token --stack payments-eu"),
        (["cancel", "order-1", *SIGNED], "steponce locks release m/order-1 --token --stack payments-eu"),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
@pytest.mark.usefixtures("answers")
def test_a_narrow_terminal_breaks_no_command(
    world: World,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    next_command: str,
):
    """Pasted, its first line would run by itself, and on another stack."""
    ready(world, command)
    monkeypatch.setenv("COLUMNS", "30")

    assert 0 == commands.run([*command, "--stack", "payments-eu"])

    assert f"  {next_command}\n" in capsys.readouterr().out


def test_inspect_does_not_take_a_stranger_for_the_owner(world: World, run: Run):
    """Another execution has its name by now."""
    world.execution("order-1", "RUNNING", *TO_WORK)
    world.put(callId="an older call")

    assert "GONE" == run("locks", "inspect", "order-1")[1]["owner"]["status"]


@pytest.mark.usefixtures("answers")
def test_inspect_tells_people_who_has_changed_a_record(world: World, capsys: pytest.CaptureFixture[str]):
    """In lines that nothing in them can steer."""
    told = [{"at": "2026-01-31T12:00:00.000Z", "by": "bob", "what": "held", "why": "\x1b]0;[bold]look"}]
    world.put(interventions=json.dumps(told))
    world.execution("order-1", "RUNNING", "DoWork")

    assert 0 == commands.run(["locks", "inspect", "order-1"])

    out = capsys.readouterr().out
    assert r"2026-01-31T12:00:00.000Z  held by bob: \x1b]0;[bold]look" in out
    assert "RUNNING, in DoWork" in out
    assert "steponce cancel order-1" in out
    assert "\x1b]0" not in out


def test_links_lead_to_the_console_of_the_partition():
    """The log group and what is searched in it are encoded the way that the console reads them."""
    found = links(arn("order-1"), OUTPUTS)

    assert (
        "https://eu-west-1.console.aws.amazon.com/states/home?region=eu-west-1#/v2/executions/details/"
        + arn("order-1")
        == found["execution"]
    )
    assert found["log"].startswith(
        "https://eu-west-1.console.aws.amazon.com/cloudwatch/home?region=eu-west-1#logsV2:log-groups/"
        "log-group/$252Faws$252Fs$2520logs/log-events$3FfilterPattern$3D$2522arn$253Aaws"
    )
    assert {"execution"} == set(links(arn("order-1"), {}))
    china = links(arn("order-1").replace("arn:aws:", "arn:aws-cn:"), OUTPUTS)
    assert china["execution"].startswith("https://eu-west-1.console.amazonaws.cn/")
    assert {} == links(arn("order-1").replace("arn:aws:", "arn:aws-iso:"), OUTPUTS)


def test_a_stack_that_does_not_tell_how_long_its_work_takes_is_waited_for(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """As long as Lambda allows."""
    monkeypatch.setattr("steponce.request.settings.LONGEST_WORK_SECONDS", 36_000)
    stack = FakeStack(world, {})
    monkeypatch.setattr(target.Target, "reach", lambda _target: stack)
    world.execution("order-1", "ABORTED", *TO_WORK, closed=LONG_AGO)
    world.put()

    assert 3 == run("locks", "release", "order-1", *SIGNED)[0]
    stack.outputs["WorkTimeoutSeconds"] = "60"
    assert 0 == run("locks", "release", "order-1", *SIGNED)[0]


def test_the_terminal_is_standard_input(monkeypatch: pytest.MonkeyPatch):
    """Where a question would be answered."""
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda _: True})())
    assert confirmation.on_a_terminal()
