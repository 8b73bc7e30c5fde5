"""
The page behind a callback link, for people.

It says what is asked, of which request and until when, and later which answer arrived. All of that comes from
the record of the awaiting step. The page shows neither the task token nor what a program has answered, and
works without scripts, which its headers forbid.
"""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from string import Template

from steponce.aws import times
from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.step import ANSWERED, LATE, AwaitingStep

_HERE = Path(__file__).parent
_STYLE = (_HERE / "page.css").read_text(encoding="utf-8")
_PAGE = Template((_HERE / "page.html").read_text(encoding="utf-8"))

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
"""Allows the page's own style sheet, and a form that answers to the address of the page."""


@dataclass(frozen=True)
class Button:
    """
    A button of the page.

    Args:
        label: What stands on it.
        answered: What the page calls its answer once it has arrived.
        answer: What the workflow gets.
    """

    label: str
    answered: str
    answer: Answer


BUTTONS: Mapping[str, Button] = {
    "success": Button("Confirm", "Confirmed", Answer("success", {"confirmed": True})),
    "failure": Button("Decline", "Declined", Answer("failure", error="Declined", cause="Declined by link.")),
}
"""By the outcome that a link has to allow for it."""

_VERDICTS: Mapping[Verdict, tuple[str, str]] = {
    "accepted": ("Thank you", "Your answer to {step} has arrived. This is settled."),
    "duplicate": ("Already answered", "The same answer to {step} had arrived before. This is settled."),
    "conflict": (
        "Another answer stands",
        "Another answer to {step} had arrived before yours, and it stands. Yours changes nothing.",
    ),
    "late": ("Too late", "Your answer changes nothing: {step} had ended before, without any answer."),
    "unknown": ("Not found", "There is no such step. Its record is deleted some time after its end."),
}


def question_html(step: AwaitingStep | None, outcomes: Collection[str], until: datetime) -> str:
    """
    The page that a link opens.

    Args:
        step: The record; None if there is none.
        outcomes: What the link allows.
        until: When the link ends. The step may end before, also because no heartbeat has come.
    """
    if step is None:
        return verdict_html("unknown", None)
    until = min(until, times.from_text(step.expires_at))
    if step.status == ANSWERED:
        text = f"{_named(step)} has its answer. This is settled."
        return _page("Already answered", text, _answer_of(step))
    if step.answer is not None:
        text = (
            f"There is an answer to {_named(step)}, but it is not certain yet that it reaches the workflow. "
            "Look again in some minutes."
        )
        return _page("An answer is on its way", text, _answer_of(step))
    if step.status == LATE or until <= times.now():
        text = f"{_named(step)} does not wait any more. No answer had arrived."
        return _page("Too late", text, _due(until))
    facts = {"Asked": _time(times.from_text(step.entered_at))}
    by = min(until, times.from_text(step.answer_by))
    if by <= times.now():  # nothing tells whether a heartbeat has come
        title, text = "It may be too late", f"{_named(step)} waits only if a program has sent a heartbeat."
        facts |= {"Answer was due by": _time(by), "With heartbeats, by": _time(until)}
        return _page(title, text, facts, _form(outcomes))
    facts["Answer by"] = _time(by)
    return _page("Your answer is needed", f"{_named(step)} waits for an answer.", facts, _form(outcomes))


def verdict_html(verdict: Verdict, step: AwaitingStep | None) -> str:
    """
    The page that follows a button.

    Args:
        verdict: On the button's answer.
        step: The record as it is now; None if there is none, or it cannot be read now.
    """
    title, text = _VERDICTS[verdict]
    if step is None:
        return _page(title, text.format(step="this step"), {})
    facts = _due(times.from_text(step.expires_at)) if verdict == "late" else _answer_of(step)
    return _page(title, text.format(step=_named(step)), facts)


def problem_html(title: str, message: str) -> str:
    """The page for a link or a form that cannot be used; both arguments are plain text."""
    return _page(html.escape(title), html.escape(message), {})


def _named(step: AwaitingStep) -> str:
    """What is asked, and of which request."""
    return f"the step {_quoted(step.step)} of the request {_quoted(step.request_id)}"


def _quoted(text: str) -> str:
    """A name from outside. It cannot turn the direction of the text around it."""
    return f"<strong><bdi>{html.escape(text)}</bdi></strong>"


def _answer_of(step: AwaitingStep) -> dict[str, str]:
    """Which answer the record holds, and when it arrived."""
    if step.answer is None:
        return {}
    known = [button.answered for button in BUTTONS.values() if button.answer == step.answer]
    facts = {"Answer": known[0] if known else step.answer.outcome.capitalize()}
    if step.answered_at is not None:
        facts["Arrived"] = _time(times.from_text(step.answered_at))
    return facts


def _due(until: datetime) -> dict[str, str]:
    """When the time was over. A step whose workflow was stopped ends earlier."""
    return {"Answer was due by": _time(until)} if until <= times.now() else {}


def _time(time: datetime) -> str:
    text = f"{time.day} {time:%B %Y, %H:%M} UTC"
    return f'<time datetime="{times.to_text(time)}">{text}</time>'


def _form(outcomes: Collection[str]) -> str:
    buttons = [
        f'<button name="outcome" value="{outcome}">{button.label}</button>'
        for outcome, button in BUTTONS.items()
        if outcome in outcomes
    ]
    if not buttons:
        return "<p>This link allows no answer by a button.</p>"
    return f'<form method="post">{"".join(buttons)}<p>An answer cannot be changed.</p></form>'


def _page(title: str, text: str, facts: Mapping[str, str], form: str = "") -> str:
    """All arguments are HTML."""
    rows = "".join(f"<dt>{term}</dt><dd>{value}</dd>" for term, value in facts.items())
    return _PAGE.substitute(
        title=title,
        style=_STYLE,
        text=text[:1].upper() + text[1:],
        facts=f"<dl>{rows}</dl>" if rows else "",
        form=form,
    )
