"""`steponce awaiting` and `steponce callback`: what goes in, what comes out, and with which exit code."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from steponce.aws import times
from steponce.callbacks.answer import Answer
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.links import Keys, verify
from steponce.cli import commands, target
from steponce.errors import RequestNotFound
from steponce.report import collector
from steponce.report.story import Attempt, Story, Waiting
from steponce.request.settings import RequestRules

TOKEN = "AQCEAAAAKgAAAAM-a-task-token"
STEP = "as_" + "0" * 40
OTHER = "as_" + "1" * 40
FAR = "2999-01-01T00:00:00.000Z"
PAST = "2020-01-01T00:00:00.000Z"
OUTPUTS = {
    "AwaitingStepsTable": "steps",
    "ResolveAwaitingStepFunction": "resolver",
    "CallbacksUrl": "https://callbacks.example",
    "CallbackKey": "the-key",
}


class FakeLambda:
    """The function resolve_awaiting_step: what it returns or raises, and what it was asked."""

    def __init__(self) -> None:
        self.returns: Any = {"verdict": "accepted"}
        self.is_error = False
        self.raises: Exception | None = None
        self.asked: list[tuple[str, Any]] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        self.asked.append((FunctionName, json.loads(Payload)))
        if self.raises:
            raise self.raises
        text = self.returns if isinstance(self.returns, bytes) else json.dumps(self.returns).encode()
        error = {"FunctionError": "Unhandled"} if self.is_error else {}
        return {"StatusCode": 200, "Payload": io.BytesIO(text)} | error


class FakeTable:
    """The AwaitingStepsTable, with an index that may be behind."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.indexed: list[str] = []

    def put(self, step_id: str = STEP, status: str = "PENDING", **more: Any) -> None:
        values = {
            "awaitingStepId": step_id,
            "step": "confirmation",
            "status": status,
            "taskToken": TOKEN,
            "execution": "arn:execution:order-1",
            "requestId": "order-1",
            "lockToken": "m/order-1",
            "callId": "call-1",
            "attempt": 1,
            "enteredAt": PAST,
            "retryCount": 0,
            "expiresAt": FAR,
        } | more
        self.items[step_id] = {n: {"N" if isinstance(v, int) else "S": str(v)} for n, v in values.items()}
        self.indexed.append(step_id)

    def get_item(self, *, TableName: str, Key: Any, **_: Any) -> dict[str, Any]:
        assert "steps" == TableName
        item = self.items.get(Key["awaitingStepId"]["S"])
        return {"Item": item} if item else {}

    def get_paginator(self, operation: str) -> FakeTable:
        assert "query" == operation
        return self

    def paginate(self, *, ExpressionAttributeValues: Any, **_: Any) -> Iterator[dict[str, Any]]:
        is_first = ExpressionAttributeValues[":open"]["S"] == "PENDING#0"
        found = self.indexed if is_first else []
        return iter([{"Items": [{"awaitingStepId": {"S": step_id}} for step_id in found]}])


class FakeSecrets:
    """Secrets Manager with one version of one secret."""

    def __init__(self) -> None:
        self.raises: Exception | None = None
        self.content: dict[str, Any] = {"SecretString": "k" * 64}

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> dict[str, Any]:
        assert "the-key" == SecretId
        if self.raises:
            raise self.raises
        if VersionStage == "AWSPREVIOUS":
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        return self.content


class FakeStack:
    """A stack with made-up parts."""

    name = "prod"

    def __init__(self) -> None:
        self.outputs = dict(OUTPUTS)
        self.functions, self.table, self.secrets = FakeLambda(), FakeTable(), FakeSecrets()
        self.reached = 0

    def boto3(self, service: str) -> Any:
        return {"lambda": self.functions, "dynamodb": self.table, "secretsmanager": self.secrets}[service]

    def client(self) -> SimpleNamespace:
        return SimpleNamespace(rules=RequestRules("m"))


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    """The stack that every command reaches, whatever its target."""
    fake = FakeStack()

    def reach(_target: target.Target) -> FakeStack:
        fake.reached += 1
        return fake

    monkeypatch.setattr(target.Target, "reach", reach)
    monkeypatch.setenv("COLUMNS", "120")
    return fake


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads standard output."""
    for module in ("output", "awaiting"):
        monkeypatch.setattr(f"steponce.cli.{module}.for_people", lambda: True)


@pytest.fixture
def pipe(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Run a command: its exit code and its one object. No token is ever among what it says."""

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = commands.run(arguments)
        said = capsys.readouterr()
        assert TOKEN not in said.out + said.err
        assert 1 == said.out.count("\n")
        return code, json.loads(said.out)

    return run


