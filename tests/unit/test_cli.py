"""The command line: what goes in, what comes out, and with which exit code."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import click
import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from rich.console import Console

from steponce import (
    InvalidRequest,
    LockTokenMismatch,
    PayloadMismatch,
    Receipt,
    RequestNotFound,
    SteponceError,
    Unavailable,
    Unsettled,
    WaitTimeout,
    cli,
)
from steponce.cli import commands, target, up
from steponce.cli.confirmation import Declined
from steponce.cli.payload import read_payload
from steponce.errors import InvalidPayload, LockNotFound, RecordChanged, Refused, TooManyAttempts
from steponce.local import LocalStack, LocalStackError, TemplateError, write_facts
from steponce.locks.record import Intervention
from steponce.next_step import NextStep
from steponce.program import program
from steponce.report import collector
from steponce.report.story import Attempt, Record, Story, Trouble, Visit, Waiting
from steponce.request.canonical import canonical_json
from steponce.scaffold import sources

PAYLOAD = {"orderId": "1", "amount": 500, "card": "tok_secret"}
RUNNING = Receipt.running("order-1", "m/order-1", "arn:execution:order-1", duplicate=False)
COMPLETED = replace(RUNNING, status="COMPLETED", result={"chargeId": "ch_1"}, attempt=1)
FAILED = replace(RUNNING, status="FAILED", error="CardDeclined", cause="The bank says no.", attempt=1)
STORY = Story(
    request_id="order-1",
    lock_token="m/order-1",
    diagnosis="waits for a person",
    summary="Failed with [red]Boom[/red].",
    record=Record(
        lock_token="m/order-1",
        status="FAILED",
        overdue=False,
        expired=False,
        on_open_index=True,
        locked_by="arn:execution:other",
        request_id="other",
        attempt=2,
        created="2026-01-31T12:00:00.000Z",
        expected_completion="2026-01-31T12:05:00.000Z",
        actual_completion="2026-01-31T12:00:02.000Z",
        expires_at=None,
        result=None,
        error="Boom",
        cause='{"errorMessage":"It burst.","stackTrace":["line 1"]}',
        interventions=(
            Intervention("2026-01-31T11:59:59.000Z", "alice", "released", "the [bold]bank\x1b is back"),
            Intervention("2026-01-31T12:00:09.000Z", "find_overdue", "held", "its outcome is unknown"),
        ),
    ),
    attempts=[
        Attempt(1, "arn:execution:order-1", "GONE"),
        Attempt(
            number=2,
            execution_arn="arn:execution:order-1--2",
            status="FAILED",
            started="2026-01-31T12:00:00.000Z",
            stopped="2026-01-31T12:00:03.000Z",
            redrive_count=1,
            resent=3,
            error="Boom",
            payload=PAYLOAD,
            visits=[
                Visit(
                    state="DoWork",
                    entered="2026-01-31T12:00:00.000Z",
                    exited="2026-01-31T12:00:02.500Z",
                    tries=2,
                    troubles=[Trouble("2026-01-31T12:00:01.000Z", "TaskFailed", "RetryLater")],
                ),
                Visit("RequestFailed", "2026-01-31T12:00:02.500Z"),
            ],
            awaiting_steps=[
                Waiting(
                    awaiting_step_id="as_1",
                    state="AwaitConfirmation",
                    step="confirmation",
                    status="ANSWERED",
                    entered="2026-01-31T12:00:00.000Z",
                    expires_at="2026-01-31T13:00:00.000Z",
                    expired=True,
                    outcome="failure",
                    answer={"outcome": "failure", "error": "Declined", "cause": None},
                )
            ],
        ),
    ],
    holder=Attempt(1, "arn:execution:other", "RUNNING", started="2026-01-31T12:00:00.000Z"),
)


class FakeClient:
    """Answers every call with what the test gave it, and remembers the calls."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"start": COMPLETED, "status": COMPLETED, "wait": COMPLETED}
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls.append((name, arguments, options))
            if isinstance(self.answers[name], BaseException):
                raise self.answers[name]
            return self.answers[name]

        return call


