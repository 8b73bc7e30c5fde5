"""
The guard against a model of its record.

Calls begin, complete, fail, extend and die in any order, answers get lost, writes arrive a second time and
late, and records expire. After each step the record is what the model says, and so is what callers heard.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from steponce import (
    AlreadyInProgress,
    CompletionRefused,
    LockLost,
    NotRecorded,
    PayloadMismatch,
    RequestFailed,
    RetryLater,
    Unavailable,
)
from steponce.aws import times
from steponce.failure import Failure
from steponce.guards.run import Run
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from steponce.request.canonical import canonical_json, sha256
from steponce.request.settings import RequestRules
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, OUTCOME_UNKNOWN, RELEASED
from tests.unit.guards.world import KEY, World
from tests.unit.shared_clients import shared

RETENTION = timedelta(seconds=600)
PAYLOADS = ({"orderId": "o-12"}, {"orderId": "o-13"})
HASHES = [sha256(canonical_json(payload)) for payload in PAYLOADS]
ERRORS = {RetryLater: RELEASED, LookupError: FAILED, ZeroDivisionError: "held"}
NO_ANSWER = ConnectTimeoutError(endpoint_url="https://dynamodb")


@dataclass(frozen=True)
class Record:
    """What the record is to be. `held` is a failure that waits for a person."""

    status: str
    call: str
    attempt: int
    payload: int
    lease: datetime | None
    expires: datetime
    answer: Any = None

    def is_free(self, now: datetime) -> bool:
        return self.status == RELEASED or (self.status in (COMPLETED, FAILED) and self.expires < now)

    def lasts(self, now: datetime) -> bool:
        """Whether its owner may still work."""
        return self.lease is not None and self.lease >= now

    def ended(self, status: str, answer: Any) -> Record:
        return replace(self, status=status, answer=answer, lease=None)


Write = Callable[[Record | None], Record | None]
"""A conditional write: what it makes of a record; None where its condition refuses."""


@dataclass
class Claim:
    """What one call knows: its run, and the writes that it may make."""

    run: Run
    payload: int
    seconds: int
    begun: datetime
    attempt: int = 0
    lease: datetime | None = None

    def takes(self, record: Record | None) -> Record | None:
        """The first half of AcquireLock: there is no record."""
        return self._taken(1) if record is None else None

    def takes_again(self, free: Record) -> Write:
        """The other half: the record is free, and no other call has begun."""

        def write(record: Record | None) -> Record | None:
            is_same = record is not None and record.attempt == free.attempt
            return self._taken(free.attempt + 1) if is_same and record.is_free(self.begun) else None

        return write

    def takes_over(self, dead: Record) -> Write:
        """TakeOverLock: nothing of the dead owner may have changed."""

        def write(record: Record | None) -> Record | None:
            return self._taken(dead.attempt + 1) if record == dead else None

        return write

    def gives_back(self, record: Record | None) -> Record | None:
        """After a first write whose answer was lost."""
        if record is None or (record.status, record.call) != (INPROGRESS, self.run.call_id):
            return None
        return record.ended(RELEASED, "RetryLater")

    def ends_lease(self, record: Record | None) -> Record | None:
        """After a TakeOverLock whose answer was lost."""
        if record is None or (record.status, record.call) != (INPROGRESS, self.run.call_id):
            return None
        return replace(record, lease=self.begun)

    def ends(self, status: str, answer: Any) -> Write:
        """An outcome, which may be written twice."""

        def write(record: Record | None) -> Record | None:
            if record is None or not self._owns(record):
                return None
            is_repeated = (record.status, record.answer) == (status, answer)
            return record.ended(status, answer) if record.status == INPROGRESS or is_repeated else None

        return write

    def extends(self, lease: datetime) -> Write:
        def write(record: Record | None) -> Record | None:
            if record is None or record.lease is None or not self._owns(record):
                return None
            return replace(record, lease=max(record.lease, lease))

        return write

    def _owns(self, record: Record) -> bool:
        return (record.call, record.attempt) == (self.run.call_id, self.attempt)

    def _taken(self, attempt: int) -> Record:
        lease = self.begun + timedelta(seconds=self.seconds)
        expires = self.begun + RETENTION
        return Record(INPROGRESS, self.run.call_id, attempt, self.payload, lease, expires)


class AnyOrder(RuleBasedStateMachine):
    """Calls of two payloads under one key."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(fault=self._write)
        self.clock = pytest.MonkeyPatch()
        self.clock.setattr(times, "now", lambda: self.world.now)
        rules = RequestRules(key_prefix="", retention_seconds=RETENTION.seconds)
        self.guard = self.world.guard(rules=rules, final=(LookupError,))
        self.record: Record | None = None
        self.claims: list[Claim] = []
        self.writes: list[Write] = []
        """What the model says of the next writes of the guard, in their order."""
        self.fates: list[str] = []
        self.sent: list[tuple[dict[str, Any], Write]] = []
        self.unforeseen: list[dict[str, Any]] = []
        self.results = 0
        self.sweep()

    def teardown(self) -> None:
        self.clock.undo()

    # -- Writes ----------------------------------------------------------------------------------

    def _write(self, arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        """DynamoDB as the guard meets it: each write is made or not, and answered or not."""
        if "ConditionExpression" not in arguments:
            return forward()
        fate = self.fates.pop(0) if self.fates else "answered"
        if not self.writes:
            self.unforeseen.append(arguments)  # an error would be swallowed, as any that a write meets
            return forward()
        write = self.writes.pop(0)
        self.sent.append((arguments, write))
        if fate == "unmade":
            raise NO_ANSWER
        self.record = write(self.record) or self.record
        if fate == "answered":
            return forward()
        with suppress(ClientError):
            forward()
        raise NO_ANSWER

    def _expect(self, fate: str, write: Write) -> bool:
        """Let the model foresee one write; whether the guard will hear that it was made."""
        self.writes.append(write)
        self.fates.append(fate)
        return fate == "answered"

    # -- Callers ---------------------------------------------------------------------------------

    @rule(
        payload=st.sampled_from([0, 0, 0, 1]),
        seconds=st.sampled_from([10, 100]),
        unknown=st.sampled_from(["hold", "take-over"]),
        fates=st.tuples(*[st.sampled_from(["answered"] * 3 + ["lost", "unmade"])] * 2),
    )
    def begin(self, payload: int, seconds: int, unknown: Any, fates: tuple[str, str]) -> None:
        """Take the lock, or find the answer, or hear why not."""
        run = self.guard.begin(KEY, PAYLOADS[payload], lease_seconds=seconds, when_outcome_unknown=unknown)
        claim, now, there = Claim(run, payload, seconds, self.world.now), self.world.now, self.record
        first, second = fates
        if not self._expect(first, claim.takes):
            self._expect(second, claim.gives_back)
            self._hears(run, Unavailable)
        elif there is None:
            self._begins(claim)
        elif there.is_free(now):
            if self._expect(second, claim.takes_again(there)):
                self._begins(claim)
            else:
                self._expect("answered", claim.gives_back)
                self._hears(run, Unavailable)
        elif there.payload != payload:
            self._hears(run, PayloadMismatch)
        elif there.status == COMPLETED:
            with run:
                assert (True, there.answer) == (run.replayed, run.result)
        elif there.status in (FAILED, "held"):
            assert there.answer == self._hears(run, RequestFailed).error
        elif there.lasts(now):
            self._hears(run, AlreadyInProgress)
        elif unknown == "take-over":
            if self._expect(second, claim.takes_over(there)):
                self._begins(claim)
            else:
                self._expect("answered", claim.ends_lease)
                self._hears(run, Unavailable)
        elif self._expect(second, lambda one: there.ended("held", OUTCOME_UNKNOWN) if one == there else None):
            self._expect("answered", claim.takes)
            assert OUTCOME_UNKNOWN == self._hears(run, RequestFailed).error
        else:
            self._hears(run, Unavailable)

    def _begins(self, claim: Claim) -> None:
        claim.run.__enter__()
        assert not claim.run.replayed
        assert self.record is not None
        claim.attempt, claim.lease = self.record.attempt, self.record.lease
        assert claim.attempt == claim.run.attempt
        self.claims.append(claim)

    def _hears(self, run: Run, kind: type[Exception]) -> Any:
        with pytest.raises(kind) as caught, run:
            raise AssertionError("the work ran")
        return caught.value

    def _one(self, data: st.DataObject) -> Claim:
        return data.draw(st.sampled_from(self.claims))

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), fate=st.sampled_from(["answered"] * 3 + ["lost", "unmade"]), again=st.booleans())
    def complete(self, data: st.DataObject, fate: str, again: bool) -> None:
        """In time, late, or once more because the answer was lost."""
        claim = self._one(data)
        self.results += 1
        write = claim.ends(COMPLETED, self.results)
        if not self._expect(fate, write):
            with pytest.raises(NotRecorded) as unheard:
                claim.run.complete(self.results)
            assert self.results == unheard.value.result
            if not again:  # then the work is done, and a person completes it
                self._expect("answered", claim.ends("held", "NotRecorded"))
                self._leave(claim, None)
                return
            self._expect("answered", write)
        if write(self.record) is not None:
            claim.run.complete(self.results)
        else:
            with pytest.raises(CompletionRefused) as refused:
                claim.run.complete(self.results)
            assert self.results == refused.value.result
        self._leave(claim, None)

    @precondition(lambda self: self.claims)
    @rule(
        data=st.data(),
        error=st.sampled_from(sorted(ERRORS, key=lambda kind: kind.__name__)),
        fate=st.sampled_from(["answered", "lost", "unmade"]),
    )
    def fail(self, data: st.DataObject, error: type[Exception], fate: str) -> None:
        """The work's own error is the one that goes on, whether it can be written down or not."""
        claim = self._one(data)
        self._expect(fate, claim.ends(ERRORS[error], error.__name__))
        with pytest.raises(error):
            self._leave(claim, error("no"))

    def _leave(self, claim: Claim, error: Exception | None) -> None:
        self.claims.remove(claim)
        claim.run.__exit__(type(error) if error else None, error, None)
        if error is not None:
            raise error

    @precondition(lambda self: self.claims)
    @rule(
        data=st.data(), seconds=st.sampled_from([5, 50]), fate=st.sampled_from(["answered", "lost", "unmade"])
    )
    def extend(self, data: st.DataObject, seconds: int, fate: str) -> None:
        """By an owner, also by one whose lease is over and whose lock nobody has settled."""
        claim = self._one(data)
        assert claim.lease is not None
        lease = max(claim.lease, self.world.now + timedelta(seconds=seconds))
        write = claim.extends(lease)
        if not self._expect(fate, write):
            with pytest.raises(Unavailable):
                claim.run.extend(seconds)
        elif (extended := write(self.record)) is None:
            with pytest.raises(LockLost):
                claim.run.extend(seconds)
        else:
            claim.run.extend(seconds)
            claim.lease = extended.lease

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """Without a word."""
        self.claims.remove(self._one(data))

    # -- Everything else -------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 20, 200, 700]))
    def pass_by(self, seconds: int) -> None:
        """Past a lease, past a retention."""
        self.world.pass_by(seconds)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def arrive_late(self, data: st.DataObject) -> None:
        """A copy of a write that was sent before; nobody hears its answer."""
        arguments, write = data.draw(st.sampled_from(self.sent))
        self.record = write(self.record) or self.record
        with suppress(ClientError):
            late = shared("dynamodb").put_item if "Item" in arguments else shared("dynamodb").update_item
            late(**arguments)

    @precondition(lambda self: self.record is not None and self.record.status == "held")
    @rule(result=st.booleans())
    def settle(self, result: bool) -> None:
        """A person looks, and completes or releases."""
        assert self.record is not None
        locks, lock = Locks(shared("dynamodb"), "locks"), self.world.lock()
        if result:
            assert locks.complete(lock, '"by hand"', by="ann", why="looked it up")
        else:
            assert locks.release(lock, Failure("Released", None), by="ann", why="nothing happened")
        expires = max(self.record.expires, self.world.now + RETENTION)
        answer = "by hand" if result else "Released"
        self.record = replace(self.record.ended(COMPLETED if result else RELEASED, answer), expires=expires)

    @precondition(lambda self: self.record is not None and self.record.is_free(self.world.now))
    @rule()
    def sweep(self) -> None:
        """DynamoDB deletes what has expired."""
        shared("dynamodb").delete_item(TableName="locks", Key={"lockToken": {"S": KEY}})
        self.record = None

    @invariant()
    def the_record_is_what_the_model_says(self) -> None:
        assert ([], []) == (self.writes, self.unforeseen)
        self.fates.clear()
        item = shared("dynamodb").get_item(TableName="locks", Key={"lockToken": {"S": KEY}}).get("Item")
        assert self.record == (None if item is None else _as_record(Lock.from_item(item)))

    @invariant()
    def one_call_at_most_may_take_effect(self) -> None:
        """Whoever passes the fence is the owner, within its lease."""
        passed = [claim for claim in self.claims if _passes(claim.run)]
        holder = self.record if self.record and self.record.status == INPROGRESS else None
        assert passed == [
            claim for claim in self.claims if holder and claim._owns(holder) and claim.lease > self.world.now
        ]
        assert len(passed) <= 1

    @invariant()
    def no_lease_is_shorter_than_its_owner_knows(self) -> None:
        """Else another call would take the lock of one that still works."""
        holder = self.record if self.record and self.record.status == INPROGRESS else None
        for claim in self.claims:
            if holder and holder.lease and claim.lease and claim._owns(holder):
                assert claim.lease <= holder.lease


def _passes(run: Run) -> bool:
    try:
        run.check()
    except LockLost:
        return False
    return True


def _as_record(lock: Lock) -> Record:
    """The record as the model sees it: the open index and `ttl` follow from the status."""
    is_held = lock.status == FAILED and lock.ttl is None
    assert (lock.open_status is None) == (lock.status != INPROGRESS and not is_held)
    assert (lock.ttl is None) == (lock.open_status is not None)
    return Record(
        "held" if is_held else lock.status,
        lock.call_id,
        lock.attempt,
        HASHES.index(str(lock.payload_hash)),
        None if lock.status != INPROGRESS else times.from_text(str(lock.lease_until)),
        times.from_text(str(lock.expires_at)),
        lock.failure.error if lock.failure else None if lock.result is None else json.loads(lock.result),
    )


@pytest.mark.usefixtures("world")
def test_in_any_order_the_record_is_what_the_model_says():
    """Hypothesis makes up what happens."""
    run_state_machine_as_test(AnyOrder, settings=settings(stateful_step_count=15))
