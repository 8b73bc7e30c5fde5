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
from steponce.callbacks.links import sign
from steponce.callbacks.step import AwaitingStep
from steponce.errors import Unavailable
from tests.fakes.waiting_step import BEGINNING
from tests.unit.callback_links import CallbackLinks, Reply

FORM = "application/x-www-form-urlencoded"
ASKED, DUE = "31 January 2026, 13:00 UTC", "31 January 2026, 14:00 UTC"
NOON = "31 January 2026, 12:00 UTC"


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> CallbackLinks:
    """A links with a step that waits behind it; it is twelve."""
    monkeypatch.setattr(times, "now", lambda: BEGINNING)
    return CallbackLinks()


def look(links: CallbackLinks, link: str | None = None) -> Reply:
    return links.send(link or links.link(), method="GET")


def press(links: CallbackLinks, outcome: str) -> Reply:
    return links.send(links.link(), f"outcome={outcome}", kind=FORM)


def title(reply: Reply) -> str:
    found = re.search(r"<h1>(.*)</h1>", reply.body)
    assert found is not None
    assert f"<title>{found[1]}</title>" in reply.body
    return found[1]


def text(reply: Reply) -> str:
    """The page's sentence and its facts, without tags."""
    main = reply.body.partition('<p id="text">')[2].partition("<form")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


def buttons(reply: Reply) -> list[str]:
    return re.findall(r'<button name="outcome" value="(\w+)">', reply.body)


def test_a_link_says_what_is_asked_of_which_request_and_until_when(links: CallbackLinks):
    """With a button for each answer."""
    reply = look(links)

    assert (200, "Your answer is needed") == (reply.status, title(reply))
    sentence = "The step confirmation of the request order-1 waits for an answer."
    assert f"{sentence} Asked {ASKED} Answer by {DUE}" == text(reply)
    assert '<time datetime="2026-01-31T14:00:00.000Z">' in reply.body
    assert ["success", "failure"] == buttons(reply)


def test_a_link_says_when_the_heartbeat_ends_the_wait(links: CallbackLinks, monkeypatch: pytest.MonkeyPatch):
    """A person had been promised the time-out. After the heartbeat's time nobody is told to be needed."""
    passed = links.wait.handed[-1] | {"callId": "call-of-a-person", "heartbeatSeconds": 900}
    step = AwaitingStep.from_event(passed)
    links.steps.record(step)
    link = sign(links.keys, step.id, step.expires_at, ["success", "failure", "heartbeat"])
    by, found = "31 January 2026, 13:15 UTC", {}
    for minutes in (0, 75, 120):
        monkeypatch.setattr(times, "now", lambda minutes=minutes: BEGINNING + timedelta(minutes=minutes + 1))
        found[minutes] = look(links, link)

    assert ["Your answer is needed", "It may be too late"] == [title(found[0]), title(found[75])]
    assert text(found[0]).endswith(f"Answer by {by}")
    assert text(found[75]).endswith(f"Answer was due by {by} With heartbeats, by {DUE}")
    assert ["success", "failure"] == buttons(found[75])


def test_a_link_that_ends_before_its_step_says_so(links: CallbackLinks):
    """Nobody is promised a time at which the link is refused."""
    link = sign(links.keys, links.step.id, "2026-01-31T12:30:00.000Z", ["success"])
    assert "Answer by 31 January 2026, 12:30 UTC" in text(look(links, link))


def test_a_link_for_programs_shows_no_button(links: CallbackLinks):
    """One that allows nothing but heartbeats."""
    reply = look(links, links.link("heartbeat"))
    assert [] == buttons(reply)
    assert "no answer by a button" in reply.body


@pytest.mark.parametrize(("outcome", "answer"), [("success", "Confirmed"), ("failure", "Declined")])
def test_after_an_answer_the_page_says_which_and_when(links: CallbackLinks, outcome: str, answer: str):
    """At once, at a second look, and to whoever answers once more."""
    accepted = press(links, outcome)
    looked = look(links)
    duplicate = press(links, outcome)
    other = "success" if outcome == "failure" else "failure"
    conflict = press(links, other)

    step, facts = "the step confirmation of the request order-1", f"Answer {answer} Arrived {NOON}"
    assert (200, "Thank you") == (accepted.status, title(accepted))
    assert f"Your answer to {step} has arrived. This is settled. {facts}" == text(accepted)
    assert (200, "Already answered") == (looked.status, title(looked))
    assert f"T{step[1:]} has its answer. This is settled. {facts}" == text(looked)
    assert (200, "Already answered") == (duplicate.status, title(duplicate))
    assert f"The same answer to {step} had arrived before. This is settled. {facts}" == text(duplicate)
    assert (409, "Another answer stands") == (conflict.status, title(conflict))
    assert text(conflict).endswith(f"and it stands. Yours changes nothing. {facts}")
    assert [] == [button for reply in (accepted, looked, duplicate, conflict) for button in buttons(reply)]


def test_what_a_program_has_answered_is_named_and_not_shown(links: CallbackLinks):
    """Its output is the workflow's."""
    links.send(links.link(), {"outcome": "success", "output": {"iban": "DE00"}})
    reply = look(links)
    assert text(reply).endswith(f"This is settled. Answer Success Arrived {NOON}")
    assert "DE00" not in reply.body