Pipe = Callable[..., tuple[int, dict[str, Any]]]


def file_with(folder: Path, content: str) -> str:
    path = folder / "answer.json"
    path.write_text(content)
    return str(path)


# -- callback: verdicts ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("verdict", "code"),
    [("accepted", 0), ("duplicate", 0), ("conflict", 3), ("late", 1), ("unknown", 1)],
)
@pytest.mark.parametrize(
    ("command", "outcome"), [("succeed", "success"), ("fail", "failure"), ("heartbeat", "heartbeat")]
)
def test_every_verdict_has_its_exit_code(
    stack: FakeStack, pipe: Pipe, command: str, outcome: str, verdict: str, code: int
):
    """And one object in a pipe, whichever the answer was."""
    stack.functions.returns = {"verdict": verdict}

    told = {"awaitingStepId": STEP, "outcome": outcome, "verdict": verdict}
    assert (code, told) == pipe("callback", command, STEP)


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("verdict", "meaning"),
    [
        ("accepted", "The workflow has it."),
        ("duplicate", "the same answer before"),
        ("conflict", "another answer before, which stands"),
        ("late", "does not wait any more"),
        ("unknown", "steponce awaiting list"),
    ],
)
def test_people_are_told_what_the_verdict_means(
    stack: FakeStack, capsys: pytest.CaptureFixture[str], verdict: str, meaning: str
):
    """In a sentence under the step's id."""
    stack.functions.returns = {"verdict": verdict}

    commands.run(["callback", "succeed", STEP])

    out = capsys.readouterr().out
    assert f"{STEP} {verdict}" in out
    assert meaning in out