class FakeStack:
    """A stack with one client for everything, and without any Output."""

    name = "s"

    def __init__(self, client: FakeClient) -> None:
        self.outputs: dict[str, str] = {}
        self._client = client

    def client(self) -> FakeClient:
        return self._client


class FakeCloudFormation:
    """The stacks that DescribeStacks finds, or its error."""

    def __init__(self, found: list[dict[str, Any]] | Exception) -> None:
        self.found = found

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: ARG002
        if isinstance(self.found, Exception):
            raise self.found
        return {"Stacks": self.found}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a stack, and an environment without AWS."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "STEPONCE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("STEPONCE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "home"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """The client that every command gets, whatever its target."""
    fake = FakeClient()
    monkeypatch.setattr(target.Target, "reach", lambda _target: FakeStack(fake))
    return fake


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads standard output."""
    monkeypatch.setattr("steponce.cli.answers.for_people", lambda: True)


@pytest.fixture
def event(tmp_path: Path) -> str:
    """A file with a good payload."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps(PAYLOAD))
    return str(path)


def in_a_pipe(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one object on standard output."""
    out = capsys.readouterr().out
    assert 1 == out.count("\n")
    answer = json.loads(out)
    assert isinstance(answer, dict)
    return answer


# -- exit codes and answers ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("receipt", "code"), [(RUNNING, 0), (COMPLETED, 0), (FAILED, 1)], ids=lambda value: str(value)[:40]
)
def test_only_a_failed_request_leaves_with_1(client: FakeClient, event: str, receipt: Receipt, code: int):
    """Started, found running and completed are all done, as far as the command is concerned."""
    client.answers = dict.fromkeys(("start", "status", "wait"), receipt)

    assert [code, code, code] == [
        commands.run(["start", "order-1", event]),
        commands.run(["status", "order-1"]),
        commands.run(["wait", "order-1"]),
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidRequest("no"), 2),
        (PayloadMismatch("no"), 3),
        (LockTokenMismatch("no"), 3),
        (RequestNotFound("no"), 1),
        (WaitTimeout("no"), 1),
        (LockNotFound("no"), 1),
        (Declined("no"), 1),
        (Refused("no"), 3),
        (RecordChanged("no"), 3),
        (Unsettled("no"), 1),
        (SteponceError("no"), 1),
        (Unavailable("no"), 4),
        (TooManyAttempts("no"), 1),
        (NoCredentialsError(), 4),
        (ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeExecution"), 4),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (KeyError("a bug"), 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_every_error_has_its_exit_code(
    client: FakeClient, capsys: pytest.CaptureFixture[str], error: BaseException, code: int
):
    """And one object in a pipe, and one line for people that names it."""
    client.answers["status"] = error

    assert code == commands.run(["status", "order-1"])
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert {"error"} == set(answer)
    assert {"type", "message"} == set(answer["error"])
    assert said.err.rstrip("\n").split("\n")[-1].startswith(f"steponce: {answer['error']['type']}: ")


@pytest.mark.parametrize("command", ["status", "wait"])
def test_who_gave_no_key_is_told_that_one_may_be_missing(
    client: FakeClient, capsys: pytest.CaptureFixture[str], command: str
):
    """A request that was started with a lock token of its own may be found by that alone."""
    client.answers[command] = RequestNotFound("No request.")

    assert [1, 1] == [commands.run([command, "nosuch", *key]) for key in ((), ("--key", "k"))]
    without, with_key = map(json.loads, capsys.readouterr().out.splitlines())
    hint = "If it was started with a lock token of its own, give that with --key."
    assert [f"No request. {hint}", "No request."] == [one["error"]["message"] for one in (without, with_key)]


