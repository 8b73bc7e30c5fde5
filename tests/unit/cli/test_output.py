"""The command line: what goes in, what comes out, and with which exit code."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from botocore.exceptions import ClientError, NoCredentialsError

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
)
from steponce.cli import commands
from steponce.cli.confirmation import Declined
from steponce.cli.payload import read_payload
from steponce.errors import InvalidPayload, LockNotFound, RecordChanged, Refused, TooManyAttempts
from steponce.next_step import NextStep
from steponce.report import collector
from steponce.report.story import Story
from steponce.request.canonical import canonical_json
from tests.unit.cli.fakes import COMPLETED, FAILED, PAYLOAD, RUNNING, FakeClient, in_a_pipe
from tests.unit.rate_limited import cause_until


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
@pytest.mark.parametrize(
    ("says", "shown"),
    [({"waits_for_person": True}, "waits for   a person"), ({"may_run_again": True}, "next start  runs it")],
)
def test_a_failed_receipt_shows_whether_it_stays_so(
    client: FakeClient, capsys: pytest.CaptureFixture[str], says: dict[str, bool], shown: str
):
    """Only the pipe had it."""
    limited = replace(
        FAILED,
        may_run_again=True,
        error="RateLimited",
        cause=cause_until("2026-02-01T00:00:00.000Z"),
        attempt=0,
    )
    for receipt, is_shown in ((FAILED, False), (replace(FAILED, **says), True), (limited, False)):
        client.answers["status"] = receipt
        commands.run(["status", "order-1"])
        assert is_shown == (shown in capsys.readouterr().out)


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
    """One question less, and no doubt which key is meant. An answer for another payload is none for it."""
    client.answers["start"] = RUNNING

    assert 0 == commands.run(["start", "order-1", event, "--wait", "--timeout", "5"])
    options = {"lock_token": "m/order-1", "timeout_seconds": 5, "payload": PAYLOAD}
    assert ("wait", ("order-1",), options) == client.calls[-1]


def test_a_wait_of_sixty_seconds_is_the_default(client: FakeClient):
    """As the help says."""
    commands.run(["wait", "order-1"])

    options = {"lock_token": None, "timeout_seconds": 60, "payload": None}
    assert [("wait", ("order-1",), options)] == client.calls


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
        (["letters", "show", ""], "it is blank."),
        (["letters", "redrive", " "], "it is blank."),
        (["letters", "delete", "", "--yes", "--by", "alice", "--why", "asked"], "it is blank."),
        (["show", "order-1", "--key", "M\udcfcller/1"], "it is not UTF-8."),
        (["status", "M\udcfcller"], "it is not UTF-8."),
        (["requests", "list", "--under", "M\udcfcller/"], "it is not UTF-8."),
        (["locks", "inspect", "M\udcfcller/1"], "it is not UTF-8."),
        (["erase", "M\udcfcller/", "--yes", "--by", "alice", "--why", "asked"], "it is not UTF-8."),
        (["show", "order-1", "--everything"], "No such option"),
        (["locks", "list", "--limit", "99999999999999999999"], "is not in the range 1<=x<="),
        (["requests", "list", "--limit", "99999999999999999999"], "is not in the range 1<=x<="),
        (["letters", "list", "--limit", "0"], "is not in the range 1<=x<="),
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