@pytest.mark.usefixtures("terminal")
def test_a_narrow_terminal_does_not_break_the_command_for_an_unknown_step(
    stack: FakeStack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Pasted, its first line would run by itself, and on another stack."""
    monkeypatch.setenv("COLUMNS", "30")
    stack.functions.returns = {"verdict": "unknown"}

    assert 1 == commands.run(["callback", "succeed", STEP, "--stack", "payments-eu"])

    assert "  steponce awaiting list --stack payments-eu\n" in capsys.readouterr().out


# -- callback: what is sent ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["succeed", STEP], {"outcome": "success", "output": None}),
        (["heartbeat", STEP], {"outcome": "heartbeat"}),
        (["fail", STEP], {"outcome": "failure"}),
        (["fail", STEP, "--error", "Declined"], {"outcome": "failure", "error": "Declined"}),
        (["fail", STEP, "--cause", "No."], {"outcome": "failure", "cause": "No."}),
        (["fail", STEP, "--error", "E", "--cause", ""], {"outcome": "failure", "error": "E", "cause": ""}),
    ],
    ids=lambda value: " ".join(value[:1] + value[2:]) if isinstance(value, list) else "",
)
def test_an_answer_goes_to_the_resolver_and_nowhere_else(
    stack: FakeStack, pipe: Pipe, arguments: list[str], answer: dict[str, Any]
):
    """It alone may answer for a task."""
    assert 0 == pipe("callback", *arguments)[0]
    assert [("resolver", {"awaitingStepId": STEP, "answer": answer})] == stack.functions.asked


@pytest.mark.parametrize("content", ['{"ok": true}', "[1, 2]", '"text"', "null", "1.5", '"\\u00e9 é"', "{}"])
def test_an_output_is_any_json(stack: FakeStack, pipe: Pipe, tmp_path: Path, content: str):
    """It arrives as it was in the file."""
    assert 0 == pipe("callback", "succeed", STEP, file_with(tmp_path, content))[0]
    assert [json.loads(content)] == [asked["answer"]["output"] for _, asked in stack.functions.asked]


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ('{"error": "E", "cause": "C"}', {"error": "E", "cause": "C"}),
        ('{"error": null}', {"error": None}),
        ("{}", {}),
        ('{"outcome": "failure", "error": "E"}', {"error": "E"}),
    ],
)
def test_a_failure_may_come_from_a_file(
    stack: FakeStack, pipe: Pipe, tmp_path: Path, content: str, answer: dict[str, Any]
):
    """Also one that was written for the HTTP API."""
    assert 0 == pipe("callback", "fail", STEP, file_with(tmp_path, content))[0]
    assert [answer | {"outcome": "failure"}] == [asked["answer"] for _, asked in stack.functions.asked]


def test_an_answer_may_come_from_standard_input(
    stack: FakeStack, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
):
    """A dash stands for it."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"ok": true}')))

    assert 0 == pipe("callback", "succeed", STEP, "-")[0]
    assert {"ok": True} == stack.functions.asked[0][1]["answer"]["output"]


# -- callback: what is refused here ----------------------------------------------------------------
@pytest.mark.parametrize(
    ("command", "content", "kind", "message"),
    [
        ("succeed", "", "InvalidAnswer", "Expecting value. Expected is one JSON value."),
        ("succeed", "{", "InvalidAnswer", "line 1, column 2"),
        ("succeed", '{"a": 1, "a": 2}', "InvalidAnswer", "the key 'a' twice"),
        ("succeed", "1e400", "InvalidAnswer", "which JSON cannot carry"),
        ("succeed", "9007199254740992", "InvalidAnswer", "beyond"),
        ("succeed", '"\\ud800"', "InvalidAnswer", "half a character"),
        ("succeed", f'"{"x" * 262_144}"', "OutputTooLarge", "262,144 are allowed"),
        ("fail", "[]", "InvalidAnswer", 'a JSON array. Expected is one JSON object, like {"error"'),
        ("fail", '{"reason": "tok_secret"}', "InvalidAnswer", "no field 'reason'"),
        ("fail", '{"error": 1}', "InvalidAnswer", "The error is text"),
        ("fail", '{"outcome": "success", "output": 1}', "InvalidAnswer", "the command says fail"),
        ("fail", '{"outcome": []}', "InvalidAnswer", "the command says fail"),
        ("fail", json.dumps({"error": "x" * 257}), "OutputTooLarge", "256 are allowed"),
        ("fail", json.dumps({"cause": "x" * 32_769}), "OutputTooLarge", "32,768 are allowed"),
    ],
    ids=lambda value: value[:30],
)
def test_a_malformed_answer_leaves_with_2_and_starts_nothing(
    stack: FakeStack, pipe: Pipe, tmp_path: Path, command: str, content: str, kind: str, message: str
):
    """It is refused before anybody is asked, and nothing of its content is repeated."""
    code, told = pipe("callback", command, STEP, file_with(tmp_path, content))

    assert (2, kind) == (code, told["error"]["type"])
    assert message in told["error"]["message"]
    assert "tok_secret" not in told["error"]["message"]
    assert (0, []) == (stack.reached, stack.functions.asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["callback", "succeed"], "Missing argument 'ID'"),
        (["callback", "succeed", " "], "it is no id"),
        (["callback", "heartbeat", "as_\x1b[1m"], "it is no id"),
        (["callback", "heartbeat", "as_\udc80"], "it is no id"),
        (["callback", "fail", "x" * 2049], "it is no id"),
        (["callback", "fail", STEP, "-", "--error", "E"], "Give one or the other."),
        (["callback", "heartbeat", STEP, "-"], "unexpected extra argument"),
        (["callback", "answer", STEP], "No such command 'answer'"),
        (["awaiting", "show"], "Missing argument 'ID'"),
        (["awaiting", "show", ""], "it is no id"),
        (["awaiting", "list", STEP], "unexpected extra argument"),
        (["awaiting", "list", "--local", "--stack", "prod"], "--local and --stack are two places"),
    ],
    ids=lambda value: " ".join(value)[:40].encode("ascii", "replace").decode() if value[0] else "",
)
def test_wrong_usage_leaves_with_2(stack: FakeStack, pipe: Pipe, arguments: list[str], message: str):
    """One object in a pipe here, too."""
    code, told = pipe(*arguments)

    assert (2, "UsageError") == (code, told["error"]["type"])
    assert message in told["error"]["message"]
    assert 0 == stack.reached