@pytest.mark.usefixtures("client")
def test_show_hints_at_the_key_as_well(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """What cannot be told is not found either."""

    def collect(*_: Any, **__: Any) -> Story:
        raise RequestNotFound("No request.")

    monkeypatch.setattr(collector, "collect", collect)

    assert 1 == commands.run(["show", "nosuch"])
    assert json.loads(capsys.readouterr().out)["error"]["message"].endswith("give that with --key.")


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_errors_once(client: FakeClient, capsys: pytest.CaptureFixture[str]):
    """On standard error, in one line; the object is for programs."""
    client.answers["status"] = PayloadMismatch("Another payload.\nSend the first.")

    assert 3 == commands.run(["status", "order-1"])
    assert ("", "steponce: PayloadMismatch: Another payload. Send the first.\n") == capsys.readouterr()


def test_a_bug_tells_its_place_and_nothing_of_the_payload(
    client: FakeClient, capsys: pytest.CaptureFixture[str]
):
    """The text of an unexpected error may quote anything."""
    client.answers["status"] = KeyError("tok_secret")

    assert 70 == commands.run(["status", "order-1"])
    said = capsys.readouterr()
    assert "tok_secret" not in said.out + said.err
    assert "commands.py" in said.err


def test_an_error_names_the_next_commands(client: FakeClient, capsys: pytest.CaptureFixture[str]):
    """For the stack that this command was for; the client's own message speaks Python."""
    settle = NextStep("start request", "order-1", check_owner=True)
    client.answers["wait"] = Unsettled("Its owner is dead.", next_steps=[settle])

    commands.run(["wait", "order-1", "--local"])

    said = capsys.readouterr()
    command = "steponce start order-1 FILE --check-owner --local"
    assert f"steponce: Unsettled: Its owner is dead.\n  {command}\n" == said.err
    assert {"type": "Unsettled", "message": "Its owner is dead.", "next": [command]} == (
        json.loads(said.out)["error"]
    )


@pytest.mark.usefixtures("client")
def test_a_pipe_gets_the_receipt_as_one_object(capsys: pytest.CaptureFixture[str]):
    """With the receipt's own keys."""
    commands.run(["status", "order-1"])

    assert COMPLETED.to_dict() == in_a_pipe(capsys)


@pytest.mark.usefixtures("client", "terminal")
def test_a_terminal_gets_a_table(capsys: pytest.CaptureFixture[str]):
    """Status, result and key are there to read."""
    commands.run(["status", "order-1"])

    out = capsys.readouterr().out
    assert all(text in out for text in ("order-1 COMPLETED", "m/order-1", '"chargeId": "ch_1"'))


@pytest.mark.usefixtures("terminal")
def test_a_failed_receipt_shows_what_lambda_said_without_the_stack(
    client: FakeClient, capsys: pytest.CaptureFixture[str]
):
    """A stack trace in the middle of a table helps nobody; the pipe has it."""
    cause = json.dumps({"errorMessage": "The bank says no.", "stackTrace": ["File app.py"]})
    client.answers["status"] = replace(FAILED, cause=cause)

    commands.run(["status", "order-1"])

    out = capsys.readouterr().out
    assert ("The bank says no." in out, "app.py" in out) == (True, False)


@pytest.mark.usefixtures("terminal")
def test_nothing_in_an_answer_steers_the_terminal(client: FakeClient, capsys: pytest.CaptureFixture[str]):
    """Causes come from third parties: no escape sequence and no markup of theirs takes effect."""
    client.answers["status"] = replace(FAILED, error="[bold]Boom[/bold]", cause="\x1b]0;owned\x07")

    commands.run(["status", "order-1"])

    out = capsys.readouterr().out
    assert "\x1b]0" not in out
    assert r"\x1b]0;owned\x07" in out
    assert "[bold]Boom[/bold]" in out


# -- start, status, wait ---------------------------------------------------------------------------
def test_start_hands_over_id_payload_and_key(client: FakeClient, event: str):
    """The client gets what the shell gave, and nothing is made up."""
    commands.run(["start", "order-1", event, "--key", "acme/1", "--check-owner"])

    assert [("start", ("order-1", PAYLOAD), {"lock_token": "acme/1", "check_owner": True})] == client.calls


def test_start_waits_under_the_lock_token_that_it_got(client: FakeClient, event: str):
    """One question less, and no doubt which key is meant."""
    client.answers["start"] = RUNNING

    assert 0 == commands.run(["start", "order-1", event, "--wait", "--timeout", "5"])
    assert ("wait", ("order-1",), {"lock_token": "m/order-1", "timeout_seconds": 5}) == client.calls[-1]


def test_a_wait_of_sixty_seconds_is_the_default(client: FakeClient):
    """As the help says."""
    commands.run(["wait", "order-1"])

    assert [("wait", ("order-1",), {"lock_token": None, "timeout_seconds": 60})] == client.calls


def test_start_and_wait_says_duplicate_when_it_started_nothing(
    client: FakeClient, event: str, capsys: pytest.CaptureFixture[str]
):
    """The wait alone could not know."""
    client.answers["start"] = replace(RUNNING, duplicate=True)

    commands.run(["start", "order-1", event, "--wait"])

    assert (True, "COMPLETED") == ((answer := in_a_pipe(capsys))["duplicate"], answer["status"])


def test_start_does_not_wait_for_what_is_finished(client: FakeClient, event: str):
    """A duplicate of a completed request has its answer already."""
    commands.run(["start", "order-1", event, "--wait"])

    assert ["start"] == [name for name, _, _ in client.calls]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Say which command."),
        (["awaiting"], "Say which command. (Help: steponce awaiting --help)"),
        (["callback"], "Say which command. (Help: steponce callback --help)"),
        (["stat"], "No such command 'stat'"),
        (["start"], "Missing argument 'REQUEST_ID'"),
        (["start", "order-1"], "Missing argument 'FILE'"),
        (["start", "order-1", "{event}", "--timeout", "3"], "--timeout goes with --wait."),
        (["wait", "order-1", "--timeout", "-1"], "give a number of seconds, 0 or more."),
        (["wait", "order-1", "--timeout", "nan"], "give a number of seconds, 0 or more."),
        (["wait", "order-1", "--timeout", "soon"], "'soon' is not a valid float"),
        (["status", "order-1", "--key", " "], "it is blank."),
        (["show", "order-1", "--everything"], "No such option"),
        (["up", "--parameter", "ExpectedSeconds"], "is not NAME=VALUE"),
        (["up", "--parameter", "Nonsense=1"], "no parameter Nonsense"),
        (["up", "--template", "nowhere.yaml"], "There is no template"),
    ],
)
def test_wrong_usage_leaves_with_2_and_says_what_is_wrong(
    client: FakeClient,
    event: str,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
):
    """One object in a pipe here, too."""
    assert 2 == commands.run([argument.format(event=event) for argument in arguments])
    error = in_a_pipe(capsys)["error"]
    assert "UsageError" == error["type"]
    assert message in error["message"]
    assert [] == client.calls


