# ruff: noqa: ARG001, ARG003, PT012
# Guarded functions ignore arguments, and blocks end in what they raise.
"""The guard on a table in moto: every outcome, every kind of error, leases, races, nesting, types."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, TypedDict
from uuid import UUID

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from pydantic import BaseModel

from steponce import (
    AlreadyInProgress,
    CompletionRefused,
    DuplicateRefused,
    Guard,
    LockLost,
    NotFinished,
    NotRecorded,
    PayloadMismatch,
    RequestFailed,
    RetryLater,
    Unavailable,
    Unsettled,
)
from steponce.aws import times
from steponce.errors import (
    InvalidLockToken,
    InvalidPayload,
    InvalidRequest,
    InvalidSetting,
    MissingKey,
    RecordUnreadable,
)
from steponce.locks.record import Failure, Lock
from steponce.request.canonical import sha256
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, OUTCOME_UNKNOWN, RELEASED
from tests.patience import PATIENCE_SECONDS
from tests.unit.guards.world import KEY, NOW, Session, World
from tests.unit.shared_clients import shared

ORDER = {"orderId": "o-12", "amount": 500}
DONE = {"chargeId": "ch_1"}


def complete(guard: Guard, key: str = KEY, payload: Any = ORDER, result: Any = DONE, **options: Any) -> Any:
    """One call that charges, unless it is a replay."""
    with guard.begin(key, payload, **options) as run:
        if not run.replayed:
            run.complete(result)
        return run.result


# -- The four outcomes ---------------------------------------------------------------------------


def test_a_fresh_call_makes_two_writes_and_no_read(world: World) -> None:
    """Acquire, complete."""
    assert DONE == complete(world.guard())
    assert ["update_item"] * 2 == world.calls


def test_a_record_is_as_the_workflow_writes_it(world: World) -> None:
    """While it is held, and when it is finished."""
    guard = world.guard()
    with guard.begin(KEY, ORDER, lease_seconds=60) as run:
        held = world.lock()
        assert (INPROGRESS, 1, run.call_id, KEY) == (
            held.status,
            held.attempt,
            held.call_id,
            held.request_id,
        )
        assert held.locked_by.startswith("process/")
        assert "2026-01-31T12:01:00.000Z" == held.lease_until == held.expected_completion == run.lease_until
        assert "INPROGRESS" == str(held.open_status).partition("#")[0]
        assert sha256('{"amount":500,"orderId":"o-12"}') == held.payload_hash
        assert held.ttl is None
        run.complete(DONE)
    done = world.lock()
    assert (COMPLETED, '{"chargeId":"ch_1"}', None) == (done.status, done.result, done.open_status)
    assert (times.epoch_seconds(str(done.expires_at)), "2026-05-01T12:00:00.000Z") == (
        done.ttl,
        done.expires_at,
    )
    assert "leaseUntil" not in world.item()


def test_a_replay_makes_one_refused_write_and_no_read(world: World) -> None:
    """The refused write returns the record."""
    complete(world.guard())
    world.calls.clear()
    assert DONE == complete(world.guard(), result="another")
    assert ["update_item"] == world.calls


def test_a_replay_says_so_and_cannot_be_completed(world: World) -> None:
    """Its answer is the first one's."""
    complete(world.guard())
    with world.guard().begin(KEY, ORDER) as run:
        assert run.replayed
        with pytest.raises(RuntimeError, match="is a replay"):
            run.complete("another")
    assert '{"chargeId":"ch_1"}' == world.lock().result


def test_a_duplicate_may_be_refused(world: World) -> None:
    """As configured."""
    complete(world.guard())
    with pytest.raises(DuplicateRefused):
        complete(world.guard(when_completed="refuse"))


def test_who_meets_a_holder_hears_whom(world: World) -> None:
    """And until when, at the latest."""
    with world.guard().begin(KEY, ORDER, lease_seconds=60) as run:
        with pytest.raises(AlreadyInProgress, match="process/") as refused:
            complete(world.guard())
        assert world.lock().locked_by == refused.value.locked_by
        assert "2026-01-31T12:01:00.000Z" == refused.value.lease_until
        run.complete(DONE)


def test_a_record_that_a_guard_takes_names_no_execution(world: World) -> None:
    """The workflow that had it before left its own name there."""
    complete(world.guard())
    arn = "arn:aws:states:us-east-1:1:execution:m:x"
    world.put(status=RELEASED, lockedBy=arn, executionName="x", requestId="x", callId="x")
    with world.guard().begin(KEY, ORDER) as run:
        held = world.lock()
        assert (KEY, None) == (held.request_id, held.execution_name)
        run.complete(DONE)