def test_an_id_may_have_characters_that_are_not_seen(stack: FakeStack, pipe: Pipe):
    """Emojis of a family, Persian words and Japanese blanks have some."""
    stack.functions.returns = {"verdict": "unknown", "awaitingStepId": "x"}
    for one in ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "a\u200cb", "a\u3000b"):
        assert "UsageError" != pipe("callback", "heartbeat", one)[1].get("error", {}).get("type")


def test_a_file_that_is_not_there_leaves_with_2(stack: FakeStack, pipe: Pipe, tmp_path: Path):
    """With its name."""
    code, told = pipe("callback", "succeed", STEP, str(tmp_path / "nowhere.json"))

    assert (2, "InvalidAnswer") == (code, told["error"]["type"])
    assert "nowhere.json cannot be read" in told["error"]["message"]
    assert 0 == stack.reached


# -- callback: errors of the function --------------------------------------------------------------
@pytest.mark.parametrize(("kind", "code"), [("InvalidAnswer", 2), ("OutputTooLarge", 2), ("Unavailable", 4)])
def test_an_error_of_ours_is_the_same_here(stack: FakeStack, pipe: Pipe, kind: str, code: int):
    """With its type, its message and its exit code."""
    stack.functions.is_error = True
    stack.functions.returns = {"errorType": kind, "errorMessage": "Try again.", "stackTrace": ["app.py"]}

    assert (code, {"error": {"type": kind, "message": "Try again."}}) == pipe("callback", "succeed", STEP)


@pytest.mark.parametrize(
    ("returns", "how"),
    [
        ({"errorType": "KeyError", "errorMessage": f"'{TOKEN}'"}, "failed with KeyError"),
        ({"errorType": "ParamValidationError", "errorMessage": TOKEN}, "failed with ParamValidationError"),
        ({"errorType": "Sandbox.Timedout", "errorMessage": "timed out"}, "failed with Sandbox.Timedout"),
        ({"errorMessage": "Task timed out after 30.00 seconds"}, "failed with an error without a name"),
        ({"errorType": None}, "failed with an error without a name"),
        (b"", "failed with an error without a name"),
        (b"[]", "failed with an error without a name"),
    ],
    ids=str,
)
def test_any_other_error_of_the_function_is_told_by_its_name(
    stack: FakeStack, pipe: Pipe, returns: Any, how: str
):
    """Its text may quote a token. The answer may have arrived or not, so the same one is to be sent again."""
    stack.functions.is_error, stack.functions.returns = True, returns

    code, told = pipe("callback", "succeed", STEP)

    assert (4, "Unavailable") == (code, told["error"]["type"])
    assert f"The function resolver {how}" in told["error"]["message"]
    assert "safe to send again" in told["error"]["message"]


@pytest.mark.parametrize("returns", [{}, {"verdict": "perhaps"}, {"verdict": None}, [], None, b"x"], ids=str)
def test_what_is_no_verdict_is_not_taken_for_one(stack: FakeStack, pipe: Pipe, returns: Any):
    """Another function, or a newer one."""
    stack.functions.returns = returns

    code, told = pipe("callback", "heartbeat", STEP)

    assert (4, "Unavailable") == (code, told["error"]["type"])
    assert "gave no verdict" in told["error"]["message"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ClientError({"Error": {"Code": "AccessDeniedException"}}, "Invoke"), "AccessDeniedException"),
        (
            ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "Invoke"),
            "ResourceNotFoundException",
        ),
        (ClientError({"Error": {"Code": "TooManyRequestsException"}}, "Invoke"), "Unavailable"),
        (ConnectTimeoutError(endpoint_url="http://127.0.0.1:9"), "Unavailable"),
    ],
    ids=["denied", "gone", "throttled", "silent"],
)
def test_a_function_that_cannot_be_invoked_is_unreachable(
    stack: FakeStack, pipe: Pipe, error: Exception, kind: str
):
    """Nothing was sent, or nobody knows."""
    stack.functions.raises = error

    code, told = pipe("callback", "succeed", STEP)

    assert (4, kind) == (code, told["error"]["type"])


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["callback", "heartbeat", STEP], "ResolveAwaitingStepFunction"),
        (["awaiting", "list"], "AwaitingStepsTable"),
        (["awaiting", "show", STEP], "AwaitingStepsTable"),
        (["awaiting", "show", STEP, "--link"], "CallbackKey"),
        (["awaiting", "show", STEP, "--link"], "CallbacksUrl"),
    ],
)
def test_a_stack_without_callbacks_is_named(stack: FakeStack, pipe: Pipe, arguments: list[str], output: str):
    """It was deployed from another template, or an older one."""
    stack.table.put()
    del stack.outputs[output]

    code, told = pipe(*arguments)

    assert (4, "Unreachable") == (code, told["error"]["type"])
    assert f"The stack 'prod' has no Output '{output}'" in told["error"]["message"]


