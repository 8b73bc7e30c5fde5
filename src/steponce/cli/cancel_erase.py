"""`steponce cancel` and `steponce erase`: cancels a request, and deletes a customer's records."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from steponce.callbacks.awaiting import AwaitingSteps
from steponce.camelcase import json_object
from steponce.cli.confirmation import Confirmation, changes_record, needs_confirmation
from steponce.cli.keys import expecting, lock_token_of_request, of_request
from steponce.cli.left_out import LeftOut
from steponce.cli.machines import Machines
from steponce.cli.not_found import explained
from steponce.cli.output import CONFLICT, DONE, counted, fields, plain, say, to_copy
from steponce.cli.target import Stack, Target, Unreachable, where_to, where_to_which
from steponce.cli.timeline import record_fields, work_fields
from steponce.cli.which_step import AWAITING_STEPS_TABLE, awaiting_steps
from steponce.errors import RecordChanged, Refused
from steponce.locks.record import Lock
from steponce.operator.cancel import cancel as cancel_running
from steponce.operator.cancel_report import meaning, what_was_done
from steponce.operator.cancellable import find_running
from steponce.operator.erasure import STAYS, Kept, find_kept
from steponce.operator.erasure import erase as erase_kept
from steponce.operator.left_work import work_left
from steponce.operator.next_steps import steps_after_cancel
from steponce.recovery.owner import Work
from steponce.report.story import Record

SHOWN = 100
"""How many lock tokens are shown before the question whether to erase them."""


@click.command()
@of_request
@lock_token_of_request
@changes_record
@where_to_which
def cancel(request_id: str, key: str | None, confirmation: Confirmation, target: Target) -> int:
    """
    Cancel a request: stop its execution, and record that it was cancelled.

    Before its work, or while it waits for a retry, the request fails finally with the error Cancelled, and so
    does every later request with its lock token. During its work nobody knows whether that took effect, so
    the record waits for a person. After its work it is not cancelled: the work's outcome is recorded, and
    the answer says so.
    """
    machines = Machines.reach(target)
    with explained(machines, request_id, key):
        client = machines.of_request(request_id, key)
        machine = client.machine
        running = find_running(machine, request_id, key)
    why = confirmation.ask(_shown(running.execution_arn, running.lock), f"Cancel {request_id}?")
    done = cancel_running(machine, running, by=confirmation.by, why=why)
    lock = done.lock
    work = work_left(machine, running, lock, client.rules.longest_work_seconds)
    said = meaning(running, lock, by_itself=done.ended_by_itself, work=work)
    record = None if lock is None else json_object(Record.from_lock(lock))
    what_next = [] if lock is None else machines.commands(steps_after_cancel(lock, work))
    what = what_was_done(running, lock, by_itself=done.ended_by_itself)
    answer: dict[str, Any] = {"done": what, "by": confirmation.by, "why": why, "requestId": request_id}
    answer |= {"stopped": running.is_open and not done.ended_by_itself, "said": said}
    answer |= {"executionArn": running.execution_arn, "record": record}
    answer |= work_fields(work or Work()) | {"next": what_next}
    shown = _shown(running.execution_arn, lock)
    say(answer, Group(plain(said, "bold green"), shown, *to_copy(what_next)))
    return DONE


@click.command()
@click.argument(
    "prefix", callback=expecting("An empty prefix is everybody's. Give one customer's, like acme/")
)
@needs_confirmation("printed with the answer, since the record goes")
@where_to
def erase(prefix: str, confirmation: Confirmation, target: Target) -> int:
    """
    Erase what is kept about one customer: all records whose lock token begins with PREFIX.

    PREFIX is plain text: acme/order-1 is also the beginning of acme/order-10, so end it with your separator.

    A request of theirs that is delivered again runs again. The command is refused while one of their requests
    runs, or waits for an answer or a person: wait for it, cancel it, or settle it with `steponce locks`.
    Damaged records are erased as well, unless they may be open. Histories of executions, logs, messages and
    backups stay.
    """
    machines = Machines.reach(target)
    _expect_one_installation(machines)
    machine, steps = machines.first.machine, _steps(machines.stack)
    kept = find_kept(machine, steps, prefix)
    answer: dict[str, Any] = {
        "done": "erased" if kept else "nothing",
        "by": confirmation.by,
        "prefix": prefix,
    }
    answer |= {"locks": [lock.lock_token for lock in kept.locks], "awaitingSteps": len(kept.steps)}
    answer |= {
        "unreadable": [one.error.public() for one in kept.damaged],
        "elsewhere": kept.elsewhere,
        "why": confirmation.why,
        "stays": STAYS,
    }
    if not kept and kept.elsewhere:
        raise Refused(f"{_elsewhere(kept)} Nothing was erased.")
    if not kept:
        say(answer, Group(Text("Nothing is kept under this prefix."), _stays()))
        return DONE
    why = confirmation.ask(_list(kept), f"Erase {_count(kept)}, for good?")
    if changed := erase_kept(machine, steps, kept):
        raise RecordChanged(
            f"{changed} of {_count(kept)} changed since you looked, and were left; the others are erased. "
            "Look again with the same command."
        )
    left = [plain(_elsewhere(kept), "red")] if kept.elsewhere else []
    say(answer | {"why": why}, Group(Text(f"Erased {_count(kept)}.", "bold green"), *left, _stays()))
    return CONFLICT if left else DONE


def _elsewhere(kept: Kept) -> str:
    """Which records stay, and what to do about them."""
    names = [repr(token) for token in islice(sorted(kept.elsewhere), SHOWN)]
    rest = len(kept.elsewhere) - len(names)
    more = f" and {rest} more" if rest else ""
    buckets = ", ".join(sorted(set(kept.elsewhere.values())))
    return (
        f"What has a large result in another bucket than this stack's ({buckets}) stays: "
        f"{', '.join(names)}{more}. Let the parameter ResultBucket name that bucket, and erase again."
    )


def _steps(stack: Stack) -> AwaitingSteps:
    """
    The table of awaiting steps, from which a customer's are erased with their lock records.

    Raises:
        Unreachable: the stack does not name it. Once the lock records are gone, nothing leads to the steps.
    """
    if AWAITING_STEPS_TABLE not in stack.outputs:
        raise Unreachable(
            f"The stack {stack.name!r} has no Output {AWAITING_STEPS_TABLE!r}, so waiting steps and their "
            "answers would stay. Nothing was erased. If its tables are another stack's, give --stack the "
            "name of that one: it erases the records of both. Else add the Output."
        )
    return awaiting_steps(stack)


def _expect_one_installation(machines: Machines) -> None:
    """Several lock tables are of several installations, and the Outputs lead to one table of steps."""
    tables = sorted(client.machine.locks.table for client in machines.of_each_table)
    if len(tables) > 1:
        raise Refused(
            f"The stack {machines.stack.name!r} has several installations, with the lock tables "
            f"{', '.join(tables)}. Nothing was erased. Give --stack the name of each nested stack, one after "
            "the other."
        )


def _shown(execution_arn: str, lock: Lock | None) -> RenderableType:
    rows: dict[str, str | None] = {"execution": execution_arn}
    if lock is None:
        return fields(rows | {"record": "none"})
    return fields(rows | {"lock token": lock.lock_token} | record_fields(Record.from_lock(lock)))


def _list(kept: Kept) -> RenderableType:
    names = [plain(f"  {lock.status:<10}  {lock.lock_token}") for lock in islice(kept.locks, SHOWN)]
    rest = len(kept.locks) - len(names)
    left = [plain(_elsewhere(kept), "red")] if kept.elsewhere else []
    more = [Text(f"  and {rest} more")] if rest else []
    damaged = LeftOut([one.error for one in kept.damaged]).lines()
    warning = Text("A request of these that is delivered once more runs again.", "red")
    return Group(Text(_count(kept), "bold"), *names, *more, *damaged, *left, warning, _stays())


def _stays() -> RenderableType:
    return Text("Not erased: " + "; ".join(STAYS) + ".")


def _count(kept: Kept) -> str:
    damaged = f", and {counted(len(kept.damaged), 'damaged record')}" if kept.damaged else ""
    return (
        f"{counted(len(kept.locks), 'lock record')} and {counted(len(kept.steps), 'awaiting step')}{damaged}"
    )
