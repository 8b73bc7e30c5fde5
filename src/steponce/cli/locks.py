"""`steponce locks`: lists lock records, and settles those that wait for a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import merge
from itertools import islice
from typing import Any

import click
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from steponce.aws import times
from steponce.camelcase import json_object
from steponce.cli import console
from steponce.cli.confirmation import Confirmation, changes_record, needs_confirmation
from steponce.cli.keys import expecting
from steponce.cli.left_out import LeftOut
from steponce.cli.listing import limited
from steponce.cli.machines import Machines
from steponce.cli.output import COLOURS, DONE, FAILED, ask_which, fields, in_a_line, plain, say, to_copy
from steponce.cli.payload import read_json
from steponce.cli.target import AwsStack, Target, where_to_which
from steponce.cli.timeline import intervention, record_fields, work_fields
from steponce.cli.which_step import AWAITING_STEPS_TABLE, awaiting_steps
from steponce.client import Client
from steponce.locks.record import Lock
from steponce.locks.results import LARGEST_KEPT
from steponce.operator.locks import Operator, result_text
from steponce.operator.next_steps import next_steps
from steponce.operator.records import open_locks
from steponce.recovery.owner import Work, work_of
from steponce.report.collector import collect_owner
from steponce.report.story import GONE, Attempt, Record
from steponce.workflow import FAILED as HELD
from steponce.workflow import INPROGRESS, RELEASED

_RESULT = "Expected is one JSON value: the result that everyone who asks will get."
_LONGEST_RESULT = 6 * LARGEST_KEPT
"""Bytes of a file with a result: what the bucket takes, each byte written as an escape of six characters."""


def _key(command: Callable[..., int]) -> Callable[..., int]:
    """Add KEY and --token to a command on one record."""
    option = click.option("--token", "by_token", is_flag=True, help="KEY is a lock token, not a request id.")
    return click.argument("key", callback=expecting("Give a lock token or a request id."))(option(command))


@click.group(invoke_without_command=True)
@click.pass_context
def locks(context: click.Context) -> None:
    """
    Look at lock records, and settle those that wait for a person.

    KEY is a lock token, or the id of a request whose record is meant. If it is the lock token of one record
    and the request id of another, --token chooses the record with that lock token.
    """
    ask_which(context)


@locks.command("list")
@click.option("--running", is_flag=True, help="Only those in progress.")
@click.option("--overdue", is_flag=True, help="Only those in progress for longer than expected.")
@click.option("--failed", is_flag=True, help="Only those that failed and wait for a person.")
@limited(100)
@where_to_which
def list_locks(running: bool, overdue: bool, failed: bool, limit: int, target: Target) -> int:
    """
    List the locks that are open, those that wait the longest first. With --machine only the locks that
    executions of that state machine hold.

    A record that cannot be read is listed apart, with its damaged attribute.
    """
    if running + overdue + failed > 1:
        raise click.UsageError("--running, --overdue and --failed exclude each other. Give one, or none.")
    statuses = [HELD] if failed else [INPROGRESS] if running or overdue else [INPROGRESS, HELD]
    until = times.now_text() if overdue else None
    left_out = LeftOut()
    machines, only = Machines.reach(target), target.machine is not None
    tables = (
        open_locks(client.machine, *statuses, expected_until=until, skip=left_out.add)
        for client in machines.of_each_table
    )
    open_ = merge(*tables, key=lambda lock: lock.expected_completion)
    found = (lock for lock in open_ if not only or machines.first.machine.holds(lock))
    listed = list(islice(found, limit))
    more = sum(1 for _ in found)
    answer = {"locks": [_listed(lock) for lock in listed], "more": more, "unreadable": left_out.public()}
    say(answer, Group(_table(listed, more), *left_out.lines()))
    return DONE


@locks.command()
@_key
@where_to_which
def inspect(key: str, by_token: bool, target: Target) -> int:
    """Show a record, its owner, who has changed it, and the next commands."""
    machines = Machines.reach(target)
    stack = machines.stack
    client, lock = machines.of_lock(key, by_token=by_token)
    steps = awaiting_steps(stack) if AWAITING_STEPS_TABLE in stack.outputs else None
    owner = collect_owner(client, lock, steps=steps)
    links = console.links(lock.locked_by, stack.outputs) if isinstance(stack, AwsStack) else {}
    holds = client.machine.holds(lock)
    own = holds or not lock.is_of_an_execution
    token = client.machine.token_to_give(lock.request_id, lock.lock_token) if holds else None
    is_gone = owner.status == GONE
    known = Work() if owner.is_open else _work(client, lock)
    again = lock.status == RELEASED and owner.has_worked_since(lock.actual_completion)
    allowed = next_steps(
        lock,
        runs=owner.is_open,
        own=own,
        is_forgotten=is_gone,
        token=token,
        work=known,
        worked_since=again,
    )
    what_next, work = machines.commands(allowed), known.open
    answer = {
        "record": json_object(Record.from_lock(lock)),
        "owner": _owner(owner),
        **work_fields(known),
        "links": links,
        "next": what_next,
    }
    rows = {f"{name} on AWS": link for name, link in links.items()}
    if work is not None and work.hidden is not None:
        rows["refused"] = work.hidden
    elif work is not None:
        until = f"{work.until} or later" if work.until else f"{work.execution_arn} has ended"
        rows["refused"] = f"until {until}, while its work may run: release, complete and retry"
    if known.done_by is not None:
        rows["done by"] = f"{known.done_by}, which is its work and has succeeded: complete with its output"
    if again:
        rows["redriven"] = "since its release: find out how often the work took effect before it runs again"
    if not own:
        rows["note"] = "another machine's record: commands for that machine settle it"
    say(answer, Group(_shown(lock), fields(_owner_fields(owner) | rows), *to_copy(what_next)))
    return DONE


@locks.command()
@_key
@changes_record
@where_to_which
def release(key: str, by_token: bool, confirmation: Confirmation, target: Target) -> int:
    """
    Free a lock, so that the next start of its request runs the work.

    First make sure that the work did not take effect. The command is refused while the owner runs, and if the
    record is final. A request that came as a message may start by itself soon after: cancel it if it must
    not.
    """
    operator, lock = _prepared(Machines.reach(target), key, by_token, "release", confirmation)
    why = confirmation.ask(_shown(lock), f"Release {lock.lock_token}?")
    return _done("released", operator.release(lock, why), confirmation, why)


@locks.command()
@_key
@click.argument("file")
@changes_record
@where_to_which
def complete(key: str, by_token: bool, file: str, confirmation: Confirmation, target: Target) -> int:
    """
    Store a result: every later start gets it, and the work does not run.

    FILE holds the result, any JSON; - reads it from standard input.
    """
    given = read_json(file, _RESULT, _LONGEST_RESULT)
    machines = Machines.reach(target)
    client, lock = machines.of_lock(key, by_token=by_token)
    result = result_text(given, client.machine.results)
    operator = _operator(client, confirmation)
    lock = operator.prepare("complete", lock)
    why = confirmation.ask(_shown(lock), f"Complete {lock.lock_token} with {file}?")
    return _done("completed", operator.complete(lock, result, why), confirmation, why)


@locks.command()
@_key
@needs_confirmation("kept with the record, unless its lock is free already")
@where_to_which
def retry(key: str, by_token: bool, confirmation: Confirmation, target: Target) -> int:
    """
    Free a lock, and start its request's next attempt with the same payload.

    First make sure that the work did not take effect. The command is refused as `release` is. If no answer
    comes to the start, the attempt may run: look with `show` before you repeat the command.

    A lock that is free already is not changed, so its record does not keep who retries it and why.
    """
    operator, lock = _prepared(Machines.reach(target), key, by_token, "retry", confirmation)
    given = operator.payload_of(lock)
    why = confirmation.ask(_shown(lock), f"Run the work of {lock.lock_token} again?")
    lock, receipt = operator.retry(lock, given, why)
    done = receipt.status.lower() if receipt.duplicate else "retried"
    _done(done, lock, confirmation, why, receipt=receipt.to_dict())
    return FAILED if receipt.status == "FAILED" else DONE


def _work(client: Client, lock: Lock) -> Work:
    """What is known of the work of an owner that does not run."""
    if lock.open_status is None or not lock.is_of_an_execution:
        return Work()
    machine = client.machine
    deployed = client.rules.longest_work_seconds if machine.holds(lock) else 0
    return work_of(lock, machine.owner(lock), machine.sfn, deployed)


def _prepared(
    machines: Machines, key: str, by_token: bool, action: Any, confirmation: Confirmation
) -> tuple[Operator, Lock]:
    client, lock = machines.of_lock(key, by_token=by_token)
    operator = _operator(client, confirmation)
    return operator, operator.prepare(action, lock)


def _operator(client: Client, confirmation: Confirmation) -> Operator:
    longest = client.rules.longest_work_seconds
    return Operator(client.machine, by=confirmation.by, work_timeout_seconds=longest)


def _done(what: str, lock: Lock, confirmation: Confirmation, why: str, **more: Any) -> int:
    record = json_object(Record.from_lock(lock))
    answer = {"done": what, "by": confirmation.by, "why": why, "record": record, **more}
    receipt = more.get("receipt", {})
    started = {"found" if receipt.get("duplicate") else "started": receipt.get("executionArn")}
    say(
        answer,
        Group(Text(f"{what.capitalize()}.", "bold green"), _shown(lock), fields(started)),
    )
    return DONE


def _shown(lock: Lock) -> RenderableType:
    record = Record.from_lock(lock)
    rows: dict[str, str | None] = {"lock token": record.lock_token, "request": record.request_id}
    return Group(fields(rows | record_fields(record)), *map(intervention, record.interventions))


def _owner(owner: Attempt) -> dict[str, Any]:
    waits_for = [step.awaiting_step_id for step in owner.waits_for]
    return {
        "executionArn": owner.execution_arn,
        "status": owner.status,
        "lastState": owner.last_state or None,
        "started": owner.started,
        "stopped": owner.stopped,
        "error": owner.error,
        "waitsFor": waits_for[0] if waits_for else None,
        "waitsForAll": waits_for,
    }


def _owner_fields(owner: Attempt) -> dict[str, str | None]:
    place = f", {'' if owner.current_states else 'last '}in {owner.place}" if owner.place else ""
    return {
        "the owner is": f"{owner.status}{place}",
        "since": owner.stopped or owner.started,
        "with": owner.error,
        "waits for": "\n".join(step.awaiting_step_id for step in owner.waits_for) or None,
    }


def _listed(lock: Lock) -> dict[str, Any]:
    return {
        "lockToken": lock.lock_token,
        "status": lock.status,
        "requestId": lock.request_id,
        "executionName": lock.execution_name,
        "attempt": lock.attempt,
        "created": lock.created,
        "expectedCompletion": lock.expected_completion,
        "overdue": _is_overdue(lock),
        "lockedBy": lock.locked_by,
    }


def _is_overdue(lock: Lock) -> bool:
    return lock.status == INPROGRESS and lock.expected_completion < times.now_text()


def _table(listed: Sequence[Lock], more: int) -> RenderableType:
    if not listed:
        return Text("No such lock is open.")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("lock token", overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("since (UTC)", no_wrap=True)
    table.add_column("expected by", no_wrap=True)
    for lock in listed:
        due = plain(lock.expected_completion[:19], "red" if _is_overdue(lock) else "")
        status = plain(lock.status, COLOURS.get(lock.status, "red"))
        table.add_row(in_a_line(lock.lock_token), status, lock.created[:19], due)
    rest = [Text(f"And {more} more; --limit says how many to list.")] if more else []
    return Group(table, *rest)