# -- awaiting --------------------------------------------------------------------------------------
def test_the_list_begins_with_the_soonest_time_out(stack: FakeStack, pipe: Pipe):
    """Those whose time is over come first, and say so."""
    stack.table.put("as_b", expiresAt="2998-01-01T00:00:00.000Z")
    stack.table.put("as_c", expiresAt=PAST)
    stack.table.put("as_a", "ANSWERING", answer=Answer("success", "tok_secret").to_json())

    code, told = pipe("awaiting", "list")

    assert 0 == code
    assert [("as_c", "PENDING", True), ("as_b", "PENDING", False), ("as_a", "ANSWERING", False)] == [
        (step["awaitingStepId"], step["status"], step["expired"]) for step in told["awaitingSteps"]
    ]
    assert [None, None, "success"] == [step["outcome"] for step in told["awaitingSteps"]]
    assert "tok_secret" not in json.dumps(told)


def test_the_list_leaves_out_what_is_answered_by_now(stack: FakeStack, pipe: Pipe):
    """An index is a moment behind its table."""
    stack.table.put("as_a", "ANSWERED", answer=Answer("success").to_json())
    stack.table.put("as_b", "LATE", answer=Answer("success").to_json())
    stack.table.indexed.append("as_deleted")

    assert (0, {"awaitingSteps": [], "unreadable": []}) == pipe("awaiting", "list")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("columns", [80, 120])
