"""The guard on a table in moto: every outcome, every kind of error, waiting."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from steponce import (
    AlreadyInProgress,
    DuplicateRefused,
    Guard,
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
    InvalidPayload,
    InvalidSetting,
    MissingKey,
    RecordUnreadable,
)
from steponce.failure import Failure
from steponce.request.canonical import sha256
from steponce.workflow import CAUSE_LIMIT, COMPLETED, FAILED, INPROGRESS, OUTCOME_UNKNOWN, RELEASED
from tests.patience import PATIENCE_SECONDS
from tests.unit.guards.charging import DONE, ORDER, CardDeclined, complete, fail_with
from tests.unit.guards.world import KEY, Session, World
from tests.unit.shared_clients import shared

# -- The four outcomes ---------------------------------------------------------------------------


def test_a_fresh_call_makes_two_writes_and_no_read(world: World) -> None:
    """Acquire, complete."""
    assert DONE == complete(world.guard())
    assert ["put_item", "update_item"] == world.calls


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
    assert ["put_item"] == world.calls


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


def test_an_error_that_takes_no_note_stays_itself(world: World) -> None:
    """As a frozen dataclass does not."""

    class Frozen(Exception):
        def add_note(self, _note: str) -> NoReturn:
            raise AttributeError

    def die(*_: Any) -> Any:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "UpdateItem")

    with pytest.raises(Frozen), world.guard().begin(KEY, ORDER):
        world.fault = die
        raise Frozen


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


# -- Its settings ---------------------------------------------------------------------------------


def test_a_run_that_is_entered_again_in_its_block_keeps_its_lock(world: World) -> None:
    """Synchronously and not; the work under way is that of the first block."""

    async def again(run: Any) -> None:
        with pytest.raises(RuntimeError, match="once"):
            async with run:
                pytest.fail("the block was entered")

    with world.guard().begin(KEY, ORDER) as run:
        with pytest.raises(RuntimeError, match="once"), run:
            pytest.fail("the block was entered")
        asyncio.run(again(run))
        assert INPROGRESS == world.lock().status
        run.complete(DONE)
    assert COMPLETED == world.lock().status


def test_a_run_begins_once(world: World) -> None:
    """Each call has its own."""
    run = world.guard().begin(KEY, ORDER)
    with pytest.raises(RuntimeError, match="has not begun"):
        run.complete(DONE)
    with run:
        run.complete(DONE)
        with pytest.raises(RuntimeError, match="is over"):
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


# -- What a call is given -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        {"when_completed": "refused"},
        {"when_outcome_unknown": "takeover"},
        {"final": CardDeclined},
        {"final": [CardDeclined]},
        {"releases": (CardDeclined())},
        {"releases": ("CardDeclined",)},
        {"lease_seconds": "5"},
        {"lease_seconds": 0},
        {"lease_seconds": -1},
        {"lease_seconds": float("nan")},
        {"wait_seconds": "5"},
        {"wait_seconds": float("nan")},
        {"serialize": None},
        {"deserialize": "json"},
        {"on_replay": "log"},
    ],
    ids=str,
)
def test_an_option_that_means_nothing_is_refused(world: World, option: dict[str, Any]) -> None:
    """Misspelt, `refuse` was a replay; a list of classes lost the outcome of work that had failed."""
    with pytest.raises(InvalidSetting, match=next(iter(option))):
        complete(world.guard(**option))
    with pytest.raises(InvalidSetting, match=next(iter(option))):
        complete(world.guard(), **option)
    assert [] == world.calls


@pytest.mark.parametrize("size", [-1, "100", True, None])
def test_a_cache_size_that_is_none_is_refused(world: World, size: Any) -> None:
    """The first answer that it was to keep was an error after the work."""
    with pytest.raises(InvalidSetting, match="cache_size"):
        world.guard(cache_size=size)


class _Speechless(Exception):
    def __str__(self) -> str:
        raise AttributeError


class _Text(str):
    def __getitem__(self, _place: Any) -> NoReturn:
        raise IndexError


class _Odd(Exception):
    def __str__(self) -> str:
        return _Text("odd")


class _Faceless(Exception):
    @property
    def __class__(self) -> NoReturn:
        raise ValueError


class _Nameless(type):
    @property
    def __name__(cls) -> int:
        return 5


class _Unnamed(Exception, metaclass=_Nameless):
    pass


@pytest.mark.parametrize(
    "error",
    [_Speechless(), OSError("There is no \udce9.txt"), _Odd(), _Unnamed()],
    ids=["none", "half", "odd text", "no name"],
)
def test_an_error_whose_text_cannot_be_written_is_on_record(world: World, error: Exception) -> None:
    """Otherwise the lock was held until its lease ended, with an unknown outcome."""
    with suppress(type(error)):
        fail_with(world.guard(), error)
    name = type.__dict__["__name__"].__get__(type(error))
    assert (FAILED, name) == (world.lock().status, world.lock().failure.error)


class _Closed(ExceptionGroup):
    @property
    def exceptions(self) -> NoReturn:
        raise ValueError


def test_the_record_of_a_task_group_s_error_names_what_its_tasks_raised(world: World) -> None:
    """A person has to know it. The lock is held, because another task may have had an effect."""
    inner = _Closed("inner", [_Speechless(), _Faceless("odd")])

    async def parts() -> None:
        async with world.guard().begin(KEY, ORDER), asyncio.TaskGroup() as tasks:
            tasks.create_task(_raise(RetryLater("The provider is down.")))
            tasks.create_task(_raise(inner))

    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        asyncio.run(parts())
    named = "RetryLater: The provider is down.; _Speechless: The error has no text (AttributeError).; "
    cause = f"unhandled errors in a TaskGroup (2 sub-exceptions): {named}_Faceless: odd"
    assert (FAILED, Failure("ExceptionGroup", cause)) == (world.lock().status, world.lock().failure)


async def _raise(error: Exception) -> NoReturn:
    raise error


def test_the_errors_of_a_group_have_no_more_room_than_one(world: World) -> None:
    """Also where groups in groups hold more of them than there are atoms."""
    group = ExceptionGroup("0", [OSError("\udce9" * CAUSE_LIMIT), ValueError()])
    for depth in range(200):
        group = ExceptionGroup(str(depth), [group, group])
    with suppress(ExceptionGroup):
        fail_with(world.guard(), group)
    assert CAUSE_LIMIT == len(world.lock().failure.cause)
    assert world.lock().failure.cause.startswith("199 (2 sub-exceptions): OSError: ")


def test_the_text_of_an_error_is_as_long_as_a_workflow_can_replay(world: World) -> None:
    """Also where half characters take six in its record."""
    with suppress(OSError):
        fail_with(world.guard(), OSError("\udce9" * CAUSE_LIMIT))
    assert CAUSE_LIMIT == len(world.lock().failure.cause)


def test_a_result_is_in_the_error_also_if_what_serialize_raises_has_no_text(world: World) -> None:
    """The caller got the error's own error, and the result was lost."""

    def serialize(_result: object) -> NoReturn:
        raise _Speechless

    with pytest.raises(NotRecorded) as unwritten:
        complete(world.guard(serialize=serialize))
    assert (DONE, FAILED) == (unwritten.value.result, world.lock().status)


