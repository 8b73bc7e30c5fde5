"""What the page behind a callback link says, before and after an answer."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from datetime import timedelta

import pytest

from steponce.aws import times
from steponce.callbacks import page
from steponce.callbacks.answer import Answer
from steponce.callbacks.awaiting import AwaitingStep
from steponce.callbacks.links import sign
from steponce.errors import Unavailable
from tests.fakes.waiting_step import BEGINNING
from tests.unit.callback_door import CallbackDoor, Told

FORM = "application/x-www-form-urlencoded"
ASKED, DUE = "31 January 2026, 13:00 UTC", "31 January 2026, 14:00 UTC"
NOON = "31 January 2026, 12:00 UTC"


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> CallbackDoor:
    """A door with a step that waits behind it; it is twelve."""
    monkeypatch.setattr(times, "now", lambda: BEGINNING)
    return CallbackDoor()


def look(door: CallbackDoor, link: str | None = None) -> Told:
    return door.send(link or door.link(), method="GET")


def press(door: CallbackDoor, outcome: str) -> Told:
    return door.send(door.link(), f"outcome={outcome}", kind=FORM)


def title(told: Told) -> str:
    found = re.search(r"<h1>(.*)</h1>", told.body)
    assert found is not None
    assert f"<title>{found[1]}</title>" in told.body
    return found[1]


def text(told: Told) -> str:
    """The page's sentence and its facts, without tags."""
    main = told.body.partition('<p id="text">')[2].partition("<form")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


def buttons(told: Told) -> list[str]:
    return re.findall(r'<button name="outcome" value="(\w+)">', told.body)


def test_a_link_says_what_is_asked_of_which_request_and_until_when(door: CallbackDoor):
    """With a button for each answer."""
    told = look(door)

    assert (200, "Your answer is needed") == (told.status, title(told))
    sentence = "The step confirmation of the request order-1 waits for an answer."
    assert f"{sentence} Asked {ASKED} Answer by {DUE}" == text(told)
    assert '<time datetime="2026-01-31T14:00:00.000Z">' in told.body
    assert ["success", "failure"] == buttons(told)


def test_a_link_that_ends_before_its_step_says_so(door: CallbackDoor):
    """Nobody is promised a time at which the link is refused."""
    link = sign(door.keys, door.step.id, "2026-01-31T12:30:00.000Z", ["success"])
    assert "Answer by 31 January 2026, 12:30 UTC" in text(look(door, link))


def test_a_link_for_programs_shows_no_button(door: CallbackDoor):
    """One that allows nothing but heartbeats."""
    told = look(door, door.link("heartbeat"))
    assert [] == buttons(told)
    assert "no answer by a button" in told.body


@pytest.mark.parametrize(("outcome", "answer"), [("success", "Confirmed"), ("failure", "Declined")])
def test_after_an_answer_the_page_says_which_and_when(door: CallbackDoor, outcome: str, answer: str):
    """At once, at a second look, and to whoever answers once more."""
    accepted = press(door, outcome)
    looked = look(door)
    duplicate = press(door, outcome)
    other = "success" if outcome == "failure" else "failure"
    conflict = press(door, other)

    step, facts = "the step confirmation of the request order-1", f"Answer {answer} Arrived {NOON}"
    assert (200, "Thank you") == (accepted.status, title(accepted))
    assert f"Your answer to {step} has arrived. This is settled. {facts}" == text(accepted)
    assert (200, "Already answered") == (looked.status, title(looked))
    assert f"T{step[1:]} has its answer. This is settled. {facts}" == text(looked)
    assert (200, "Already answered") == (duplicate.status, title(duplicate))
    assert f"The same answer to {step} had arrived before. This is settled. {facts}" == text(duplicate)
    assert (409, "Another answer stands") == (conflict.status, title(conflict))
    assert text(conflict).endswith(f"and it stands. Yours changes nothing. {facts}")
    assert [] == [button for told in (accepted, looked, duplicate, conflict) for button in buttons(told)]


def test_what_a_program_has_answered_is_named_and_not_shown(door: CallbackDoor):
    """Its output is the workflow's."""
    door.send(door.link(), {"outcome": "success", "output": {"iban": "DE00"}})
    told = look(door)
    assert text(told).endswith(f"This is settled. Answer Success Arrived {NOON}")
    assert "DE00" not in told.body


def test_an_answer_on_its_way_is_shown_as_arrived(door: CallbackDoor):
    """Whoever claimed the record has died, or is at it."""
    door.steps.claim(door.step, Answer("failure", error="Refused"), "a call that died")
    told = look(door)
    assert "has arrived. It is on its way to the workflow. Answer Failure" in text(told)
    assert [] == buttons(told)


