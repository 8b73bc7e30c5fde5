"""
Finds the state machine that a request or a lock belongs to, among several that may share a table.

A record names its owner, and so its machine. Without a record each machine is asked for the request's
executions. A name that two machines know is never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from steponce.errors import LockNotFound, MachineAmbiguous, OwnerHidden, RequestNotFound
from steponce.executions import Execution, looking_at
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.operator.records import find_lock, lock_of_request
from steponce.request.machine import Machine
from steponce.request.names import name_of


def machine_of_request(
    machines: Sequence[Machine], request_id: str, *, lock_token: str | None = None
) -> Machine:
    """
    Find the machine of a request.

    Of several machines each is asked: with one DescribeExecution, and for an unknown request with one more
    and one read of a record. If Step Functions may not be asked, the record alone says what it can.

    Args:
        machines: At least one. One alone is the answer, and is not asked.
        request_id: The id that the request was started with.
        lock_token: The lock token that it was started with, if it had one of its own.

    Returns:
        The machine. For a record that none of them has made, as a guard's, the first one that finds it.

    Raises:
        MachineAmbiguous: several machines know the id. The message names them.
        RequestNotFound: none does.
        OwnerHidden: none does, and one may not be asked from here.
        InvalidRequestId: the id cannot be one.
        Unavailable: no answer; safe to ask again.
    """
    if len(machines) == 1:
        return machines[0]
    name = name_of(request_id)
    by_key = _by_key(machines, request_id, lock_token)
    for machine, lock in by_key:
        if machine.holds(lock):
            return machine
    found, hidden = dict[str | tuple[str, str], Machine](), list[OwnerHidden]()
    for machine in machines:
        try:
            known = _known_by(machine, request_id, name)
        except OwnerHidden as error:
            hidden.append(error)
            known = _by_record(machine, _visible_record(machine, request_id, name))
        if known:
            found.setdefault(known, machine)
    if len(found) > 1:
        names = _names(found.values())
        raise MachineAmbiguous(
            f"Several state machines know a request {request_id!r}: {names}. Name one of them."
        )
    known_to = [*found.values(), *(machine for machine, _ in by_key)]
    if known_to:
        return known_to[0]
    if hidden:
        raise hidden[0]
    raise RequestNotFound(
        f"There is no request {request_id!r} at {_names(machines)}, or its record has expired. Check its id."
    )


def machine_of_lock(machines: Sequence[Machine], key: str, *, by_token: bool = False) -> tuple[Machine, Lock]:
    """
    Find a record by its lock token or by a request id, and the machine that holds or held it.

    Args:
        machines: At least one. One alone is taken for the record's; `Operator` refuses it if it is not.
        key: A lock token, or the id of a request of any of these machines.
        by_token: Whether the key is a lock token, although it may be a request id, too.

    Returns:
        The machine and the record. For a guard's or an unknown machine's, the first one that found it.

    Raises:
        LockNotFound: there is no such record, or it has expired.
        MachineAmbiguous: the key means several records. The message names their lock tokens.
        OwnerHidden: there is no such record, as far as can be seen: one machine may not be asked from here.
        Unavailable: no answer; safe to ask again.
    """
    if len(machines) == 1:
        return machines[0], find_lock(machines[0], key, by_token=by_token)
    found: dict[tuple[str, str], tuple[Machine, Lock]] = {}
    hidden = list[OwnerHidden]()
    for machine in machines:
        for lock in _locks(machine, key, hidden, by_token):
            found.setdefault((machine.locks.table, lock.lock_token), (machine, lock))
    if len(found) > 1:
        listed = "; ".join(f"{lock.lock_token!r} of {name_of_machine(one)}" for one, lock in found.values())
        steps = [
            NextStep("inspect lock", lock.lock_token, machine=_holder(machines, one, lock).arn)
            for one, lock in found.values()
        ]
        raise MachineAmbiguous(
            f"{key!r} means several records: {listed}. Name a lock token, or a machine.", next_steps=steps
        )
    for machine, lock in found.values():
        return _holder(machines, machine, lock), lock
    if hidden:
        raise hidden[0]
    raise LockNotFound(
        f"There is no lock record {key!r}, nor of such a request at {_names(machines)}, or it "
        "has expired. List the open locks.",
        next_steps=[NextStep("list locks")],
    )


def name_of_machine(machine: Machine) -> str:
    """The state machine's name."""
    return machine.arn.rpartition(":")[2]


def _locks(machine: Machine, key: str, hidden: list[OwnerHidden], by_token: bool) -> Iterator[Lock]:
    """The records that a key may mean at one machine. Notes a machine that may not be asked."""
    found = machine.locks.get(key)
    if found is not None:
        yield found
    if by_token:
        return
    try:
        with looking_at(machine.arn):
            by_id = lock_of_request(machine, key)
    except OwnerHidden as error:
        hidden.append(error)
        by_id = _visible_record(machine, key, name_of(key))
    if by_id is not None:
        yield by_id


def _holder(machines: Sequence[Machine], found_at: Machine, lock: Lock) -> Machine:
    """The machine whose execution holds or held a lock, else the one where the record was found."""
    return next((one for one in machines if one.holds(lock)), found_at)


def _by_key(
    machines: Sequence[Machine], request_id: str, lock_token: str | None
) -> list[tuple[Machine, Lock]]:
    """The record that a request of this id has under a given lock token, and each machine that finds it."""
    if lock_token is None:
        return []
    found = [(machine, machine.locks.get(lock_token)) for machine in machines]
    return [(machine, lock) for machine, lock in found if lock is not None and lock.request_id == request_id]


def _known_by(machine: Machine, request_id: str, name: str) -> str | tuple[str, str] | None:
    """
    By what a machine knows a request: its own ARN, or the table and lock token of a guard's record.

    Machines with one key prefix know a guard's request by the same record. None: this one does not know it.
    """
    if _describe(machine, name, 1) is not None:
        return machine.arn
    lock = _usual_record(machine, request_id, name)
    if lock is None and _describe(machine, name, 2) is not None:  # the first may be forgotten
        return machine.arn
    return _by_record(machine, lock)


def _by_record(machine: Machine, lock: Lock | None) -> str | tuple[str, str] | None:
    """As `_known_by`, by the request's record alone."""
    if lock is None:
        return None
    if not lock.is_of_an_execution:
        return machine.locks.table, lock.lock_token
    return machine.arn if machine.holds(lock) else None


def _usual_record(machine: Machine, request_id: str, name: str) -> Lock | None:
    """The record that a request has if it was started without a lock token of its own."""
    token = machine.lock_token_of(name, {})
    lock = machine.locks.get(token) if token else None
    return lock if lock is not None and lock.request_id == request_id else None


def _visible_record(machine: Machine, request_id: str, name: str) -> Lock | None:
    """The same of a machine whose executions may not be looked at, and maybe its table neither."""
    try:
        with looking_at(machine.arn):
            return _usual_record(machine, request_id, name)
    except OwnerHidden:
        return None


def _describe(machine: Machine, name: str, attempt: int) -> Execution | None:
    with looking_at(machine.execution_arn(name, attempt)):
        return machine.describe(name, attempt)


def _names(machines: Iterable[Machine]) -> str:
    return ", ".join(map(name_of_machine, machines))