def test_people_can_paste_ids_from_the_list(
    stack: FakeStack,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
):
    """On a terminal of 80 columns, too; and nothing in a step's name steers it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    stack.table.put(step="con\x1b[2J[red]firm")

    assert 0 == commands.run(["awaiting", "list"])

    out = capsys.readouterr().out
    assert all(text in out for text in (STEP, "PENDING", FAR[:19], r"con\x1b[2J[red]firm of order-1"))
    assert TOKEN not in out


@pytest.mark.usefixtures("stack", "terminal")
def test_people_are_told_that_nothing_waits(capsys: pytest.CaptureFixture[str]):
    """Rather than shown a table without rows."""
    assert 0 == commands.run(["awaiting", "list"])
    assert "No step waits for an answer.\n" == capsys.readouterr().out


def test_a_step_is_shown_with_all_but_token_and_answer(stack: FakeStack, pipe: Pipe):
    """What it is, whose, until when, and how it was answered; not with what."""
    stack.table.put(STEP, "ANSWERED", answer=Answer("failure", error="tok_secret").to_json())

    expected = {
        "awaitingStepId": STEP,
        "step": "confirmation",
        "status": "ANSWERED",
        "requestId": "order-1",
        "lockToken": "m/order-1",
        "attempt": 1,
        "expiresAt": FAR,
        "answerBy": FAR,
        "enteredAt": PAST,
        "expired": False,
        "outcome": "failure",
        "execution": "arn:execution:order-1",
        "retryCount": 0,
    }
    assert (0, expected) == pipe("awaiting", "show", STEP)


@pytest.mark.usefixtures("terminal")
def test_people_are_shown_when_a_missed_heartbeat_ends_a_step(
    stack: FakeStack, capsys: pytest.CaptureFixture[str]
):
    """It was listed with its time-out only, which nobody had to wait for."""
    stack.table.put(STEP, answerBy="2998-01-01T00:00:00.000Z")

    assert [0, 0] == [commands.run(["awaiting", "list"]), commands.run(["awaiting", "show", STEP])]
    listed, _, shown = capsys.readouterr().out.partition("\N{BOX DRAWINGS LIGHT ARC DOWN AND RIGHT}")

    assert "2998-01-01T00:00:00" in listed
    assert "2999" not in listed
    assert "answer by" in shown


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("status", "expires", "texts"),
    [
        ("PENDING", FAR, ("PENDING", "waits since", "expires ")),
        ("PENDING", PAST, ("PENDING", "waits since", "expired ")),
        ("ANSWERED", FAR, ("ANSWERED", "waited since", "failure")),
        ("LATE", PAST, ("LATE", "waited since", "expired ", "failure")),
    ],
)
def test_people_are_shown_a_step(
    stack: FakeStack,
    capsys: pytest.CaptureFixture[str],
    status: str,
    expires: str,
    texts: tuple[str, ...],
):
    """Under its id."""
    answer = {} if status == "PENDING" else {"answer": Answer("failure", error="tok_secret").to_json()}
    stack.table.put(STEP, status, expiresAt=expires, **answer)

    assert 0 == commands.run(["awaiting", "show", STEP])

    out = capsys.readouterr().out
    assert all(text in out for text in (STEP, "confirmation", "order-1", "m/order-1", *texts))
    assert not any(secret in out for secret in (TOKEN, "tok_secret"))


@pytest.mark.usefixtures("stack")
def test_a_step_that_nobody_knows_leaves_with_1(pipe: Pipe):
    """And says where to find those that wait."""
    code, told = pipe("awaiting", "show", STEP)

    assert (1, "StepNotFound") == (code, told["error"]["type"])
    assert ["steponce awaiting list"] == told["error"]["next"]


# -- links -----------------------------------------------------------------------------------------
def test_a_link_is_genuine_and_answers_this_step(stack: FakeStack, pipe: Pipe):
    """With any outcome, as long as the step waits."""
    stack.table.put()

    code, told = pipe("awaiting", "show", STEP, "--link")

    link = urlsplit(told["link"])
    query = dict(parse_qsl(link.query))
    assert (0, f"https://callbacks.example/callbacks/{STEP}") == (code, told["link"].partition("?")[0])
    assert {"success", "failure", "heartbeat"} == verify(Keys(stack.secrets, "the-key"), STEP, query)
    assert str(times.epoch_seconds(FAR)) == query["expires"]


@pytest.mark.usefixtures("terminal")
def test_a_link_stands_on_a_line_of_its_own(
    stack: FakeStack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Broken by a table, it could not be opened."""
    monkeypatch.setenv("COLUMNS", "40")
    stack.table.put()

    commands.run(["awaiting", "show", STEP, "--link"])

    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"https://callbacks.example/callbacks/{STEP}?expires=")
    assert "&signature=" in last


@pytest.mark.parametrize(("status", "expires"), [("ANSWERED", FAR), ("LATE", FAR), ("PENDING", PAST)])
def test_what_waits_no_more_gets_no_link(stack: FakeStack, pipe: Pipe, status: str, expires: str):
    """Nobody needs the key for that."""
    answer = {"answer": '{"outcome": "success", "output": 1}'} if status == "ANSWERED" else {}
    stack.table.put(STEP, status, expiresAt=expires, **answer)
    stack.secrets.raises = AssertionError("nobody may ask")

    code, told = pipe("awaiting", "show", STEP, "--link")

    assert (0, None) == (code, told["link"])


@pytest.mark.usefixtures("terminal")
def test_people_are_told_why_there_is_no_link(stack: FakeStack, capsys: pytest.CaptureFixture[str]):
    """Rather than left to look for it."""
    stack.table.put(STEP, "LATE")

    commands.run(["awaiting", "show", STEP, "--link"])

    assert capsys.readouterr().out.endswith("No link, for it waits no more.\n")


def test_whoever_may_not_read_the_key_gets_no_link(stack: FakeStack, pipe: Pipe):
    """But all the rest without --link."""
    stack.table.put()
    error = {"Error": {"Code": "AccessDeniedException", "Message": "not yours"}}
    stack.secrets.raises = ClientError(error, "GetSecretValue")

    code, told = pipe("awaiting", "show", STEP, "--link")

    assert (4, "GetSecretValue was refused: not yours") == (code, told["error"]["message"])
    assert 0 == pipe("awaiting", "show", STEP)[0]


def test_a_key_that_is_bytes_signs_no_link(stack: FakeStack, pipe: Pipe):
    """It was put with --secret-binary, which was called a bug in steponce."""
    stack.table.put()
    stack.secrets.content = {"SecretBinary": b"key"}

    code, told = pipe("awaiting", "show", STEP, "--link")

    assert (1, "InvalidSetting") == (code, told["error"]["type"])
    assert told["error"]["message"].endswith("and put a new key with --secret-string.")