# -- the payload -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1, column 1: Expecting value. Expected is one JSON object"),
        (b'{"a": 1,\n "b" 2}', "line 2, column 6: Expecting ':' delimiter."),
        (b'{"a": 1} {"b": 2}', "line 1, column 10: Extra data."),
        (b"[1]", "holds a JSON array."),
        (b'"tok_secret"', "holds a JSON string."),
        (b"null", "holds a JSON null."),
        (b"true", "holds a JSON boolean."),
        (b"12", "holds a JSON number."),
        (b'{"amount": 1, "amount": 2}', "has the key 'amount' twice in one object"),
        (b'{"a": [{"b": {"c": 1, "c": 1}}]}', "has the key 'c' twice in one object"),
        (b'{"a": "line 1"}\n\xff', "line 2: this is not UTF-8."),
        (b'{"a": ' + b"1" * 5000 + b"}", "has a number with thousands of digits."),
        (b'{"a": ' + b"[" * 200_000, "is nested too deeply."),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_payload_is_refused_with_its_place(
    client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
):
    """Nothing is started, and nothing of the content is repeated but a key's name."""
    path = tmp_path / "bad.json"
    path.write_bytes(content)

    assert 2 == commands.run(["start", "order-1", str(path)])
    error = in_a_pipe(capsys)["error"]
    assert "InvalidPayload" == error["type"]
    assert error["message"].startswith(str(path))
    assert message in error["message"]
    assert "tok_secret" not in error["message"]
    assert [] == client.calls


