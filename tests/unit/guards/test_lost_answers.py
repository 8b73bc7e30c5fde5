"""Guards whose lease ends, and writes whose answer is lost."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from steponce import (
    AlreadyInProgress,
    CompletionRefused,
    LockLost,
    NotRecorded,
    RequestFailed,
    RetryLater,
    updates,
)
from steponce.aws import times
from steponce.aws.clients import CONFIG
from steponce.errors import Unavailable
from steponce.locks import claim
from steponce.updates import mine
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, OUTCOME_UNKNOWN, RELEASED
from tests.fakes.errors import client_error
from tests.patience import PATIENCE_SECONDS
from tests.rules.documents import ROOT
from tests.unit.guards.charging import DONE, ORDER, complete, fail_with
from tests.unit.guards.world import KEY, World
from tests.unit.shared_clients import shared
from tests.unit.updates.world import cancelled


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
            if "lockedBy" in arguments.get("ConditionExpression", ""):
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


def test_who_stops_at_the_fence_once_its_lease_is_over_may_be_taken_over(world: World) -> None:
    """As who has died. The request waited for a person, though the next call was to run it."""
    guard = world.guard(when_outcome_unknown="take-over")
    with pytest.raises(LockLost), guard.begin(KEY, ORDER, lease_seconds=9) as run:
        world.pass_by(10)
        run.check()
    assert INPROGRESS == world.lock().status
    assert DONE == complete(guard)


@pytest.mark.parametrize(
    ("options", "status"), [({"final": (LockLost,)}, FAILED), ({"releases": (LockLost,)}, RELEASED)]
)
def test_an_option_decides_about_who_stops_at_the_fence(world: World, options: Any, status: str) -> None:
    """It names the error."""
    guard = world.guard(when_outcome_unknown="take-over", **options)
    with pytest.raises(LockLost), guard.begin(KEY, ORDER, lease_seconds=9) as run:
        world.pass_by(10)
        run.check()
    assert status == world.lock().status


def test_who_extends_after_its_fence_and_fails_is_held(world: World) -> None:
    """It may work again, and the new lease would keep others away from a failure."""
    with (
        pytest.raises(LockLost),
        world.guard(when_outcome_unknown="take-over").begin(KEY, ORDER, lease_seconds=9) as run,
    ):
        world.pass_by(10)
        try:
            run.check()
        except LockLost:
            run.extend()
            raise
    assert FAILED == world.lock().status


@pytest.mark.parametrize("seconds", [0, 10])
def test_who_stops_at_a_fence_of_another_lock_is_held(world: World, seconds: float) -> None:
    """It may have had an effect."""
    guard = world.guard(when_outcome_unknown="take-over")
    with pytest.raises(LockLost), guard.begin(KEY, ORDER, lease_seconds=9):
        world.pass_by(seconds)
        raise LockLost("of another key")
    assert FAILED == world.lock().status


@pytest.mark.parametrize(("released", "which"), [(False, 1), (False, 2), (True, 1), (True, 2), (True, 3)])
def test_a_write_whose_answer_was_lost_is_repeated(world: World, released: bool, which: int) -> None:
    """As boto3 does: the second time it meets its own record."""
    if released:
        fail_with(world.guard(), RetryLater())
    made = 0

    def twice(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        nonlocal made
        made += 1
        if made == which:
            forward()
        return forward()

    world.fault = twice
    assert DONE == complete(world.guard())
    assert (1 + released, '{"chargeId":"ch_1"}') == (world.lock().attempt, world.lock().result)


def test_a_released_record_that_is_deleted_meanwhile_is_written_anew(world: World) -> None:
    """Between the refused write and the second one."""
    fail_with(world.guard(), RetryLater())

    def delete(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        if "UpdateExpression" in arguments:
            world.fault = None
            shared("dynamodb").delete_item(TableName="locks", Key=arguments["Key"])
        return forward()

    world.fault = delete
    assert DONE == complete(world.guard())
    assert (1, COMPLETED) == (world.lock().attempt, world.lock().status)


def test_a_takeover_whose_answer_was_lost_is_repeated(world: World) -> None:
    """The attempt is raised by one."""
    with pytest.raises(CompletionRefused), world.guard().begin(KEY, ORDER, lease_seconds=9) as late:
        world.pass_by(10)

        def twice(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
            if ":deadLease" in arguments.get("ExpressionAttributeValues", {}):
                forward()
            return forward()

        world.fault = twice
        with world.guard(when_outcome_unknown="take-over").begin(KEY, ORDER) as run:
            assert 2 == run.attempt == world.lock().attempt
            run.complete(DONE)
        late.complete("late")


@pytest.mark.parametrize("unknown", ["hold", "take-over"])
def test_a_takeover_without_an_answer_ends_its_lease(world: World, unknown: Any) -> None:
    """
    It took effect. The next call waited until the lease of nobody's work ended.

    The owner before may have had an effect, so who holds such locks does not run the work.
    """
    guard = world.guard(when_outcome_unknown="take-over")
    with pytest.raises(CompletionRefused), guard.begin(KEY, ORDER, lease_seconds=9) as late:
        world.pass_by(10)

        def lose(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
            if ":deadLease" in arguments.get("ExpressionAttributeValues", {}):
                world.fault = None
                forward()
                raise ReadTimeoutError(endpoint_url="https://dynamodb")
            return forward()

        world.fault = lose
        with pytest.raises(Unavailable):
            complete(guard)
        world.pass_by(1)
        if unknown == "take-over":
            assert DONE == complete(guard)
        else:
            with pytest.raises(RequestFailed, match=OUTCOME_UNKNOWN):
                complete(world.guard())
        late.complete("late")


@pytest.mark.parametrize("released", [False, True])
def test_a_late_copy_of_an_acquire_changes_nothing(world: World, released: bool) -> None:
    """It arrives after its own call has released the lock, or has finished."""
    if released:
        fail_with(world.guard(), RetryLater())
    copies: list[Callable[[], Any]] = []

    def keep(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        copies.append(forward)
        return forward()

    world.fault = keep
    fail_with(world.guard(), RetryLater())
    before = world.item()
    for copy in copies[: 1 + released]:
        with pytest.raises(ClientError, match="ConditionalCheckFailed"):
            copy()
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


def test_a_result_that_no_try_has_written_waits_for_a_person(world: World) -> None:
    """Also where unknown outcomes are taken over: the work is done, and must not run again."""

    def die(*_: Any) -> Any:
        world.fault = None
        raise ConnectTimeoutError(endpoint_url="https://dynamodb")

    guard = world.guard(when_outcome_unknown="take-over")
    with pytest.raises(NotRecorded), guard.begin(KEY, ORDER, lease_seconds=9) as run:
        world.fault = die
        run.complete(DONE)
    world.pass_by(10)
    with pytest.raises(RequestFailed) as held:
        complete(guard)
    assert "NotRecorded" == held.value.error


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


def test_a_renewed_lease_goes_on_while_the_work_runs(world: World) -> None:
    """A thread extends it."""
    extended = threading.Event()

    def watch(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        answer = forward()
        if "SET leaseUntil" in arguments.get("UpdateExpression", ""):
            extended.set()
        return answer

    world.fault = watch
    with world.guard().begin(KEY, ORDER, lease_seconds=0.3, renew=True) as run:
        assert extended.wait(PATIENCE_SECONDS)
        run.complete(DONE)
    assert [] == [thread for thread in threading.enumerate() if thread.name == "steponce-lease"]


def test_a_renewed_lease_of_the_page_s_length_outlasts_a_write_that_hangs() -> None:
    """It is extended after a third of it, and the second try has to come before its end."""
    page = (ROOT / "docs" / "guards.md").read_text(encoding="utf-8")
    found = re.search(r"a renewed lease at least (\d+) seconds: .* tried again after (\d+) seconds", page)
    assert found is not None
    lease, hangs = map(int, found.groups())

    assert hangs == CONFIG.read_timeout
    assert lease / 3 + hangs + 2 <= lease


@pytest.mark.parametrize("seconds", [1e11, 1e300, float("inf")])
def test_a_lease_longer_than_a_thread_can_wait_is_renewed(world: World, seconds: float) -> None:
    """Its thread ended at once, with a stack trace. Python waits for 292 years at most."""
    with world.guard().begin(KEY, ORDER, lease_seconds=seconds, renew=True) as run:
        (renewing,) = (thread for thread in threading.enumerate() if thread.name == "steponce-lease")
        renewing.join(0.05)
        assert renewing.is_alive()
        run.complete(DONE)
    assert not renewing.is_alive()


@pytest.mark.parametrize(("finalizing", "status"), [(False, FAILED), (True, INPROGRESS)])
def test_a_coroutine_that_is_closed_without_a_loop_is_held_for_a_person(
    world: World, monkeypatch: pytest.MonkeyPatch, finalizing: bool, status: str
) -> None:
    """
    Its task was pending as the loop was closed. Nothing was recorded, and the lease went on.

    An interpreter that ends cannot call AWS: Python 3.13 hung, or crashed. There the lock goes by its lease.
    """

    async def work(begun: asyncio.Event) -> None:
        async with world.guard().begin(KEY, ORDER, lease_seconds=0.3, renew=True):
            begun.set()
            await asyncio.Event().wait()

    loop, begun = asyncio.new_event_loop(), asyncio.Event()
    working = work(begun)
    task: Any = loop.create_task(working)
    loop.run_until_complete(begun.wait())
    loop.close()
    task._log_destroy_pending = False
    monkeypatch.setattr(sys, "is_finalizing", lambda: finalizing)
    working.close()

    assert status == world.lock().status
    del working, task
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "steponce-lease":
            thread.join(PATIENCE_SECONDS)
    assert [] == [thread for thread in threading.enumerate() if thread.name == "steponce-lease"]


def test_a_generator_that_an_ending_interpreter_closes_writes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have a block open. Python 3.13 hung there, or crashed."""

    def work() -> Generator[None]:
        with world.guard().begin(KEY, ORDER):
            yield

    working = work()
    next(working)
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    working.close()
    assert INPROGRESS == world.lock().status


