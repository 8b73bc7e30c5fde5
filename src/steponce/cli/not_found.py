"""Says what an id may mean that is no request's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import ClientError

from steponce.cli.machines import Machines
from steponce.errors import RecordUnreadable, RequestNotFound, SteponceError
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.operator.records import lock_meant


@contextmanager
def explained(machines: Machines, request_id: str, key: str | None = None) -> Iterator[None]:
    """
    If no request is found, add the record that the id may mean, or that a lock token may be missing.

    Args:
        machines: The workflows that were asked.
        request_id: The id, as it was given.
        key: The lock token that was given with it.
    """
    try:
        yield
    except RequestNotFound as error:
        if key is not None:
            raise
        hint = "If it was started with a lock token of its own, give that with --key."
        steps = error.next_steps
        if lock := _meant(machines, request_id):
            hint = f"But there is the lock token {lock.lock_token!r}, of request {lock.request_id!r}."
            steps = (_how_to_look_at(lock, machines), *steps)
        raise RequestNotFound(f"{error} {hint}", next_steps=steps) from None


def _meant(machines: Machines, text: str) -> Lock | None:
    try:
        found = (lock_meant(client.machine, text) for client in machines.clients)
        return next((lock for lock in found if lock), None)
    except RecordUnreadable:
        raise  # it is there, and the error says what is damaged
    except (SteponceError, ClientError):
        return None  # what was asked for is not there, and that is the answer


def _how_to_look_at(lock: Lock, machines: Machines) -> NextStep:
    """Only of a request of this stack is there a story."""
    for machine in machines.machines:
        if machine.holds(lock):
            named = machine.arn if machines.are_several else None
            return NextStep("show request", lock.request_id, lock_token=lock.lock_token, machine=named)
    return NextStep("inspect lock", lock.lock_token)
