"""The story of a request, in a pipe and on a terminal."""

from __future__ import annotations

import json
from dataclasses import is_dataclass, replace
from typing import Any

import pytest

from steponce.cli import commands
from steponce.locks.record import Intervention
from steponce.report import collector
from steponce.report.story import Attempt, Record, Story, Trouble, Visit, Waiting
from tests.unit.cli.fakes import PAYLOAD, FakeClient, in_a_pipe

FAR = "2999-01-01T00:00:00.000Z"

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
@pytest.mark.parametrize(
    ("left", "status"), [(True, "PENDING, but its state was left"), (False, "PENDING    ")]
)
def test_a_step_that_nothing_waits_for_is_told_from_one_that_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, left: bool, status: str
):
    """Both records are PENDING."""
    step = Waiting("as_1", "Await", "bank", "PENDING", "2026-01-31T12:00:00.000Z", FAR, False, left=left)
    attempt = Attempt(1, "arn:execution:order-1", "RUNNING", awaiting_steps=[step])
    monkeypatch.setattr(collector, "collect", lambda *_, **__: replace(STORY, attempts=[attempt]))

    commands.run(["show", "order-1"])

    out = capsys.readouterr().out
    assert status in out
    assert left != ("waits since" in out)


FOREIGN = "Charge [/card] [link=x]\x1b]0;owned\x07 :bomb:"


def foreign(found: Any) -> Any:
    """The same, with a text of somebody else at every place but the times."""
    if isinstance(found, str):
        return found if found.startswith("2026") else FOREIGN
    if isinstance(found, list | tuple):
        return type(found)(map(foreign, found))
    if is_dataclass(found) and not isinstance(found, type):
        return replace(found, **{name: foreign(value) for name, value in vars(found).items()})
    return found


@pytest.mark.usefixtures("told", "terminal")
def test_no_text_in_a_story_is_markup(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """A state's name with brackets is shown as it is, wherever it stands, and steers nothing."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(collector, "collect", lambda *_, **__: foreign(STORY))

    assert 0 == commands.run(["show", "order-1"])

    out = capsys.readouterr().out
    shown = FOREIGN.replace("\x1b", r"\x1b").replace("\x07", r"\x07").lower()
    assert "\x1b" not in out
    assert out.lower().count("charge") == out.lower().count(shown)
    assert any(shown in line.lower() and "2 tries" in line for line in out.splitlines())


@pytest.mark.usefixtures("told", "terminal")
def test_show_without_a_record_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """There is still a story."""
    monkeypatch.setattr(collector, "collect", lambda *_, **__: replace(STORY, record=None, holder=None))

    assert 0 == commands.run(["show", "order-1"])
    assert "none" in capsys.readouterr().out