def test_an_error_without_a_class_is_held(world: World) -> None:
    """It fails when it is asked for its class, as `isinstance` does."""
    with suppress(_Faceless), world.guard().begin(KEY, ORDER):
        raise _Faceless
    assert (FAILED, "_Faceless") == (world.lock().status, world.lock().failure.error)


def test_a_final_error_that_cannot_be_told_is_held(world: World) -> None:
    """Its class raises when it is asked for its instances."""

    class Moody(type):
        def __instancecheck__(cls, _error: object) -> bool:
            raise ValueError

    class Declined(Exception, metaclass=Moody):
        pass

    with suppress(KeyError):
        fail_with(world.guard(final=(Declined,)), KeyError("x"))
    lock = world.lock()
    assert (FAILED, "KeyError", True) == (lock.status, lock.failure.error, lock.open_status is not None)


def test_a_value_that_holds_itself_is_refused(world: World) -> None:
    """As payload, as an argument, and as a result, which is held for a person."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidPayload, match="holds itself"):
        complete(world.guard(), payload=endless)
    with pytest.raises(InvalidPayload, match="holds itself"):
        world.guard().idempotent()(len)(endless)
    assert [] == world.calls


@pytest.mark.parametrize("seconds", ["5", float("nan")])
def test_a_lease_is_extended_by_a_number(world: World, seconds: Any) -> None:
    """Anything else ended in an error of Python, and changes nothing."""
    with world.guard().begin("acme/charge/o-12", {}) as run:
        before = run.lease_until
        with pytest.raises(InvalidSetting, match="extend"):
            run.extend(seconds)
        assert before == run.lease_until
        run.complete(DONE)


def _charge(order: dict[str, Any]) -> dict[str, Any]:
    return order


class _Charger:
    async def __call__(self, order: str) -> dict[str, Any]:
        return {"charged": order}


@pytest.mark.parametrize("nameless", [functools.partial(_charge, order={}), lambda order: order, _Charger()])
def test_what_has_no_name_is_refused_without_one(world: World, nameless: Any) -> None:
    """Two lambdas of a module have the same name, so each would get the other's results."""
    with pytest.raises(InvalidSetting, match="name"):
        world.guard().idempotent()(nameless)
    with pytest.raises(MissingKey, match="Nothing ran"):
        world.guard().idempotent(name="charge", lock_token="order.id")(functools.partial(_charge, order={}))()


def test_an_object_whose_call_is_async_is_awaited(world: World) -> None:
    """Its coroutine was taken for the result, so the work did not run and was held as done."""
    charge = world.guard().idempotent(name="charge")(_Charger())
    assert [{"charged": "o-1"}] * 2 == [asyncio.run(charge("o-1")), asyncio.run(charge("o-1"))]