def test_a_step_whose_time_is_over_is_too_late(door: CallbackDoor, monkeypatch: pytest.MonkeyPatch):
    """By the clock, and then by the record; an answer changes nothing."""
    monkeypatch.setattr(times, "now", lambda: BEGINNING + timedelta(hours=3))
    door.wait.time_out()
    door.wait.retry()
    door.wait.time_out()
    by_clock, pressed, by_record = look(door), press(door, "success"), look(door)

    ended = "The step confirmation of the request order-1 does not wait any more. No answer had arrived."
    assert [(200, "Too late")] * 2 == [(told.status, title(told)) for told in (by_clock, by_record)]
    assert [f"{ended} Answer was due by {DUE}"] * 2 == [text(told) for told in (by_clock, by_record)]
    assert (410, "Too late") == (pressed.status, title(pressed))
    assert text(pressed).endswith(f"had ended before, without any answer. Answer was due by {DUE}")
    assert [] == [button for told in (by_clock, pressed, by_record) for button in buttons(told)]


def test_a_step_that_is_stopped_before_its_time_is_not_said_to_be_overdue(door: CallbackDoor):
    """Its workflow was cancelled."""
    door.steps.close(door.step, None)
    assert text(look(door)).endswith("No answer had arrived.")


def test_a_step_that_is_unknown_is_not_found(door: CallbackDoor):
    """To look at, or to answer."""
    link = door.link(step_id="as_0")
    for told in (look(door, link), door.send(link, "outcome=success", kind=FORM)):
        assert (404, "Not found") == (told.status, title(told))
        assert "There is no such step." in text(told)


def test_a_verdict_is_told_also_when_the_record_cannot_be_read_again(
    door: CallbackDoor, monkeypatch: pytest.MonkeyPatch
):
    """The answer has arrived; nobody may be told to send it again."""

    def is_down(_step_id: str) -> AwaitingStep:
        raise Unavailable("DynamoDB does not answer")

    reads = iter([door.steps.get])
    monkeypatch.setattr(door.steps, "get", lambda step_id: next(reads, is_down)(step_id))
    told = press(door, "success")

    assert [door.verdicts[-1], "Thank you"] == ["accepted", title(told)]
    assert "Your answer to this step has arrived. This is settled." == text(told)


def test_names_from_outside_are_escaped(door: CallbackDoor):
    """They are text of their own direction, and no markup."""
    name = '"><script>alert(1)</script>\u202e$style&'
    changed = {"step": {"S": name}, "requestId": {"S": name}}
    told = page.asking(spoilt(door, changed), ["success"], BEGINNING + timedelta(hours=1))

    assert 2 == told.count(f"<bdi>{html.escape(name)}</bdi>")
    assert "<script" not in told


def spoilt(door: CallbackDoor, changed: dict[str, dict[str, str]]) -> AwaitingStep:
    """The door's step with other attributes."""
    ((_, item),) = door.table.items.items()
    return AwaitingStep.from_item(item | changed)


def test_no_page_shows_the_task_token(door: CallbackDoor):
    """Nor the business key, the execution or the call."""
    secrets = [door.step.task_token, door.step.lock_token, door.step.execution, door.step.call_id]
    pages = [look(door), press(door, "success"), look(door), press(door, "failure")]
    assert [] == [secret for secret in secrets for told in pages if secret in told.body]


def test_a_page_may_do_nothing_but_answer(door: CallbackDoor):
    """No script, nothing from elsewhere, no frame around it; the style sheet is allowed by its hash."""
    told = look(door)
    style = re.search(r"<style>(.*)</style>", told.body, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()

    policy = ["default-src 'none'", f"style-src 'sha256-{digest}'", "form-action 'self'"]
    policy += ["base-uri 'none'", "frame-ancestors 'none'"]
    assert policy == told.headers["Content-Security-Policy"].split("; ")
    assert ["no-store", "no-referrer", "nosniff", "DENY"] == [
        told.headers[name]
        for name in ("Cache-Control", "Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options")
    ]
    assert [] == re.findall(r"<script| on\w+=|style=|url\(|@import|<link|<img", told.body)


@pytest.mark.parametrize(
    ("link", "body", "status", "heading"),
    [
        ("forged", "outcome=success", 403, "This link does not work"),
        ("genuine", "outcome=heartbeat", 400, "This is no answer"),
        ("genuine", "nothing", 400, "This is no answer"),
    ],
)
def test_a_form_that_is_refused_says_why(door: CallbackDoor, link: str, body: str, status: int, heading: str):
    """And the step waits on."""
    told = door.send(door.link() + ("0" if link == "forged" else ""), body, kind=FORM)
    assert (status, heading, []) == (told.status, title(told), door.verdicts)