def test_a_workflow_s_lock_is_never_over_for_a_guard(world: World) -> None:
    """Its owner is an execution; those who may ask for it decide."""
    complete(world.guard())
    arn = "arn:aws:states:us-east-1:1:execution:m:x"
    world.put(status=INPROGRESS, lockedBy=arn, executionName="x", attempt=3, callId="x")
    world.pass_by(10**6)
    with pytest.raises(AlreadyInProgress) as refused:
        complete(world.guard(when_outcome_unknown="take-over"))
    assert refused.value.lease_until is None


def test_another_payload_is_refused(world: World) -> None:
    """While it runs, and when it is done."""
    with world.guard().begin(KEY, ORDER) as run:
        with pytest.raises(PayloadMismatch):
            complete(world.guard(), payload=ORDER | {"amount": 1})
        run.complete(DONE)
    with pytest.raises(PayloadMismatch):
        complete(world.guard(), payload=ORDER | {"amount": 1})


def test_a_store_that_does_not_answer_runs_nothing(world: World) -> None:
    """Unavailable, and whatever was written is given back."""
    dead = ConnectTimeoutError(endpoint_url="https://dynamodb")

    def lose(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        world.fault = None  # only this one
        forward()
        raise dead

    world.fault = lose
    with pytest.raises(Unavailable), world.guard().begin(KEY, ORDER):
        pytest.fail("the block was entered")
    assert RELEASED == world.lock().status
    assert DONE == complete(world.guard())


def test_a_record_that_another_program_wrote_is_unreadable(world: World) -> None:
    """Nothing is decided by it."""
    shared("dynamodb").put_item(
        TableName="locks", Item={"lockToken": {"S": KEY}, "status": {"S": "COMPLETED"}}
    )
    with pytest.raises(RecordUnreadable):
        complete(world.guard())


def test_an_expired_record_is_taken_anew(world: World) -> None:
    """As AcquireLock does; the attempt goes on counting."""
    complete(world.guard())
    world.pass_by(91 * 86_400)
    assert "second" == complete(world.guard(), result="second")
    assert 2 == world.lock().attempt


def test_a_block_without_an_outcome_is_held(world: World) -> None:
    """Nobody knows whether its work took effect."""
    with pytest.raises(Unsettled), world.guard().begin(KEY, ORDER) as run, pytest.raises(NotFinished):
        _ = run.result
    assert (FAILED, OUTCOME_UNKNOWN) == (world.lock().status, world.lock().failure.error)


# -- Errors of three kinds -----------------------------------------------------------------------


class CardDeclined(Exception):
    """A final answer."""


def fail_with(guard: Guard, error: BaseException, **options: Any) -> None:
    """A call whose work raises."""
    with pytest.raises(type(error)) as raised, guard.begin(KEY, ORDER, **options):
        raise error
    assert error is raised.value


@pytest.mark.parametrize(("error", "releases"), [(RetryLater("no"), ()), (OSError("no"), (OSError,))])
def test_where_nothing_happened_the_lock_is_released(world: World, error: Exception, releases: Any) -> None:
    """Anyone may take it at once."""
    fail_with(world.guard(releases=releases), error)
    assert (RELEASED, Failure(type(error).__name__, "no")) == (world.lock().status, world.lock().failure)
    assert (None, None) == (world.lock().open_status, world.lock().lease_until)
    assert DONE == complete(world.guard())
    assert 2 == world.lock().attempt


def test_a_final_error_is_replayed(world: World) -> None:
    """To everyone, without running the work."""
    fail_with(world.guard(), CardDeclined("no funds"), final=(CardDeclined,))
    assert (None, FAILED) == (world.lock().open_status, world.lock().status)
    assert world.lock().ttl is not None
    with pytest.raises(RequestFailed) as failed:
        complete(world.guard())
    assert ("CardDeclined", "no funds") == (failed.value.error, failed.value.cause)


@pytest.mark.parametrize("error", [ZeroDivisionError("bug"), KeyboardInterrupt(), SystemExit(1)])
def test_any_other_error_waits_for_a_person(world: World, error: BaseException) -> None:
    """On the open index, without ttl."""
    fail_with(world.guard(final=(CardDeclined,)), error)
    assert FAILED == str(world.lock().open_status).partition("#")[0]
    assert world.lock().ttl is None
    with pytest.raises(RequestFailed, match="waits for a person"):
        complete(world.guard())


def test_an_error_that_cannot_be_written_down_stays_itself(world: World) -> None:
    """With a note; the record goes on by its lease."""

    def die(*_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "UpdateItem")

    with pytest.raises(ZeroDivisionError) as raised, world.guard().begin(KEY, ORDER):
        world.fault = die
        raise ZeroDivisionError
    assert "could not be recorded" in raised.value.__notes__[0]
    assert INPROGRESS == world.lock().status


# -- Leases and lost answers ---------------------------------------------------------------------


def test_after_its_lease_an_outcome_is_held_and_a_late_completion_is_refused(world: World) -> None:
    """Loudly, with the result in the error, and without a trace on the record."""
    with pytest.raises(CompletionRefused) as refused, world.guard().begin(KEY, ORDER, lease_seconds=9) as run:
        world.pass_by(10)
        with pytest.raises(RequestFailed) as held:
            complete(world.guard())
        before = world.item()
        run.complete(DONE)
    assert OUTCOME_UNKNOWN == held.value.error
    assert (DONE, KEY) == (refused.value.result, refused.value.lock_token)
    assert before == world.item()
    assert "process/" in world.lock().interventions[0].by


def test_after_its_lease_a_lock_may_be_taken_over(world: World) -> None:
    """With the same key and a higher attempt; the first owner can do nothing any more."""
    second = world.guard(when_outcome_unknown="take-over")
    with pytest.raises(CompletionRefused), world.guard().begin(KEY, ORDER, lease_seconds=9) as late:
        world.pass_by(10)
        with second.begin(KEY, ORDER) as run:
            assert (2, False) == (run.attempt, run.replayed)
            with pytest.raises(LockLost):
                late.extend()
            run.complete("second")
        late.complete("first")
    assert '"second"' == world.lock().result


def test_a_late_error_is_not_written(world: World) -> None:
    """The new owner's record stays."""
    second = world.guard(when_outcome_unknown="take-over")
    with pytest.raises(ZeroDivisionError) as raised, world.guard().begin(KEY, ORDER, lease_seconds=9):
        world.pass_by(10)
        complete(second, result="second")
        raise ZeroDivisionError
    assert '"second"' == world.lock().result
    assert "was lost" in raised.value.__notes__[0]


def test_who_is_late_and_was_not_missed_completes(world: World) -> None:
    """Nobody has decided yet."""
    with world.guard().begin(KEY, ORDER, lease_seconds=9) as run:
        world.pass_by(10)
        run.complete(DONE)
    assert COMPLETED == world.lock().status


def test_an_extended_lease_is_alive(world: World) -> None:
    """So long as it says."""
    with world.guard().begin(KEY, ORDER, lease_seconds=9) as run:
        world.pass_by(8)
        run.extend()
        run.extend(1)  # never shortens
        world.pass_by(8)
        with pytest.raises(AlreadyInProgress):
            complete(world.guard(when_outcome_unknown="take-over"))
        run.check()
        run.complete(DONE)


@pytest.mark.parametrize("unknown", ["hold", "take-over"])
def test_a_lease_that_is_extended_at_the_last_moment_wins(world: World, unknown: Any) -> None:
    """It was over when the other one looked, and is not when that one writes."""
    with world.guard().begin(KEY, ORDER, lease_seconds=9) as run:
        world.pass_by(10)

        def extend_between(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
            if "callId = :callId AND lockedBy" in arguments.get("ConditionExpression", ""):
                world.fault = None
                run.extend(60)
            return forward()

        world.fault = extend_between
        with pytest.raises(AlreadyInProgress):
            complete(world.guard(when_outcome_unknown=unknown))
        run.complete(DONE)
    assert (1, COMPLETED) == (world.lock().attempt, world.lock().status)


def test_the_fence_says_no_once_the_lease_is_over(world: World) -> None:
    """Or once somebody else has the lock."""
    with world.guard().begin(KEY, ORDER, lease_seconds=9) as run:
        run.check()
        world.pass_by(9)
        with pytest.raises(LockLost, match="lease"):
            run.check()
        run.extend()
        world.put(attempt=2)
        with pytest.raises(LockLost):
            run.check()
        world.put(attempt=1)
        run.complete(DONE)


@pytest.mark.parametrize("which", [1, 2])
def test_a_write_whose_answer_was_lost_is_repeated(world: World, which: int) -> None:
    """As boto3 does: the second time it meets its own record."""
    made = 0

    def twice(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        nonlocal made
        made += 1
        if made == which:
            forward()
        return forward()

    world.fault = twice
    assert DONE == complete(world.guard())
    assert (1, '{"chargeId":"ch_1"}') == (world.lock().attempt, world.lock().result)


def test_a_takeover_whose_answer_was_lost_is_repeated(world: World) -> None:
    """The attempt is raised by one."""
    with pytest.raises(CompletionRefused), world.guard().begin(KEY, ORDER, lease_seconds=9) as late:
        world.pass_by(10)

        def twice(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
            if ":deadLease" in arguments["ExpressionAttributeValues"]:
                forward()
            return forward()

        world.fault = twice
        with world.guard(when_outcome_unknown="take-over").begin(KEY, ORDER) as run:
            assert 2 == run.attempt == world.lock().attempt
            run.complete(DONE)
        late.complete("late")


def test_a_late_copy_of_an_acquire_changes_nothing(world: World) -> None:
    """It arrives after its own call has released the lock, or has finished."""
    copies: list[Callable[[], Any]] = []

    def keep(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        copies.append(forward)
        return forward()

    world.fault = keep
    fail_with(world.guard(), RetryLater())
    before = world.item()
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        copies[0]()
    assert before == world.item()


def test_a_completion_without_an_answer_keeps_the_result(world: World) -> None:
    """It may be made again, and never looks like a failed request."""
    guard = world.guard()

    def die(*_: Any) -> Any:
        raise ConnectTimeoutError(endpoint_url="https://dynamodb")

    with guard.begin(KEY, ORDER) as run:
        world.fault = die
        with pytest.raises(NotRecorded) as unwritten:
            run.complete(DONE)
        world.fault = None
        assert (DONE, INPROGRESS) == (unwritten.value.result, world.lock().status)
        run.complete(unwritten.value.result)
    assert COMPLETED == world.lock().status


@pytest.mark.parametrize(
    ("result", "error"), [("x" * 262_145, "ResultTooLarge"), ({1, 2}, "InvalidPayload"), (1e999, None)]
)
def test_work_whose_result_no_record_can_hold_is_never_run_again(
    world: World, result: Any, error: str | None
) -> None:
    """Not even where unknown outcomes are taken over; a person completes it."""
    with pytest.raises(NotRecorded) as unwritten:
        complete(world.guard(), result=result)
    assert result == unwritten.value.result
    world.pass_by(10**6)
    with pytest.raises(RequestFailed) as held:
        complete(world.guard(when_outcome_unknown="take-over"))
    assert (error or "InvalidPayload") == held.value.error


def test_a_lambda_s_context_gives_the_lease_and_the_owner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped when its time is up."""

    class Context:
        function_name = "charge"
        aws_request_id = "req-1"

        def get_remaining_time_in_millis(self) -> int:
            return 29_000

    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "charge")
    guard = world.guard()
    complete(guard, context=Context())
    assert ("lambda/charge/req-1", "2026-01-31T12:00:30.000Z") == (
        world.lock().locked_by,
        world.lock().expected_completion,
    )

    @guard.idempotent(lock_token="event.id", name="")
    def handler(event: dict[str, Any], _context: Any) -> str:
        return world.lock(event["id"]).locked_by

    assert "lambda/charge/req-1" == handler({"id": "o-1"}, Context())


def test_handlers_of_two_lambdas_each_do_their_work(world: World) -> None:
    """One event goes to both, and both call their function `handler`."""
    done: list[str] = []

    def deployed(function: str) -> tuple[Callable[[dict[str, Any], Any], str], Any]:
        class Context:
            function_name = function
            aws_request_id = "req-1"

            def get_remaining_time_in_millis(self) -> int:
                return 29_000

        def handler(event: dict[str, Any], _context: Any) -> str:
            done.append(function)
            return function

        handler.__qualname__ = "handler"
        return world.guard(key_prefix="shop").idempotent(lock_token="event.id")(handler), Context()

    for function in ("bill", "ship"):
        handler, context = deployed(function)
        assert function == handler({"id": "o-1"}, context) == handler({"id": "o-1"}, context)
    assert ["bill", "ship"] == done
    assert COMPLETED == world.lock("shop/ship/handler/o-1").status


def test_two_functions_of_one_name_are_refused(world: World) -> None:
    """Each would get the other's results. The same function may be decorated again, as by a reload."""

    def defined_in(module: str) -> Callable[[str], str]:
        def charge(key: str) -> str:
            return module

        charge.__module__ = module
        return charge

    guard = world.guard()
    guard.idempotent(lock_token="key")(defined_in("shop.cards"))
    guard.idempotent(lock_token="key")(defined_in("shop.cards"))
    with pytest.raises(
        ValueError, match=r"shop\.cards and shop\.invoices both have .* Give one of them a name"
    ):
        guard.idempotent(lock_token="key")(defined_in("shop.invoices"))
    assert "shop.invoices" == guard.idempotent(lock_token="key", name="i")(defined_in("shop.invoices"))("1")


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_lease_lasts(world: World, seconds: float) -> None:
    """Else every call would be over as it begins."""
    with pytest.raises(InvalidRequest, match="lease"):
        world.guard().begin(KEY, ORDER, lease_seconds=seconds)


def test_a_renewed_lease_goes_on_while_the_work_runs(world: World) -> None:
    """A thread extends it."""
    extended = threading.Event()

    def watch(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        answer = forward()
        if "SET leaseUntil" in arguments["UpdateExpression"]:
            extended.set()
        return answer

    world.fault = watch
    with world.guard().begin(KEY, ORDER, lease_seconds=0.3, renew=True) as run:
        assert extended.wait(PATIENCE_SECONDS)
        run.complete(DONE)
    assert [] == [thread for thread in threading.enumerate() if thread.name == "steponce-lease"]


# -- Waiting -------------------------------------------------------------------------------------


def test_who_waits_gets_the_winner_s_result(world: World) -> None:
    """Instead of AlreadyInProgress."""
    guard, looked = world.guard(), threading.Event()

    def watch(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        if "ConsistentRead" in arguments:
            looked.set()
        return forward()

    world.fault = watch
    with ThreadPoolExecutor(1) as pool, guard.begin(KEY, ORDER) as run:
        waiting = pool.submit(complete, guard, result="another", wait_seconds=PATIENCE_SECONDS)
        assert looked.wait(PATIENCE_SECONDS)
        run.complete(DONE)
        assert DONE == waiting.result(PATIENCE_SECONDS)


def test_who_waits_for_what_is_released_does_the_work(world: World) -> None:
    """Nobody else does."""
    guard, looked = world.guard(), threading.Event()

    def watch(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        if "ConsistentRead" in arguments:
            looked.set()
        return forward()

    world.fault = watch
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(RetryLater), guard.begin(KEY, ORDER):
            waiting = pool.submit(complete, guard, result="second", wait_seconds=PATIENCE_SECONDS)
            assert looked.wait(PATIENCE_SECONDS)
            raise RetryLater
        assert "second" == waiting.result(PATIENCE_SECONDS)


def test_who_has_waited_long_enough_hears_so(world: World) -> None:
    """AlreadyInProgress, after all."""
    with world.guard().begin(KEY, ORDER) as run:
        with pytest.raises(AlreadyInProgress):
            complete(world.guard(), wait_seconds=0.05)
        run.complete(DONE)


# -- Decorated functions -------------------------------------------------------------------------


@dataclass
class Order:
    """What is bought."""

    orderId: str
    amount: int


class Colour(Enum):
    """Of a receipt."""

    RED = "red"


@dataclass
class Charge:
    """What a provider answers, with all that JSON has no form for."""

    charge_id: UUID
    at: datetime
    amount: Decimal
    colours: list[Colour]
    order: Order | None = None
    pair: tuple[int, str] = (1, "a")


class Receipt(TypedDict):
    """A typed dictionary."""

    order: Order


class Model(BaseModel):
    """One of pydantic's."""

    at: datetime
    order: Order


CHARGE = Charge(UUID(int=1), NOW, Decimal("1.50"), [Colour.RED], Order("o-1", 1))


def test_a_function_runs_once_per_key(world: World) -> None:
    """By its arguments' names, however they are given."""
    guard, calls = world.guard(key_prefix="billing"), []

    @guard.idempotent(lock_token="order.orderId", payload="order", name="charge")
    def charge(order: Order, note: str = "") -> Charge:
        """Charge."""
        calls.append(note)
        return CHARGE

    assert CHARGE == charge(Order("o-1", 1), "a") == charge(order=Order("o-1", 1), note="b")
    assert ["a"] == calls
    assert ("charge", "Charge.") == (charge.__name__, charge.__doc__)
    assert "charge/o-1" == world.lock("billing/charge/o-1").request_id
    with pytest.raises(PayloadMismatch):
        charge(Order("o-1", 2))


RETURNED = [
    (Charge, CHARGE),
    (Receipt, {"order": Order("o-1", 1)}),
    (Model, Model(at=NOW, order=Order("o-1", 1))),
    (list[Charge], [CHARGE]),
    (dict[str, Order], {"a": Order("o-1", 1)}),
    (Order | None, None),
    (str | Order, Order("o-1", 1)),
    (tuple[Order, ...], (Order("o-1", 1),)),
    (Any, {"plain": [1, None]}),
]


@pytest.mark.parametrize(("kind", "value"), RETURNED, ids=[str(kind) for kind, _ in RETURNED])
def test_a_replayed_result_has_the_annotated_type(world: World, kind: Any, value: Any) -> None:
    """Whoever gets it cannot tell that it is a replay."""

    def work(key: str) -> Any:
        return value

    work.__annotations__["return"] = kind
    guarded = world.guard().idempotent(lock_token="key")(work)
    assert value == guarded("o-1") == guarded("o-1")


def test_your_own_pair_of_functions_goes_first(world: World) -> None:
    """In the place of annotations."""
    own = {
        "serialize": lambda charge: {"id": str(charge.charge_id)},
        "deserialize": lambda given: given["id"],
    }

    @world.guard().idempotent(lock_token="key", **own)
    def work(key: str) -> Charge:
        return CHARGE

    work("o-1")
    assert str(UUID(int=1)) == work("o-1")


def test_a_result_that_does_not_fit_any_more_is_unreadable(world: World) -> None:
    """The function has another type by now."""
    guard = world.guard()

    @guard.idempotent(lock_token="key", name="work")
    def before(key: str) -> str:
        return "text"

    @guard.idempotent(lock_token="key", name="work")
    def now(key: str) -> Charge:
        return CHARGE

    before("o-1")
    with pytest.raises(RecordUnreadable, match="type"):
        now("o-1")


def test_a_hook_hears_of_replays_and_may_change_them(world: World) -> None:
    """It gets the result and the record, and nothing else calls it."""
    heard: list[Lock] = []

    def hook(result: Any, record: Lock) -> Any:
        heard.append(record)
        return result | {"replayed": True}

    guard = world.guard(on_replay=hook)
    assert DONE == complete(guard)
    assert [] == heard
    assert DONE | {"replayed": True} == complete(guard)
    assert COMPLETED == heard[0].status


def test_methods_are_guarded_by_their_arguments(world: World) -> None:
    """Not by self; class methods and static methods too."""
    guard, calls = world.guard(), []

    class Till:
        @guard.idempotent(lock_token="key")
        def charge(self, key: str) -> str:
            calls.append(self)
            return key

        @classmethod
        @guard.idempotent(lock_token="key")
        def of_class(cls, key: str) -> str:
            calls.append(cls)
            return cls.__name__

        @guard.idempotent(lock_token="key")
        @staticmethod
        def static(key: str) -> str:
            calls.append(key)
            return key

    assert ["a"] * 2 == [Till().charge("a"), Till().charge("a")]
    assert ["Till"] * 2 == [Till.of_class("a"), Till.of_class("a")]
    assert ["a"] * 2 == [Till.static("a"), Till().static("a")]
    assert 3 == len(calls)


def test_functions_on_one_guard_do_not_answer_for_each_other(world: World) -> None:
    """Their names are part of their keys, and each has its own terms."""
    guard = world.guard()

    @guard.idempotent(lock_token="key", final=(CardDeclined,))
    def charge(key: str) -> str:
        raise CardDeclined

    @guard.idempotent(lock_token="key")
    def refund(key: str) -> str:
        return "refunded"

    with pytest.raises(CardDeclined):
        charge("o-1")
    assert "refunded" == refund("o-1")
    with pytest.raises(RequestFailed):
        charge("o-1")


def test_nested_functions_keep_their_records_apart(world: World) -> None:
    """The inner one is complete before the outer one, which may fail."""
    guard = world.guard()

    @guard.idempotent(lock_token="key", name="inner")
    def inner(key: str) -> str:
        return f"inner {key}"

    @guard.idempotent(lock_token="key", name="outer")
    def outer(key: str) -> str:
        return f"outer {inner(key)} {inner(key + '2')}"

    assert "outer inner o inner o2" == outer("o") == outer("o")
    results = {key: world.lock(key).result for key in ("outer/o", "inner/o", "inner/o2")}
    assert {
        "outer/o": '"outer inner o inner o2"',
        "inner/o": '"inner o"',
        "inner/o2": '"inner o2"',
    } == results


def test_a_key_must_be_there(world: World) -> None:
    """Nothing ran."""
    calls = []

    @world.guard().idempotent(lock_token="order.orderId")
    def charge(order: dict[str, Any]) -> None:
        calls.append(order)

    for nothing in ({}, {"orderId": None}, {"orderId": " "}):
        with pytest.raises(MissingKey, match="nothing at"):
            charge(nothing)
    with pytest.raises(InvalidLockToken):
        charge({"orderId": "x" * 2048})
    assert [] == calls


def test_what_json_cannot_carry_is_no_payload(world: World) -> None:
    """Unless the payload's expression leaves it out."""
    guard = world.guard()

    def work(key: str, client: Any) -> str:
        return key

    with pytest.raises(InvalidPayload):
        guard.idempotent(lock_token="key")(work)("o-1", object())
    assert "o-1" == guard.idempotent(lock_token="key", payload="key")(work)("o-1", object())


def test_without_a_key_the_payload_is_the_key(world: World) -> None:
    """Its hash."""
    calls = []

    @world.guard().idempotent()
    def charge(order: Order) -> None:
        calls.append(order)

    for amount in (1, 2, 1):
        charge(Order("o-1", amount))
    assert [1, 2] == [order.amount for order in calls]


def test_a_generator_has_no_result_to_keep(world: World) -> None:
    """It is refused where it is decorated."""
    with pytest.raises(TypeError, match="yields"):

        @world.guard().idempotent(lock_token="key")
        def stream(key: str) -> Iterator[str]:
            yield key


def test_the_guard_can_be_switched_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests: no call to the table, and the work runs each time."""
    monkeypatch.setenv("STEPONCE_DISABLED", "true")
    assert ["a", "b"] == [complete(world.guard(), result=result) for result in "ab"]
    with world.guard().begin(KEY, ORDER) as run:
        run.extend()
        run.check()
        run.complete(DONE)
    fail_with(world.guard(), ZeroDivisionError())
    assert [] == world.calls


def test_on_lambda_the_guard_cannot_be_switched_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It warns, and guards."""
    monkeypatch.setenv("STEPONCE_DISABLED", "true")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "charge")
    with pytest.warns(RuntimeWarning, match="STEPONCE_DISABLED"):
        complete(world.guard())
    assert COMPLETED == world.lock().status


# -- The cache -----------------------------------------------------------------------------------


def test_a_cached_answer_needs_no_call(world: World) -> None:
    """Its payload is compared all the same, and it expires."""
    guard = world.guard(cache_size=1)
    complete(guard)
    world.calls.clear()
    assert DONE == complete(guard, result="another")
    with pytest.raises(PayloadMismatch):
        complete(guard, payload="another")
    assert [] == world.calls
    world.pass_by(91 * 86_400)
    assert "another" == complete(guard, result="another")


def test_the_cache_keeps_the_most_recently_used_final_answers_only(world: World) -> None:
    """What waits for a person may change."""
    guard = world.guard(cache_size=2, final=(CardDeclined,))
    fail_with(guard, CardDeclined())
    for key in ("a", "b"):
        complete(guard, key)
    with pytest.raises(RequestFailed):
        complete(guard)  # now kept, in the place of a
    world.calls.clear()
    complete(guard, "b")
    with pytest.raises(RequestFailed):
        complete(guard)
    assert [] == world.calls
    complete(guard, "a")
    assert ["update_item"] == world.calls

    with pytest.raises(ZeroDivisionError), guard.begin("c", ORDER):
        raise ZeroDivisionError
    for _ in range(2):
        world.calls.clear()
        with pytest.raises(RequestFailed):
            complete(guard, "c")
        assert ["update_item"] == world.calls


# -- Threads and tasks ---------------------------------------------------------------------------


def test_of_many_threads_one_does_the_work(world: World) -> None:
    """The others wait for its result, on one guard."""
    guard, calls, together = world.guard(), [], threading.Barrier(8)

    @guard.idempotent(lock_token="key", wait_seconds=PATIENCE_SECONDS)
    def charge(key: str) -> str:
        calls.append(key)
        return f"ch_{key}"

    def race(key: str) -> str:
        together.wait(PATIENCE_SECONDS)
        return charge(key)

    with ThreadPoolExecutor(8) as pool:
        for number in range(3):
            assert {f"ch_{number}"} == set(pool.map(race, [str(number)] * 8))
    assert ["0", "1", "2"] == calls


def test_of_many_who_take_over_one_does(world: World) -> None:
    """The dead owner's lock goes to one of them."""
    guard, calls = world.guard(when_outcome_unknown="take-over", wait_seconds=PATIENCE_SECONDS), []
    dead = guard.begin(KEY, ORDER, lease_seconds=9)
    dead.__enter__()
    world.pass_by(10)

    def work(number: int) -> Any:
        with guard.begin(KEY, ORDER) as run:
            if not run.replayed:
                calls.append(run.attempt)
                run.complete(number)
            return run.result

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(work, range(8)))
    assert (1, [2]) == (len(answers), calls)
    with pytest.raises(CompletionRefused):
        dead.complete("late")


def test_coroutines_are_guarded(world: World) -> None:
    """Many tasks on one loop, more than it has threads; one of them does the work."""
    guard, calls = world.guard(), []

    @guard.idempotent(lock_token="order.orderId", wait_seconds=PATIENCE_SECONDS)
    async def charge(order: Order) -> Charge:
        calls.append(order)
        await asyncio.sleep(0)
        return CHARGE

    async def race() -> list[Charge]:
        return await asyncio.gather(*(charge(Order("o-1", 1)) for _ in range(50)))

    assert [CHARGE] * 50 == asyncio.run(race())
    assert 1 == len(calls)


def test_async_blocks_and_their_errors(world: World) -> None:
    """As with `with`."""
    guard = world.guard(final=(CardDeclined,))

    async def work(key: str, error: Exception | None) -> Any:
        async with guard.begin(key, ORDER) as run:
            if error is not None:
                raise error
            if not run.replayed:
                run.complete(key)
            return run.result

    assert ["a", "a"] == [asyncio.run(work("a", None)) for _ in range(2)]
    for key, error, status in (("b", CardDeclined(), FAILED), ("c", RetryLater(), RELEASED)):
        with pytest.raises(type(error)):
            asyncio.run(work(key, error))
        assert status == world.lock(key).status


def test_a_task_that_is_cancelled_in_its_work_is_held(world: World) -> None:
    """Its work may have taken effect."""
    guard = world.guard()

    async def cancel() -> None:
        begun = asyncio.Event()

        @guard.idempotent(lock_token="key", name="")
        async def work(key: str) -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(work(KEY))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert (FAILED, "CancelledError") == (world.lock().status, world.lock().failure.error)


def test_a_task_that_is_cancelled_while_it_begins_gives_the_lock_back(world: World) -> None:
    """What was sent cannot be taken back, so it is undone."""
    guard = world.guard()

    async def cancel() -> None:
        loop, sent, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def slow(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
            world.fault = None
            loop.call_soon_threadsafe(sent.set)
            assert go_on.wait(PATIENCE_SECONDS)
            return forward()

        world.fault = slow

        async def work() -> None:
            async with guard.begin(KEY, ORDER):
                pytest.fail("the block was entered")

        task = asyncio.create_task(work())
        await sent.wait()
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert RELEASED == world.lock().status


def test_a_run_begins_once(world: World) -> None:
    """Each call has its own."""
    run = world.guard().begin(KEY, ORDER)
    with pytest.raises(RuntimeError, match="has not begun"):
        run.complete(DONE)
    with run:
        run.complete(DONE)
    with pytest.raises(RuntimeError, match="once"), run:
        pass


@pytest.mark.parametrize("table", ["", None, 7])
def test_a_guard_wants_its_table_s_name(world: World, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an environment variable that is not set; boto3 does not check what a guard sends."""
    guard = Guard(table, session=Session(world))
    with pytest.raises(InvalidSetting, match="Give the stack's Output LocksTable"):
        guard.begin(KEY, ORDER)
    monkeypatch.setenv("STEPONCE_DISABLED", "true")
    with guard.begin(KEY, ORDER) as run:
        run.complete(DONE)


def test_a_guard_has_a_stack_s_rules(world: World) -> None:
    """Prefix, retention, payload hash and shards, from its Outputs."""
    outputs = {
        "LocksTable": "locks",
        "KeyPrefix": "shop",
        "RetentionSeconds": "60",
        "ExpectedSeconds": "9",
        "PayloadHashPath": "orderId",
        "OpenShards": "1",
    }
    guard = Guard.from_outputs(outputs, session=Session(world))
    complete(guard, "shop/order-1")
    lock = world.lock("shop/order-1")
    assert ("order-1", sha256('"o-12"')) == (lock.request_id, lock.payload_hash)
    assert "2026-01-31T12:01:00.000Z" == lock.expires_at
    assert DONE == json.loads(str(lock.result))