# -- a request in place of its step ----------------------------------------------------------------
def attempt(*steps: tuple[str, str], number: int = 1, status: str = "RUNNING") -> Attempt:
    """An attempt with awaiting steps, given by id and status."""
    found = [
        Waiting(step_id, "Await", step_id[-1], step_status, PAST, FAR, expired=False)
        for step_id, step_status in steps
    ]
    return Attempt(number, f"arn:execution:order-1--{number}", status, awaiting_steps=found)


@pytest.fixture
def told(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stories that are told one after the other, the last for ever: attempts, or an error."""
    stories: list[Any] = []

    def collect(_client: Any, request_id: str, *, steps: AwaitingSteps) -> Story:
        assert steps is not None
        found = stories.pop(0) if len(stories) > 1 else stories[0]
        if isinstance(found, Exception):
            raise found
        return Story(request_id, None, "running", "", None, found, None)

    monkeypatch.setattr(collector, "collect", collect)
    monkeypatch.setattr("steponce.cli.which_step.NOT_YET_RECORDED_SECONDS", 0.3)
    stack.table.put()
    return stories


@pytest.mark.parametrize(
    "attempts",
    [
        [attempt((STEP, "PENDING"))],
        [attempt((STEP, "ANSWERING"))],
        [attempt((STEP, "ANSWERED"), status="SUCCEEDED")],
        [attempt((OTHER, "PENDING"), status="ABORTED"), attempt((STEP, "PENDING"), number=2)],
        [attempt((OTHER, "LATE"), status="TIMED_OUT"), attempt((STEP, "PENDING"), number=2)],
    ],
    ids=["waits", "is answered", "was answered", "second attempt", "after a late one"],
)
def test_a_request_stands_for_the_step_that_it_waits_in(
    stack: FakeStack, pipe: Pipe, told: list[Any], attempts: list[Attempt]
):
    """Or has waited in, so that a repeated answer gets its verdict, too."""
    told.append(attempts)

    assert STEP == pipe("callback", "succeed", "order-1")[1]["awaitingStepId"]
    assert STEP == pipe("awaiting", "show", "order-1")[1]["awaitingStepId"]
    assert [STEP] == [asked["awaitingStepId"] for _, asked in stack.functions.asked]


@pytest.mark.parametrize("answered", ["ANSWERING", "ANSWERED"])
def test_an_answer_to_an_earlier_attempt_does_not_go_to_the_next_one(
    stack: FakeStack, pipe: Pipe, told: list[Any], answered: str
):
    """The same command comes again after `locks retry`."""
    told.append([attempt((OTHER, answered), status="FAILED"), attempt((STEP, "PENDING"), number=2)])

    code, answer = pipe("callback", "succeed", "order-1")

    assert (2, "UsageError") == (code, answer["error"]["type"])
    assert f"Name one: {OTHER} (1, {answered}), {STEP} (0, PENDING)" in answer["error"]["message"]
    assert [] == stack.functions.asked


@pytest.mark.parametrize(
    "command", [("callback", "succeed"), ("callback", "heartbeat"), ("awaiting", "show")]
)
def test_an_attempt_that_does_not_wait_yet_is_not_taken_for_the_one_before(
    stack: FakeStack, pipe: Pipe, told: list[Any], command: tuple[str, str]
):
    """After `locks retry`. The verdict on the answered step would be `duplicate`: nothing more to do."""
    told.append([attempt((OTHER, "ANSWERED"), status="FAILED"), attempt(number=2)])

    code, answer = pipe(*command, "order-1")

    assert (2, "UsageError") == (code, answer["error"]["type"])
    message = answer["error"]["message"]
    assert (
        "Attempt 2 of the request 'order-1' does not wait in a step yet. Try again when it does." in message
    )
    assert f"name its step: {OTHER} (1, ANSWERED)" in message
    assert [] == stack.functions.asked


def test_a_newest_attempt_that_has_ended_leaves_the_answered_step_of_the_one_before(
    pipe: Pipe, told: list[Any]
):
    """Nothing of it will wait any more, so a repeated answer gets its verdict."""
    told.append([attempt((OTHER, "ANSWERED"), status="FAILED"), attempt(number=2, status="FAILED")])

    assert OTHER == pipe("callback", "succeed", "order-1")[1]["awaitingStepId"]


def test_a_request_that_was_just_started_is_given_a_moment(pipe: Pipe, told: list[Any]):
    """Its step is not on record yet."""
    told += [[attempt()], [attempt()], [attempt((STEP, "PENDING"))]]

    assert STEP == pipe("callback", "succeed", "order-1")[1]["awaitingStepId"]


def test_a_request_that_is_over_is_not_waited_for(stack: FakeStack, pipe: Pipe, told: list[Any]):
    """It will not come to a step any more."""
    told += [[attempt(status="SUCCEEDED")], AssertionError("nobody may ask again")]
    stack.functions.returns = {"verdict": "unknown"}

    assert 1 == pipe("callback", "succeed", "order-1")[0]


@pytest.mark.parametrize("first", ["PENDING", "ANSWERED"])
def test_a_request_with_several_steps_must_be_told_which(
    stack: FakeStack, pipe: Pipe, told: list[Any], first: str
):
    """Branches can wait at the same time. An answer that is repeated must not go to the step after."""
    told.append([attempt((STEP, first), (OTHER, "PENDING"))])

    code, answer = pipe("callback", "succeed", "order-1")

    assert (2, "UsageError") == (code, answer["error"]["type"])
    assert f"Name one: {STEP} (0, {first}), {OTHER} (1, PENDING)" in answer["error"]["message"]
    assert [] == stack.functions.asked


@pytest.mark.parametrize(
    "found",
    [RequestNotFound("no"), [attempt(status="SUCCEEDED")], [attempt()], [attempt(status="GONE")]],
    ids=["no request", "did not wait", "does not wait yet", "is forgotten"],
)
def test_what_nobody_knows_is_unknown(stack: FakeStack, pipe: Pipe, told: list[Any], found: Any):
    """The resolver says so, and so does show."""
    told.append(found)
    stack.functions.returns = {"verdict": "unknown"}

    assert (1, "unknown") == ((answer := pipe("callback", "succeed", "order-1"))[0], answer[1]["verdict"])
    assert (1, "StepNotFound") == (
        (answer := pipe("awaiting", "show", "order-1"))[0],
        answer[1]["error"]["type"],
    )


# -- stories and targets ---------------------------------------------------------------------------
@pytest.mark.parametrize("has_table", [True, False])
def test_show_tells_of_awaiting_steps_where_there_is_a_table(
    stack: FakeStack, pipe: Pipe, monkeypatch: pytest.MonkeyPatch, has_table: bool
):
    """A stack may have been deployed without one."""
    given: list[Any] = []

    def collect(*_: Any, steps: Any, **__: Any) -> Story:
        given.append(steps)
        return Story("order-1", None, "completed", "Done.", None, [], None)

    monkeypatch.setattr(collector, "collect", collect)
    if not has_table:
        del stack.outputs["AwaitingStepsTable"]

    assert 0 == pipe("show", "order-1")[0]
    assert [has_table] == [isinstance(steps, AwaitingSteps) for steps in given]


def test_a_stack_on_aws_has_outputs_and_clients(monkeypatch: pytest.MonkeyPatch, pipe: Pipe):
    """The Outputs are CloudFormation's, and the clients know the region."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "STEPONCE_"))]:
        monkeypatch.delenv(name)
    table, asked = FakeTable(), []
    table.put()

    class CloudFormation:
        def describe_stacks(self, *, StackName: str) -> dict[str, Any]:
            outputs = [{"OutputKey": key, "OutputValue": value} for key, value in OUTPUTS.items()]
            return {"Stacks": [{"StackName": StackName, "Outputs": outputs}]}

    def client(session: Any, service: str, **_: Any) -> Any:
        asked.append((session.region_name, service))
        return CloudFormation() if service == "cloudformation" else table

    monkeypatch.setattr("boto3.Session.client", client)

    code, told = pipe("awaiting", "list", "--stack", "prod", "--region", "eu-west-1")

    assert (0, [STEP]) == (code, [step["awaitingStepId"] for step in told["awaitingSteps"]])
    assert [("eu-west-1", "cloudformation"), ("eu-west-1", "dynamodb")] == asked