def test_a_file_is_read_no_further_than_a_payload_can_be_long(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Standard input may have no end, and a device neither."""

    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            buffer[:] = b" " * len(buffer)
            return len(buffer)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    for file in ("-", "/dev/zero"):
        assert 2 == commands.run(["start", "order-1", file])
        error = in_a_pipe(capsys)["error"]
        assert ("PayloadTooLarge", True) == (error["type"], "1,572,864 bytes" in error["message"])
    assert [] == client.calls


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity", "9007199254740992"])
def test_a_number_that_json_cannot_carry_is_refused_with_its_place(tmp_path: Path, number: str):
    """The file is read; the canonical form, which every request takes, refuses it."""
    path = tmp_path / "event.json"
    path.write_text(f'{{"items": [{{"amount": {number}}}]}}')

    with pytest.raises(InvalidPayload, match=r"payload\.items\[0\]\.amount"):
        canonical_json(read_payload(str(path)))


@pytest.mark.parametrize(("place", "reason"), [("nowhere.json", "No such file"), (".", "Is a directory")])
@pytest.mark.usefixtures("client")
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, reason: str
):
    """With the reason."""
    assert 2 == commands.run(["start", "order-1", str(tmp_path / place)])
    message = in_a_pipe(capsys)["error"]["message"]
    assert str(tmp_path / place) in message
    assert reason in message


def test_the_payload_may_come_from_standard_input(client: FakeClient, monkeypatch: pytest.MonkeyPatch):
    """A dash stands for it, and a byte order mark does no harm."""
    raw = io.BytesIO(b"\xef\xbb\xbf" + json.dumps(PAYLOAD).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))

    assert 0 == commands.run(["start", "order-1", "-"])
    assert ("order-1", PAYLOAD) == client.calls[0][1]


# -- where to --------------------------------------------------------------------------------------
def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = commands.run(["status", "order-1", *arguments])
    return code, in_a_pipe(capsys)["error"]["message"]


def test_without_a_target_and_without_a_local_stack_nobody_guesses(capsys: pytest.CaptureFixture[str]):
    """The message names the three ways to say it, and how to start a stack."""
    code, message = error_of(capsys)

    assert 2 == code
    assert all(part in message for part in ("--local", "--stack NAME", "STEPONCE_STACK", "steponce up"))


def test_local_without_a_stack_is_unreachable(capsys: pytest.CaptureFixture[str]):
    """Whoever says --local means it."""
    code, message = error_of(capsys, "--local")

    assert 4 == code
    assert "steponce up" in message


def test_a_local_stack_that_does_not_answer_is_unreachable(capsys: pytest.CaptureFixture[str], home: Path):
    """Its process id may be somebody else's by now."""
    write_facts({"pid": os.getpid(), "endpoints": {"states": "http://127.0.0.1:9"}}, home)

    code, message = error_of(capsys)

    assert 4 == code
    assert "does not answer at http://127.0.0.1:9" in message


def test_facts_that_are_no_facts_are_not_believed(capsys: pytest.CaptureFixture[str], home: Path):
    """Half a file, or somebody else's."""
    home.mkdir()
    (home / "stack.json").write_text("{")

    code, message = error_of(capsys, "--local")

    assert 4 == code
    assert "cannot be read" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--local", "--stack", "prod"], "--local and --stack are two places"),
        (["--local", "--profile", "p"], "--profile and --region go with --stack"),
        (["--region", "eu-west-1"], "--profile and --region go with --stack"),
    ],
)
def test_targets_that_contradict_each_other_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    """Rather than sent to one of them."""
    code, said = error_of(capsys, *arguments)

    assert 2 == code
    assert message in said


@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_stack_on_aws_is_named_by_option_or_variable(monkeypatch: pytest.MonkeyPatch, way: str):
    """With the profile's session and the region that was given."""
    asked = []

    def aws_stack(name: str, session: Any) -> FakeStack:
        asked.append((name, session.region_name))
        return FakeStack(FakeClient())

    monkeypatch.setattr(target, "AwsStack", aws_stack)
    if way == "variable":
        monkeypatch.setenv("STEPONCE_STACK", "prod")
    arguments = ["--stack", "prod"] if way == "option" else []

    assert 0 == commands.run(["status", "order-1", *arguments, "--region", "eu-west-1"])
    assert [("prod", "eu-west-1")] == asked


