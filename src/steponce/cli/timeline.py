"""The report on a request for people: what happened when, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from steponce.callbacks.step import PENDING
from steponce.cli.output import COLOURS, cause_text, counted, fields, plain, pretty, to_copy
from steponce.executions import OpenWork
from steponce.locks.record import Intervention
from steponce.recovery.owner import Work
from steponce.report.story import Attempt, Record, Story, Waiting

_DIAGNOSES = {
    "completed": "green",
    "starting": "yellow",
    "running": "yellow",
    "released": "yellow",
    "expired": "yellow",
    "rate limited": "yellow",
}


def timeline(story: Story, what_next: Sequence[str]) -> RenderableType:
    """
    A report for people: the record, every execution with its states, the summary, and the next commands.

    The commands stand below the panel's border, so that a long one can be copied.
    """
    colour = _DIAGNOSES.get(story.diagnosis, "red")
    parts: list[RenderableType] = [_record(story), *_in_order(story)]
    title = plain(story.diagnosis)
    parts.append(Panel(plain(story.summary), title=title, title_align="left", border_style=colour))
    return Group(*parts, *to_copy(what_next))


def _in_order(story: Story) -> list[RenderableType]:
    """Executions by their start, and between them the interventions."""
    holders = [] if story.holder is None else [(story.holder, "the lock's holder")]
    executions = [(one, f"attempt {one.number}") for one in story.attempts] + holders
    placed = [(one.started or "", _attempt(one, title)) for one, title in executions]
    done = story.record.interventions if story.record else ()
    placed += [(one.at, Group(Text(), intervention(one))) for one in done]
    return [part for _, part in sorted(placed, key=lambda one: one[0])]


def intervention(one: Intervention) -> Text:
    """An intervention, in a line."""
    done = plain(f"{one.what} by {one.by}", "bold")
    return Text.assemble(plain(one.at), "  ", done, ": ", plain(one.why))


def record_fields(record: Record) -> dict[str, str | None]:
    """A record for people, without its key and its request."""
    return {
        "record": f"{record.status}, {_remark(record)}",
        "owner": record.locked_by,
        "times taken": str(record.attempt) if record.attempt else None,
        "taken": record.created or None,
        "leased until": record.lease_until,
        "expected by": record.expected_completion if record.status == "INPROGRESS" else None,
        "finished": record.actual_completion,
        "answers until": record.expires_at if record.answers else None,
        "result": None if record.status != "COMPLETED" else pretty(record.result),
        "not read": record.unread,
        "error": record.error,
        "cause": cause_text(record.cause),
    }


def work_fields(work: Work) -> dict[str, str | None]:
    """What is known of the work of a closed owner, for a pipe."""
    left = work.open or OpenWork()
    return {
        "workMayRunUntil": left.until,
        "workRunsIn": left.execution_arn,
        "workHidden": left.hidden,
        "workDoneBy": work.done_by,
    }


def _record(story: Story) -> RenderableType:
    record = story.record
    rows: dict[str, str | None] = {"request": story.request_id, "lock token": story.lock_token}
    if record is None:
        return fields(rows | {"record": "none"})
    if record.request_id != story.request_id:
        rows |= {"taken by": record.request_id}
    return fields(rows | record_fields(record))


def _remark(record: Record) -> str:
    remarks = ["overdue"] * record.overdue + ["expired"] * record.expired
    return ", ".join([*remarks, "on the open index" if record.on_open_index else "not on the open index"])


def _attempt(attempt: Attempt, title: str) -> RenderableType:
    status = plain(attempt.status, COLOURS.get(attempt.status, "red"))
    heading = Text.assemble((title, "bold"), " ", status, " ", plain(attempt.execution_arn))
    if attempt.status == "GONE":
        heading.append(": Step Functions does not describe it; forgotten after 90 days, or too new")
    details = fields(
        {
            "redriven": counted(attempt.redrive_count, "time") if attempt.redrive_count else None,
            "sent again": f"{counted(attempt.resent, 'time')} before" if attempt.resent else None,
            "error": attempt.error,
            "cause": cause_text(attempt.cause),
            "payload": None if attempt.payload is None else pretty(attempt.payload),
        }
    )
    parts: list[RenderableType] = [Text(), heading, *([details] if details.row_count else [])]
    parts += [_states(attempt)] if attempt.started else []
    return Group(*parts, *(_waiting(step) for step in attempt.awaiting_steps))


def _waiting(step: Waiting) -> RenderableType:
    return fields(
        {
            "awaiting step": step.awaiting_step_id,
            "in": f"{step.step}, state {step.state}",
            "status": _status(step),
            "waits since": step.entered if step.is_open else None,
            "expired" if step.expired else "expires": step.expires_at,
            "answer": None if step.answer is None else pretty(step.answer),
        }
    )


def _status(step: Waiting) -> str:
    if step.outcome:
        return f"{step.status}, {step.outcome}"
    return f"{step.status}, but its state was left" if step.left and step.status == PENDING else step.status


def _states(attempt: Attempt) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("state")
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("on the way", overflow="fold")
    table.add_row(attempt.started, Text("started", "dim"), "", "")
    for visit in attempt.visits:
        tries = f"{visit.tries} tries" if visit.tries > 1 else ""
        seconds = "" if visit.seconds is None else f"{visit.seconds:.3f}"
        table.add_row(visit.entered, visit.state, seconds, tries)
        for trouble in visit.troubles:
            table.add_row(
                trouble.time, "", "", plain(f"{trouble.event}: {trouble.error or 'without a name'}")
            )
    if attempt.stopped:
        ended = plain(attempt.status.lower(), COLOURS.get(attempt.status, "red"))
        table.add_row(attempt.stopped, ended, "", "")
    return table