def test_an_answer_on_its_way_is_not_called_settled(links: CallbackLinks):
    """Whoever claimed the record has died, or is at it. The step may end before the answer reaches it."""
    links.steps.claim(links.step, Answer("failure", error="Refused"), "a call that died")
    reply = look(links)
    assert "An answer is on its way" == title(reply)
    assert "not certain yet that it reaches the workflow. Look again in some minutes. Answer Failure" in text(
        reply
    )
    assert [] == buttons(reply)


def test_a_step_whose_time_is_over_is_too_late(links: CallbackLinks, monkeypatch: pytest.MonkeyPatch):
    """By the clock, and then by the record; an answer changes nothing."""
    monkeypatch.setattr(times, "now", lambda: BEGINNING + timedelta(hours=3))
    links.wait.time_out()
    links.wait.retry()
    links.wait.time_out()
    by_clock, pressed, by_record = look(links), press(links, "success"), look(links)

    ended = "The step confirmation of the request order-1 does not wait any more. No answer had arrived."
    assert [(200, "Too late")] * 2 == [(reply.status, title(reply)) for reply in (by_clock, by_record)]
    assert [f"{ended} Answer was due by {DUE}"] * 2 == [text(reply) for reply in (by_clock, by_record)]
    assert (410, "Too late") == (pressed.status, title(pressed))
    assert text(pressed).endswith(f"had ended before, without any answer. Answer was due by {DUE}")
    assert [] == [button for reply in (by_clock, pressed, by_record) for button in buttons(reply)]


def test_a_step_that_is_stopped_before_its_time_is_not_said_to_be_overdue(links: CallbackLinks):
    """Its workflow was cancelled."""
    links.steps.close(links.step, None)
    assert text(look(links)).endswith("No answer had arrived.")


def test_a_step_that_is_unknown_is_not_found(links: CallbackLinks):
    """To look at, or to answer."""
    link = links.link(step_id="as_0")
    for reply in (look(links, link), links.send(link, "outcome=success", kind=FORM)):
        assert (404, "Not found") == (reply.status, title(reply))
        assert "There is no such step." in text(reply)


def test_a_verdict_is_told_also_when_the_record_cannot_be_read_again(
    links: CallbackLinks, monkeypatch: pytest.MonkeyPatch
):
    """The answer has arrived; nobody may be reply to send it again."""

    def is_down(_step_id: str) -> AwaitingStep:
        raise Unavailable("DynamoDB does not answer")

    reads = iter([links.steps.get])
    monkeypatch.setattr(links.steps, "get", lambda step_id: next(reads, is_down)(step_id))
    reply = press(links, "success")

    assert [links.verdicts[-1], "Thank you"] == ["accepted", title(reply)]
    assert "Your answer to this step has arrived. This is settled." == text(reply)


def test_names_from_outside_are_escaped(links: CallbackLinks):
    """They are text of their own direction, and no markup."""
    name = '"><script>alert(1)</script>\u202e$style&'
    changed = {"step": {"S": name}, "requestId": {"S": name}}
    reply = page.question_html(spoilt(links, changed), ["success"], BEGINNING + timedelta(hours=1))

    assert 2 == reply.count(f"<bdi>{html.escape(name)}</bdi>")
    assert "<script" not in reply


def spoilt(links: CallbackLinks, changed: dict[str, dict[str, str]]) -> AwaitingStep:
    """The links's step with other attributes."""
    ((_, item),) = links.table.items.items()
    return AwaitingStep.from_item(item | changed)


def test_no_page_shows_the_task_token(links: CallbackLinks):
    """Nor the business key, the execution or the call."""
    secrets = [links.step.task_token, links.step.lock_token, links.step.execution, links.step.call_id]
    pages = [look(links), press(links, "success"), look(links), press(links, "failure")]
    assert [] == [secret for secret in secrets for reply in pages if secret in reply.body]


def test_a_page_may_do_nothing_but_answer(links: CallbackLinks):
    """No script, nothing from elsewhere, no frame around it; the style sheet is allowed by its hash."""
    reply = look(links)
    style = re.search(r"<style>(.*)</style>", reply.body, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()

    policy = ["default-src 'none'", f"style-src 'sha256-{digest}'", "form-action 'self'"]
    policy += ["base-uri 'none'", "frame-ancestors 'none'"]
    assert policy == reply.headers["Content-Security-Policy"].split("; ")
    assert ["no-store", "no-referrer", "nosniff", "DENY"] == [
        reply.headers[name]
        for name in ("Cache-Control", "Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options")
    ]
    assert [] == re.findall(r"<script| on\w+=|style=|url\(|@import|<link|<img", reply.body)


@pytest.mark.parametrize(
    ("link", "body", "status", "heading"),
    [
        ("forged", "outcome=success", 403, "This link does not work"),
        ("genuine", "outcome=heartbeat", 400, "This is no answer"),
        ("genuine", "nothing", 400, "This is no answer"),
    ],
)
def test_a_form_that_is_refused_says_why(
    links: CallbackLinks, link: str, body: str, status: int, heading: str
):
    """And the step waits on."""
    reply = links.send(links.link() + ("0" if link == "forged" else ""), body, kind=FORM)
    assert (status, heading, []) == (reply.status, title(reply), links.verdicts)