def test_local_outweighs_the_variable(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """What is typed counts more than what is set."""
    monkeypatch.setenv("STEPONCE_STACK", "prod")

    assert (4, True) == ((answer := error_of(capsys, "--local"))[0], "No local stack" in answer[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give --region or set AWS_REGION."),
        (["--region", "eu-west-1"], "Log in to AWS or name a --profile"),
        (["--profile", "nobody"], "nobody"),
    ],
)
def test_missing_region_credentials_and_profile_are_unreachable(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    """Each with its way out."""
    code, said = error_of(capsys, "--stack", "prod", *arguments)

    assert 4 == code
    assert message in said


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            ClientError(
                {"Error": {"Code": "ValidationError", "Message": "does not exist"}}, "DescribeStacks"
            ),
            "There is no stack 'prod' in eu-west-1.",
        ),
        ([{}], "has no Output 'RunOnceStateMachineArn'"),
        (
            [{"Outputs": [{"OutputKey": "RunOnceStateMachineArn", "OutputValue": "arn"}]}],
            "has no Output 'LocksTable'",
        ),
        (
            ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "DescribeStacks"),
            "DescribeStacks was refused: expired",
        ),
        (
            ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "DescribeStacks"),
            "CloudFormation said Throttling. The same call is safe to try again.",
        ),
    ],
    ids=["no such stack", "another stack", "half a stack", "refused", "throttled"],
)
def test_a_stack_that_is_not_ours_is_unreachable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, found: Any, message: str
):
    """Not there, not deployed from this template, or not to be seen."""
    monkeypatch.setattr("boto3.Session.client", lambda *_, **__: FakeCloudFormation(found))

    code, said = error_of(capsys, "--stack", "prod", "--region", "eu-west-1")

    assert 4 == code
    assert message in said