def no_answer_once(world: World) -> Callable[..., Any]:
    """A fault of one write."""

    def die(*_: Any) -> Any:
        world.fault = None
        raise ConnectTimeoutError(endpoint_url="https://dynamodb")

    return die


def test_a_run_does_not_begin_in_a_forked_child(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two children had one callId, so each took the other's lock for its own."""
    run = world.guard().begin(KEY, ORDER)
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    with pytest.raises(RuntimeError, match="begins once"), run:
        pass


@pytest.mark.parametrize("error", [None, SystemExit(0), RetryLater("not now"), ZeroDivisionError()])
def test_a_forked_child_that_leaves_a_block_writes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, error: BaseException | None
) -> None:
    """It failed or released the request of its parent, which still worked."""
    run = world.guard().begin(KEY, ORDER).__enter__()
    world.calls.clear()
    with monkeypatch.context() as child:
        pid = os.getpid() + 1
        child.setattr(os, "getpid", lambda: pid)
        run.__exit__(type(error) if error else None, error, None)
        assert [] == world.calls
    run.complete(DONE)
    assert COMPLETED == world.lock().status


def test_a_forked_child_that_goes_on_in_place_of_its_parent_completes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a daemon does, whose parent has ended. If its result is not written, the record says so."""
    pid = os.getpid() + 1
    for key, answers in (("written", True), ("unwritten", False)):
        run = world.guard().begin(key, ORDER)
        with monkeypatch.context() as child, suppress(NotRecorded), run:
            child.setattr(os, "getpid", lambda: pid)
            world.fault = None if answers else no_answer_once(world)
            run.complete(DONE)
        assert (COMPLETED if answers else FAILED) == world.lock(key).status


def test_a_run_does_not_begin_in_two_threads(world: World) -> None:
    """Each took the other's lock for its own, and the work ran twice."""
    refused: list[RuntimeError] = []

    def second() -> None:
        try:
            with run:
                pytest.fail("the block was entered")
        except RuntimeError as error:
            refused.append(error)

    def slow(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        world.fault = None
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(PATIENCE_SECONDS)
        return forward()

    run, world.fault = world.guard().begin(KEY, ORDER), slow
    with run:
        run.complete(DONE)
    assert ["A run begins once. Call guard.begin again."] == list(map(str, refused))


def test_a_run_that_was_refused_may_be_tried_again(world: World) -> None:
    """As while it waits for another call."""
    run = world.guard().begin(KEY, ORDER)
    with world.guard().begin(KEY, ORDER) as first:
        for _ in range(2):
            with pytest.raises(AlreadyInProgress), run:
                pytest.fail("the block was entered")
        first.complete(DONE)
    with run:
        assert run.replayed


def test_a_run_that_is_entered_without_a_loop_may_be_tried_again(world: World) -> None:
    """Nothing has begun: the coroutine has no loop to wait in."""
    run = world.guard().begin(KEY, ORDER)
    with pytest.raises(RuntimeError, match="no running event loop"):
        run.__aenter__().send(None)
    with run:
        run.complete(DONE)
    assert COMPLETED == world.lock().status


def test_a_lease_is_not_extended_for_a_call_that_is_gone(world: World) -> None:
    """A coroutine may be closed without a running loop. Its lease went on with the process."""
    run = world.guard().begin(KEY, ORDER, lease_seconds=0.3, renew=True)
    run.__enter__()
    (renewing,) = (thread for thread in threading.enumerate() if thread.name == "steponce-lease")
    del run
    gc.collect()

    renewing.join(PATIENCE_SECONDS)
    assert not renewing.is_alive()


@pytest.mark.parametrize("unknown", ["hold", "take-over"])
@pytest.mark.parametrize("before", ["none", "released", "dead"])
def test_a_begin_that_takes_longer_than_its_lease_has_a_whole_one(
    world: World, before: str, unknown: Any
) -> None:
    """DynamoDB did not answer boto3's first tries. Another call took the lock as the work began."""
    if before == "released":
        fail_with(world.guard(), RetryLater())
    if before == "dead":
        world.guard().begin(KEY, ORDER, lease_seconds=9).__enter__()
        world.pass_by(10)

    def slow(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        if before == "none" or "UpdateExpression" in arguments:
            world.fault = None
            world.pass_by(61)
        return forward()

    world.fault = slow
    with world.guard(when_outcome_unknown="take-over").begin(KEY, ORDER, lease_seconds=60) as run:
        with pytest.raises(AlreadyInProgress):
            complete(world.guard(when_outcome_unknown=unknown))
        world.pass_by(59)
        run.check()
        run.complete(DONE)
    assert COMPLETED == world.lock().status


@pytest.mark.parametrize("before", ["none", "dead"])
def test_a_begin_whose_new_lease_is_over_as_well_does_not_begin(world: World, before: str) -> None:
    """DynamoDB was slow for longer. Another call took the lock as the work began."""
    if before == "dead":
        world.guard().begin(KEY, ORDER, lease_seconds=9).__enter__()
        world.pass_by(10)

    def slow(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        world.pass_by(61)
        return forward()

    world.fault = slow
    again = world.guard(when_outcome_unknown="take-over")
    with pytest.raises(Unavailable, match="Nothing ran"), again.begin(KEY, ORDER, lease_seconds=60):
        pytest.fail("the block was entered")
    world.fault = None
    world.pass_by(61)
    assert (RELEASED if before == "none" else INPROGRESS) == world.lock().status
    assert DONE == complete(again)


def test_a_late_begin_whose_lock_is_another_s_does_not_begin(world: World) -> None:
    """A person has released it meanwhile, though its lease was not over."""

    def slow(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        world.fault = None
        forward()
        world.pass_by(31)
        world.put(callId="another")

    world.fault = slow
    with pytest.raises(Unavailable, match="Nothing ran"), world.guard().begin(KEY, ORDER, lease_seconds=60):
        pytest.fail("the block was entered")
    assert ("another", INPROGRESS) == (world.lock().call_id, world.lock().status)


def test_a_begin_whose_new_lease_is_refused_gives_the_lock_back(world: World) -> None:
    """It kept the lock until the lease ended, and a person was asked about work that had not begun."""

    def slow(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        world.fault = refuse
        forward()
        world.pass_by(31)

    def refuse(_arguments: dict[str, Any], _forward: Callable[[], Any]) -> Any:
        world.fault = None
        raise client_error("ExpiredTokenException")

    world.fault = slow
    with pytest.raises(ClientError), world.guard().begin(KEY, ORDER, lease_seconds=60):
        pytest.fail("the block was entered")
    assert RELEASED == world.lock().status


def test_a_begin_that_boto3_has_sent_twice_gives_the_lock_back(world: World) -> None:
    """The refusal is of the second send. The first one took the lock, and its answer was lost."""

    def sent_twice(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        world.fault = None
        forward()
        error = client_error("ExpiredTokenException")
        error.response["ResponseMetadata"]["RetryAttempts"] = 1
        raise error

    world.fault = sent_twice
    with pytest.raises(ClientError), world.guard().begin(KEY, ORDER, lease_seconds=60):
        pytest.fail("the block was entered")
    assert RELEASED == world.lock().status


def test_a_begin_that_has_lost_its_lock_meanwhile_does_not_begin(world: World) -> None:
    """It took so long that another call has taken the lock over."""

    def slow(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        world.fault = None
        forward()
        world.pass_by(61)
        complete(world.guard(when_outcome_unknown="take-over"))

    world.fault = slow
    with pytest.raises(Unavailable, match="Nothing ran"), world.guard().begin(KEY, ORDER, lease_seconds=60):
        pytest.fail("the block was entered")
    assert (2, COMPLETED) == (world.lock().attempt, world.lock().status)


WRITTEN: dict[str, Callable[[World], str]] = {
    "complete": lambda world: complete(world.guard()) and COMPLETED,
    "release": lambda world: fail_with(world.guard(), RetryLater()) or RELEASED,
    "hold": lambda world: fail_with(world.guard(), ZeroDivisionError()) or FAILED,
}


@pytest.mark.parametrize("outcome", WRITTEN)
def test_a_write_that_meets_a_transaction_is_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    """Another attempt may be at the record, with `update_if_mine`. boto3 does not try again then."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    tries = 0

    def conflict(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        nonlocal tries
        tries += 1
        if tries % 3:
            raise client_error("TransactionConflictException")
        return forward()

    world.fault = conflict
    assert WRITTEN[outcome](world) == world.lock().status
    assert (6, 4) == (tries, len(slept))


def test_a_record_that_stays_in_transactions_is_no_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing ran."""
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)

    def conflict(*_call: Any) -> Any:
        raise client_error("TransactionConflictException")

    world.fault = conflict
    with pytest.raises(Unavailable, match="TransactionConflictException"):
        complete(world.guard())


def unreachable_once(world: World) -> Callable[[dict[str, Any], Callable[[], Any]], Any]:
    """The table does not answer to one call."""

    def fault(_arguments: dict[str, Any], _forward: Callable[[], Any]) -> Any:
        world.fault = None
        raise ConnectTimeoutError(endpoint_url="https://dynamodb")

    return fault


def unchecked(world: World, run: Any) -> None:
    """The table does not answer to a check."""
    world.fault = unreachable_once(world)
    run.check()


def unwritten(_world: World, run: Any) -> None:
    """Others are at the record in every try of an update."""
    busy: Any = SimpleNamespace(
        transact_write_items=lambda **_: cancelled("None", "TransactionConflict")(busy)
    )
    updates.update_if_mine(run, "orders", {"id": "1"}, {"a": 1}, dynamodb=busy)


@pytest.mark.parametrize("do_nothing", [unchecked, unwritten])
def test_a_call_that_has_done_nothing_does_not_release_what_it_has_taken_over(
    world: World, do_nothing: Callable[[World, Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call before may have had an effect. The next call's own terms decide."""
    monkeypatch.setattr(mine.time, "sleep", lambda _: None)
    world.guard().begin(KEY, ORDER, lease_seconds=9).__enter__()  # its process dies
    world.pass_by(10)
    guard = world.guard(when_outcome_unknown="take-over")
    with pytest.raises(RetryLater), guard.begin(KEY, ORDER) as run:
        do_nothing(world, run)
    assert world.lock().lease_until == world.lock().expected_completion == times.now_text()
    world.pass_by(1)
    with pytest.raises(RequestFailed) as held:
        complete(world.guard())
    assert OUTCOME_UNKNOWN == held.value.error


def test_work_that_says_that_nothing_has_happened_releases_what_it_has_taken_over(world: World) -> None:
    """Its own RetryLater, after a check without an answer: it has asked the provider."""
    world.guard().begin(KEY, ORDER, lease_seconds=9).__enter__()  # its process dies
    world.pass_by(10)
    with (
        pytest.raises(RetryLater),
        world.guard(when_outcome_unknown="take-over").begin(KEY, ORDER) as run,
    ):
        with pytest.raises(RetryLater):
            unchecked(world, run)
        raise RetryLater
    assert RELEASED == world.lock().status


def test_a_check_after_an_effect_does_not_release_the_lock(world: World) -> None:
    """The table does not answer to the second one. The next call would repeat the first effect."""
    with pytest.raises(Unavailable), world.guard().begin(KEY, ORDER) as run:
        run.check()
        world.fault = unreachable_once(world)
        run.check()
    assert (FAILED, "Unavailable") == (world.lock().status, world.lock().failure.error)


def test_other_calls_do_not_make_a_check_forget_the_one_that_passed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy process guards thousands of calls while one of them is between its two effects."""
    monkeypatch.setattr(claim, "REMEMBERED", 2)
    with pytest.raises(Unavailable), world.guard().begin(KEY, ORDER) as run:
        run.check()
        for number in range(3):
            with world.guard().begin(f"{KEY}/{number}", ORDER) as other:
                other.check()
                other.complete(DONE)
        world.fault = unreachable_once(world)
        run.check()
    assert (FAILED, "Unavailable") == (world.lock().status, world.lock().failure.error)


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_block_that_is_tried_again_has_the_lease_of_its_record(world: World, taken_over: bool) -> None:
    """A first try has taken the lock without an answer. Another call worked beside the second try's block."""
    guard = world.guard(when_outcome_unknown="take-over", lease_seconds=60)
    if taken_over:
        guard.begin(KEY, ORDER).__enter__()  # its process dies
        world.pass_by(61)
    run = guard.begin(KEY, ORDER)

    def unheard(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        if ":deadLease" not in arguments.get("ExpressionAttributeValues", {}) and taken_over:
            return forward()  # the refused PutItem; the end of the lease after the take-over
        if taken_over or "Item" in arguments:
            forward()
        raise ReadTimeoutError(endpoint_url="https://dynamodb")

    world.fault = unheard
    with pytest.raises(Unavailable), run:
        pytest.fail("the block was entered")
    world.fault = None
    world.pass_by(50)
    with run:
        assert run.lease_until == world.lock().lease_until
        world.pass_by(31)
        with pytest.raises(AlreadyInProgress):
            complete(guard)
        run.complete(DONE)
    assert COMPLETED == world.lock().status


def test_a_block_that_is_tried_again_gives_back_its_second_lock(world: World) -> None:
    """The lock of its first try was given back. The attempt of the second one is unknown, and is another."""
    run = world.guard(lease_seconds=60).begin(KEY, ORDER)

    def slow(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        world.fault = unreachable_once(world)  # the extension
        answer = forward()
        world.pass_by(50)
        return answer

    def unheard(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        answer = forward()
        if "Item" in arguments:
            return answer
        world.fault = None
        raise ReadTimeoutError(endpoint_url="https://dynamodb")

    for attempt, fault in enumerate([slow, unheard], 1):
        world.fault = fault
        with pytest.raises(Unavailable), run:
            pytest.fail("the block was entered")
        assert (attempt, RELEASED) == (world.lock().attempt, world.lock().status)


def test_a_block_that_is_tried_again_does_not_release_what_it_has_taken_over(world: World) -> None:
    """What became of the first owner is unknown, and a call that holds such a lock would work."""
    guard = world.guard(when_outcome_unknown="take-over", lease_seconds=60)
    guard.begin(KEY, ORDER).__enter__()  # its process dies
    world.pass_by(61)
    run = guard.begin(KEY, ORDER)
    unmade = iter([False, True])

    def unheard(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        if "Item" in arguments:
            return forward()
        if not next(unmade):
            forward()
        raise ReadTimeoutError(endpoint_url="https://dynamodb")

    world.fault = unheard  # the take-over is made, and the end of its lease is not
    with pytest.raises(Unavailable), run:
        pytest.fail("the block was entered")
    world.pass_by(50)
    unmade = iter([True, False])
    with pytest.raises(Unavailable), run:  # nor is the extension
        pytest.fail("the block was entered")
    assert INPROGRESS == world.lock().status