def test_a_command_needs_no_local_parts_for_a_stack_on_aws(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Without them installed, only --local and up say so."""
    monkeypatch.setitem(sys.modules, "steponce.local", None)
    monkeypatch.setattr(target, "AwsStack", lambda *_: FakeStack(FakeClient()))

    assert 0 == commands.run(["status", "order-1", "--stack", "prod", "--region", "eu-west-1"])
    capsys.readouterr()
    code, message = error_of(capsys, "--local")
    assert 4 == code
    assert "pip install 'steponce[local]'" in message


# -- show ------------------------------------------------------------------------------------------
@pytest.fixture
def told(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """A story to tell."""
    monkeypatch.setattr(collector, "collect", lambda *_, **__: STORY)
    return client


@pytest.mark.usefixtures("told")
def test_show_leaves_with_0_when_there_is_a_story(capsys: pytest.CaptureFixture[str]):
    """The story of a failure is told, too; in a pipe it is one object."""
    assert 0 == commands.run(["show", "order-1"])
    told = json.loads(json.dumps(STORY.to_dict()))
    del told["nextSteps"]
    assert told | {"next": []} == in_a_pipe(capsys)


@pytest.mark.usefixtures("told", "terminal")
def test_show_tells_people_when_what_happened(capsys: pytest.CaptureFixture[str]):
    """Record, executions, states with durations, errors on the way, and the summary as it is."""
    commands.run(["show", "order-1"])

    out = capsys.readouterr().out
    for text in (
        "FAILED, on the open index",
        "It burst.",
        "attempt 1 GONE arn:execution:order-1",
        "attempt 2 FAILED arn:execution:order-1--2",
        "redriven",
        "3 times before",
        "DoWork            2.500   2 tries",
        "TaskFailed: RetryLater",
        "the lock's holder RUNNING arn:execution:other",
        "as_1",
        "confirmation, state AwaitConfirmation",
        "ANSWERED, failure",
        '"error": "Declined"',
        "waits for a person",
        "Failed with [red]Boom[/red].",
    ):
        assert text in out
    assert "stackTrace" not in out


@pytest.mark.usefixtures("told", "terminal")
def test_show_tells_what_others_did_where_it_happened(capsys: pytest.CaptureFixture[str]):
    """On one time line with the executions: who, what and why."""
    commands.run(["show", "order-1"])

    out = capsys.readouterr().out
    line = (
        "attempt 1 GONE",
        r"2026-01-31T11:59:59.000Z  released by alice: the [bold]bank\x1b is back",
        "attempt 2 FAILED",
        "2026-01-31T12:00:09.000Z  held by find_overdue: its outcome is unknown",
        "Failed with [red]Boom[/red].",
    )
    assert sorted(places := [out.index(text) for text in line]) == places


@pytest.mark.usefixtures("told", "terminal")
def test_show_without_a_record_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """There is still a story."""
    monkeypatch.setattr(collector, "collect", lambda *_, **__: replace(STORY, record=None, holder=None))

    assert 0 == commands.run(["show", "order-1"])
    assert "none" in capsys.readouterr().out


# -- help ------------------------------------------------------------------------------------------
def test_the_help_names_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]):
    """A script's author finds the codes there."""
    commands_ = ("awaiting", "callback", "cancel", "erase", "init", "locks", "requests")
    commands_ += ("show", "start", "status", "up", "upgrade", "wait")
    assert 0 == commands.run(["--help"])
    out = capsys.readouterr().out
    assert all(f"\n  {command} " in out for command in commands_)
    assert all(f"\n    {code:>3}  " in out for code in (0, 1, 2, 3, 4, 70, 130))


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("start", "--key --check-owner --wait --timeout --machine --local --stack --region STEPONCE_STACK"),
        ("status", "--key --machine --local --stack --profile --region"),
        ("wait", "--key --timeout --machine --local --stack --profile --region"),
        ("show", "--key --payload --machine --local --stack --profile --region"),
        ("up", "--template --parameter STEPONCE_HOME"),
        ("init", "DIR --name --callback --http"),
        ("upgrade", "[DIR] edited"),
        ("awaiting list", "--machine --local --stack --profile --region"),
        ("awaiting show", "ID --link --machine --local --stack --profile --region"),
        ("callback succeed", "ID [FILE] accepted conflict --machine --local --stack --profile --region"),
        (
            "callback fail",
            "ID [FILE] --error --cause accepted conflict --machine --local --stack --profile --region",
        ),
        ("callback heartbeat", "ID accepted conflict --machine --local --stack --profile --region"),
        ("locks list", "--running --overdue --failed --limit --machine --local --stack --profile --region"),
        ("locks inspect", "KEY --machine --local --stack --profile --region"),
        ("locks release", "KEY --yes --by --why --machine --local --stack --profile --region"),
        ("locks complete", "KEY FILE --yes --by --why --machine --local --stack --profile --region"),
        ("locks retry", "KEY --yes --by --why --machine --local --stack --profile --region"),
        ("cancel", "REQUEST_ID --yes --by --why --machine --local --stack --profile --region"),
        ("letters list", "--limit --machine --local --stack --profile --region"),
        ("requests list", "--status --since --until --under --limit --machine --local --stack --profile"),
        ("erase", "PREFIX --yes --by --why --local --stack --profile --region"),
    ],
)
def test_the_help_of_a_command_names_its_options(
    capsys: pytest.CaptureFixture[str], command: str, options: str
):
    """And every command says in a sentence what it does."""
    assert 0 == commands.run([*command.split(), "--help"])
    out = capsys.readouterr().out
    assert [] == [option for option in options.split() if option not in out]


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]):
    """As pip knows it."""
    assert 0 == commands.run(["--version"])
    assert importlib.metadata.version("steponce") in capsys.readouterr().out


def test_the_program_leaves_with_the_commands_exit_code(monkeypatch: pytest.MonkeyPatch):
    """`steponce.cli:main` is what the installed program calls."""
    monkeypatch.setattr(sys, "argv", ["steponce", "status"])

    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert 2 == exit_.value.code


def test_without_its_libraries_the_program_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch):
    """Lambda's layer has neither click nor rich."""
    monkeypatch.delitem(sys.modules, "steponce.cli.commands")
    monkeypatch.setitem(sys.modules, "click", None)

    with pytest.raises(SystemExit, match=r"pip install 'steponce\[cli\]'"):
        cli.main()


def test_a_reader_that_has_seen_enough_ends_the_program_quietly(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    """`steponce show order-1 | head -1` is no error of ours."""
    closed: list[tuple[int, int]] = []
    monkeypatch.setattr("steponce.cli.commands.os.dup2", lambda a, b: closed.append((a, b)))
    client.answers["status"] = BrokenPipeError()

    assert 141 == commands.run(["status", "order-1"])
    assert 1 == len(closed)


# -- up --------------------------------------------------------------------------------------------
def test_up_refuses_a_second_stack_in_the_same_folder(capsys: pytest.CaptureFixture[str], home: Path):
    """Its facts would replace the first one's."""
    write_facts({"pid": os.getpid(), "endpoints": {}}, home)

    assert 2 == commands.run(["up"])
    assert f"A stack runs here already (process {os.getpid()})" in in_a_pipe(capsys)["error"]["message"]


@pytest.mark.parametrize(
    ("error", "code"),
    [(TemplateError("bad template"), 2), (LocalStackError("no port"), 4)],
    ids=["template", "engine"],
)
def test_up_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int
):
    """A wrong template is wrong usage; an engine that does not start is unreachable."""

    def from_template(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(LocalStack, "from_template", from_template)

    assert code == commands.run(["up"])
    assert str(error) in in_a_pipe(capsys)["error"]["message"]


def test_up_without_a_template_here_says_that_it_runs_the_sample(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """A person in the wrong folder sees that it is not their own."""

    def from_template(path: str, **_: Any) -> None:
        raise TemplateError(path)

    monkeypatch.setattr(LocalStack, "from_template", from_template)
    monkeypatch.setattr("steponce.cli.up.for_people", lambda: True)
    monkeypatch.chdir(tmp_path)

    assert 2 == commands.run(["up"])
    assert f"so this is the sample's: {sources.sample()}" in capsys.readouterr().err
    (tmp_path / "template.yaml").touch()
    assert 2 == commands.run(["up"])
    assert "the sample's" not in capsys.readouterr().err


def test_up_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Before it starts, and not among its facts."""
    read = MagicMock()
    read.plan.left_out = ["not supported on the local stack: AWS::Pipes::Pipe (P). It is left out."]
    read.__enter__.side_effect = LocalStackError("enough")
    monkeypatch.setattr(LocalStack, "from_template", lambda *_, **__: read)

    assert 4 == commands.run(["up"])
    said = capsys.readouterr()
    assert said.err.startswith(f"{read.plan.left_out[0]}\n")
    assert "Pipe" not in said.out


def test_up_notices_that_its_stack_has_died():
    """A stack in the foreground that serves nothing is worse than none."""
    with pytest.raises(SteponceError, match=r"nobody answers at http://127\.0\.0\.1:9"):
        up._watch({"states": "http://127.0.0.1:9"})


def test_up_shows_people_where_everything_is():
    """Endpoints and outputs, by name."""
    facts = {"name": "s", "endpoints": {"states": "http://127.0.0.1:1"}, "outputs": {"LocksTable": "t-locks"}}
    console = Console(file=io.StringIO(), width=100)

    with console.capture() as shown:
        console.print(up._welcome(facts))

    assert all(text in shown.get() for text in ("The stack s runs", "http://127.0.0.1:1", "t-locks"))


def test_up_names_three_commands_that_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With the sample event where there is one, else on standard input; and with the folder."""
    template = str(tmp_path / "template.yaml")
    elsewhere = up._to_try(template)
    (tmp_path / "events").mkdir()
    event = tmp_path / "events" / "start_order.json"
    event.touch()
    monkeypatch.delenv("STEPONCE_HOME")

    assert [
        f"{program()} start order-1 {shlex.quote(str(event))} --local --wait",
        f"{program()} start order-1 {shlex.quote(str(event))} --local",
        f"{program()} show order-1 --local",
    ] == up._to_try(template)
    assert elsewhere[0].startswith('echo \'{"orderId"')
    assert (
        f"STEPONCE_HOME={shlex.quote(str(tmp_path / 'home'))} {program()} start order-1 - --local --wait"
        in elsewhere[0]
    )
