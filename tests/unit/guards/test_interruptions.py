"""A guarded call that is interrupted: cancelled again and again, by a signal, by the end of the program."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ConnectTimeoutError

from steponce import AlreadyInProgress, Guard, NotRecorded, RequestFailed, RetryLater
from steponce.guards import threads as guard_threads
from steponce.guards.holder import Holder
from steponce.guards.renewer import Renewer
from steponce.guards.threads import in_thread
from steponce.locks.record import Lock
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, OUTCOME_UNKNOWN, RELEASED
from tests.patience import PATIENCE_SECONDS, turn
from tests.unit.guards.charging import DONE, ORDER, complete, fail_with
from tests.unit.guards.world import KEY, World


class Held:
    """Holds back one write of the world, the one of this number, until `go_on` is set. Then it may fail."""

    def __init__(self, world: World, number: int, error: Exception | None = None) -> None:
        self._world = world
        self._left = number
        self._error = error
        self._loop = asyncio.get_running_loop()
        self.sent = asyncio.Event()
        self.go_on = threading.Event()
        world.fault = self

    def __call__(self, _arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        self._left -= 1
        if self._left == 0:
            self._world.fault = None
            self._loop.call_soon_threadsafe(self.sent.set)
            assert self.go_on.wait(PATIENCE_SECONDS)
            if self._error is not None:
                raise self._error
        return forward()


class Taking:
    """How a call takes its lock: a free one, or that of a dead owner whose outcome is unknown."""

    def __init__(self, world: World, over: bool) -> None:
        self._world = world
        self._over = over
        self.write = 2 if over else 1
        """The number of the write that takes it."""
        if over:
            world.guard().begin(KEY, ORDER, lease_seconds=9).__enter__()
            world.pass_by(10)

    def guard(self, **options: Any) -> Guard:
        """The guard of the call."""
        return self._world.guard(when_outcome_unknown="take-over", **options)

    def expect_given_back(self) -> None:
        """Nobody waits for the lock, and what was unknown before is not free for the next call."""
        if not self._over:
            assert RELEASED == self._world.lock().status
            return
        assert INPROGRESS == self._world.lock().status
        self._world.pass_by(1)  # its lease ended just now
        with pytest.raises(RequestFailed) as held:
            complete(self._world.guard())
        assert OUTCOME_UNKNOWN == held.value.error


@pytest.fixture(params=[False, True], ids=["free", "taken over"])
def taking(world: World, request: pytest.FixtureRequest) -> Taking:
    """Both ways."""
    return Taking(world, request.param)


async def cancelled_twice(
    world: World, work: Callable[[], Awaitable[object]], number: int, error: Exception | None = None
) -> asyncio.CancelledError:
    """Cancel a task twice while one of its writes is under way, as anyio does until the task ends."""
    held = Held(world, number, error)
    task = asyncio.ensure_future(work())
    await held.sent.wait()
    for _ in range(2):
        task.cancel()
        await turn()
        await turn()  # the task sees each of them
    held.go_on.set()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task
    return cancelled.value


def test_a_task_cancelled_twice_while_it_begins_gives_the_lock_back(world: World, taking: Taking) -> None:
    """Otherwise nobody holds it, and everybody waits until its lease ends."""

    async def work() -> None:
        async with taking.guard().begin(KEY, ORDER):
            pytest.fail("the block was entered")

    asyncio.run(cancelled_twice(world, work, taking.write))
    taking.expect_given_back()


def test_a_task_cancelled_twice_while_it_completes_keeps_its_result(world: World) -> None:
    """Its record would say that the result is lost, while the write of the result is under way."""

    @world.guard().idempotent(lock_token="key", name="")
    async def charge(key: str) -> dict[str, str]:
        return DONE

    asyncio.run(cancelled_twice(world, lambda: charge(KEY), 2))
    assert COMPLETED == world.lock().status


def test_a_cancelled_task_whose_result_is_not_written_has_it_in_its_error(world: World) -> None:
    """Nobody had it, while its record said to complete the lock with it."""

    @world.guard().idempotent(lock_token="key", name="")
    async def charge(key: str) -> dict[str, str]:
        return DONE

    no_answer = ConnectTimeoutError(endpoint_url="https://dynamodb")
    cancelled = asyncio.run(cancelled_twice(world, lambda: charge(KEY), 2, no_answer))
    unwritten = cancelled.__cause__
    assert isinstance(unwritten, NotRecorded)
    assert DONE == unwritten.result
    failure = world.lock().failure
    assert failure is not None
    assert "NotRecorded" == failure.error


def test_a_task_cancelled_at_each_step_of_its_end_has_its_result_in_its_error(world: World) -> None:
    """As by anyio: while its result is written, and while the record gets the failure."""

    @world.guard().idempotent(lock_token="key", name="")
    async def charge(key: str) -> dict[str, str]:
        return DONE

    async def work() -> asyncio.CancelledError:
        held = Held(world, 2, ConnectTimeoutError(endpoint_url="https://dynamodb"))
        task = asyncio.ensure_future(charge(KEY))
        await held.sent.wait()
        task.cancel()
        await turn()
        held.go_on.set()
        while not task.done():
            task.cancel()
            await turn()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        return cancelled.value

    error: BaseException | None = asyncio.run(work())
    results = []
    while error is not None:
        results.append(getattr(error, "result", None))
        error = error.__cause__ or error.__context__
    assert DONE in results


def test_who_is_interrupted_right_after_the_write_may_complete_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after any other try whose end is not known."""
    finished, left = Holder.finished, [1]

    def interrupted(holder: Holder, text: str) -> Lock:
        if left and left.pop():
            raise KeyboardInterrupt
        return finished(holder, text)

    monkeypatch.setattr(Holder, "finished", interrupted)
    with world.guard().begin(KEY, ORDER) as run:
        with pytest.raises(KeyboardInterrupt):
            run.complete(DONE)
        run.complete(DONE)
    assert COMPLETED == world.lock().status


def test_a_task_that_begins_as_the_program_ends_gives_the_lock_back(world: World) -> None:
    """The end of asyncio.run cancels all tasks, also those that wait for a thread."""

    async def work() -> None:
        async with world.guard().begin(KEY, ORDER):
            pytest.fail("the block was entered")

    async def go_on_after_the_end(held: Held) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await turn()
            await turn()  # the other task is cancelled, too
            held.go_on.set()

    async def end() -> Any:
        held = Held(world, 1)
        tasks = [asyncio.ensure_future(work()), asyncio.ensure_future(go_on_after_the_end(held))]
        await held.sent.wait()
        return tasks

    asyncio.run(end())
    assert RELEASED == world.lock().status


class _TimeLimit(Exception):
    """What a handler of SIGALRM raises."""


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit, _TimeLimit])
def test_a_signal_while_the_lock_is_taken_gives_it_back(
    world: World, taking: Taking, signal: type[BaseException]
) -> None:
    """The write has taken effect, but its work never begins."""
    left = taking.write

    def interrupted(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        nonlocal left
        left -= 1
        answer = forward()
        if left:
            return answer
        world.fault = None
        raise signal

    world.fault = interrupted
    with pytest.raises(signal), taking.guard().begin(KEY, ORDER):
        pytest.fail("the block was entered")
    taking.expect_given_back()


def test_a_free_lock_is_given_back_after_a_take_over_that_was_refused(world: World) -> None:
    """Another call was faster, and has released the lock, so nothing is unknown any more."""
    taking = Taking(world, over=True)

    def overtaken(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        if ":deadLease" in arguments.get("ExpressionAttributeValues", {}):
            world.fault = None
            fail_with(taking.guard(), RetryLater())
            world.fault = interrupted
        return forward()

    def interrupted(arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
        answer = forward()
        if ":before" in arguments.get("ExpressionAttributeValues", {}):
            world.fault = None
            raise KeyboardInterrupt
        return answer

    world.fault = overtaken
    with pytest.raises(KeyboardInterrupt), taking.guard().begin(KEY, ORDER):
        pytest.fail("the block was entered")
    assert (3, RELEASED) == (world.lock().attempt, world.lock().status)


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit, _TimeLimit])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("part", ["__init__", "start"])
def test_a_signal_while_the_renewing_begins_gives_the_lock_back(
    taking: Taking, monkeypatch: pytest.MonkeyPatch, signal: type[BaseException], is_async: bool, part: str
) -> None:
    """A thread that goes on would extend the lease for as long as the lock is held."""
    renewers: list[Renewer] = []

    def interrupted(self: Renewer, *arguments: Any) -> None:
        method(self, *arguments)
        renewers.append(self)
        raise signal

    async def enter() -> None:
        async with taking.guard(renew=True).begin(KEY, ORDER):
            pytest.fail("the block was entered")

    method = getattr(Renewer, part)
    monkeypatch.setattr(Renewer, part, interrupted)
    with pytest.raises(signal):
        if is_async:
            asyncio.run(enter())
        with taking.guard(renew=True).begin(KEY, ORDER):
            pytest.fail("the block was entered")
    assert not renewers[0]._thread.is_alive()
    taking.expect_given_back()


def test_without_a_thread_to_renew_the_lease_the_lock_is_given_back(
    taking: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may have no more threads, or be on its way out."""

    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError), taking.guard(renew=True).begin(KEY, ORDER):
        pytest.fail("the block was entered")
    taking.expect_given_back()


@pytest.mark.parametrize("what", ["loop", "coroutine", "coroutine after it"])
def test_a_block_that_is_left_while_its_lock_is_taken_gives_it_back(
    world: World, taking: Taking, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loop was closed, or its coroutine, and the thread that takes the lock can tell nobody."""

    async def work() -> None:
        async with taking.guard().begin(KEY, ORDER):
            pytest.fail("the block was entered")

    async def begin() -> tuple[Held, Any]:
        held = Held(world, taking.write)
        task = asyncio.ensure_future(working)
        await held.sent.wait()
        return held, task

    loop, executor, working = asyncio.new_event_loop(), ThreadPoolExecutor(1), work()
    monkeypatch.setattr(guard_threads, "own_threads", lambda: executor)
    held, task = loop.run_until_complete(begin())
    task._log_destroy_pending = False
    if what == "loop":
        loop.close()
    elif what == "coroutine":
        working.close()
    held.go_on.set()
    executor.shutdown()  # waits for the thread
    working.close()
    loop.close()
    taking.expect_given_back()


def test_a_block_that_is_tried_again_waits_for_its_lock(world: World) -> None:
    """It was entered without a lock after a first try that was refused, and its work ran beside another's."""

    async def work() -> dict[str, str]:
        second = world.guard().begin(KEY, ORDER)
        async with world.guard().begin(KEY, ORDER) as first:
            for _ in range(2):
                with pytest.raises(AlreadyInProgress):
                    async with second:
                        pytest.fail("the block was entered")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), patient:
                    pytest.fail("the block was entered")
            first.complete(DONE)
        async with second:
            assert second.replayed
        async with patient:
            assert patient.replayed
        return patient.result

    patient = world.guard().begin(KEY, ORDER, wait_seconds=PATIENCE_SECONDS)
    assert DONE == asyncio.run(work())


def test_a_block_whose_coroutine_was_closed_is_not_tried_again(world: World) -> None:
    """The thread of the first try may still take the lock, and gives it back."""

    async def work() -> None:
        async with run:
            pytest.fail("the block was entered")

    async def begin() -> None:
        task = asyncio.ensure_future(working)
        await turn()
        working.close()
        task._log_destroy_pending = False
        with pytest.raises(RuntimeError, match="begins once"):
            await work()

    run, working = world.guard().begin(KEY, ORDER), work()
    asyncio.run(begin())


def test_a_call_does_not_wait_for_the_jobs_of_the_loop(world: World) -> None:
    """They may take longer than the lease, with all the threads that `asyncio.to_thread` has."""

    @world.guard().idempotent(lock_token="key", name="")
    async def charge(key: str) -> dict[str, str]:
        return DONE

    async def work() -> dict[str, str]:
        go_on = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        job = asyncio.ensure_future(asyncio.to_thread(go_on.wait, PATIENCE_SECONDS))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS / 2):
                return await charge(KEY)
        finally:
            go_on.set()
            await job

    assert DONE == asyncio.run(work())
    assert COMPLETED == world.lock().status


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # which is what this is about
def test_a_forked_process_has_threads_of_its_own(world: World) -> None:
    """A guard was used before the fork, as by a server that loads its application first."""

    @world.guard().idempotent(lock_token="key", name="")
    async def charge(key: str) -> dict[str, str]:
        return DONE

    assert DONE == asyncio.run(charge(KEY))
    before = guard_threads.own_threads()
    child = os.fork()
    if not child:
        os._exit(0 if guard_threads.own_threads() is not before else 1)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("error", [None, ZeroDivisionError()])
def test_a_block_whose_executor_is_shut_down_records_its_outcome(
    world: World, error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the end of the interpreter does it. The lock was held until its lease ended."""

    @world.guard().idempotent(lock_token="key", name="")
    async def charge(key: str) -> dict[str, str]:
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        monkeypatch.setattr(guard_threads, "own_threads", lambda: executor)
        if error is not None:
            raise error
        return DONE

    if error is None:
        assert DONE == asyncio.run(charge(KEY))
    else:
        with pytest.raises(type(error)):
            asyncio.run(charge(KEY))
    assert (FAILED if error else COMPLETED) == world.lock().status


def test_an_outcome_that_waits_for_a_thread_is_recorded_though_none_comes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its executor is shut down, and cancels what waits."""

    async def work() -> None:
        go_on, executor = threading.Event(), ThreadPoolExecutor(1)
        async with world.guard().begin(KEY, ORDER):
            monkeypatch.setattr(guard_threads, "own_threads", lambda: executor)
            executor.submit(go_on.wait, PATIENCE_SECONDS)
            asyncio.get_running_loop().call_soon(lambda: executor.shutdown(wait=False, cancel_futures=True))
            asyncio.get_running_loop().call_soon(go_on.set)
            raise RetryLater

    with pytest.raises(RetryLater):
        asyncio.run(work())
    assert RELEASED == world.lock().status


def test_an_outcome_that_waits_for_an_executor_that_breaks_is_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next thread cannot be prepared. Then it fails all that waits, and nothing of that was made."""
    go_on, threads = threading.Event(), []

    def prepare() -> None:
        threads.append(threading.get_ident())
        if len(threads) == 2:
            assert go_on.wait(PATIENCE_SECONDS)
            raise ZeroDivisionError("no connection")

    async def work() -> None:
        executor, ended = ThreadPoolExecutor(2, initializer=prepare), threading.Event()
        monkeypatch.setattr(guard_threads, "own_threads", lambda: executor)
        try:
            async with world.guard().begin(KEY, ORDER):
                for _ in range(2):
                    executor.submit(ended.wait, PATIENCE_SECONDS)
                asyncio.get_running_loop().call_soon(go_on.set)
                raise RetryLater
        finally:
            ended.set()

    with pytest.raises(RetryLater):
        asyncio.run(work())
    assert RELEASED == world.lock().status


def test_a_signal_right_after_a_call_in_this_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be an error of Python's futures, which programs catch as any other."""
    set_result = Future.set_result

    def interrupted(future: Future[Any], result: Any) -> NoReturn:
        set_result(future, result)
        raise KeyboardInterrupt

    async def work() -> None:
        executor = ThreadPoolExecutor(1)
        executor.shutdown()
        monkeypatch.setattr(guard_threads, "own_threads", lambda: executor)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Future, "set_result", interrupted)
            await in_thread(lambda: None)

    asyncio.run(work())


def test_a_task_stays_cancelled_though_its_call_fails_where_no_thread_comes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Who waits for the task asks whether it was cancelled. The name of the call's own error is in the log.

    Its text may quote the payload or the result.
    """

    def fail() -> NoReturn:
        raise ZeroDivisionError("of card 4242")

    async def work() -> bool:
        go_on, executor = threading.Event(), ThreadPoolExecutor(1)
        monkeypatch.setattr(guard_threads, "own_threads", lambda: executor)
        executor.submit(go_on.wait, PATIENCE_SECONDS)
        task = asyncio.ensure_future(in_thread(fail))
        await turn()
        task.cancel()
        await turn()
        executor.shutdown(wait=False, cancel_futures=True)
        go_on.set()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(work())
    assert "A cancelled call failed: ZeroDivisionError" in caplog.text
    assert "4242" not in caplog.text


def test_a_cancelled_task_keeps_none_of_its_objects() -> None:
    """A connection among them would stay open until Python looks for cycles."""

    class Connection:
        pass

    kept: list[weakref.ref[Connection]] = []

    async def use(go_on: threading.Event) -> None:
        connection = Connection()
        kept.append(weakref.ref(connection))
        await in_thread(lambda: go_on.wait(PATIENCE_SECONDS))

    async def work() -> bool:
        go_on = threading.Event()
        task = asyncio.ensure_future(use(go_on))
        await turn()
        task.cancel()
        await turn()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        await turn()
        return kept[0]() is None

    gc.disable()
    try:
        assert asyncio.run(work())
    finally:
        gc.enable()


def test_a_call_that_an_executor_keeps_without_a_thread_is_made_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made at once, and again as a thread comes. The second one must not give the lock back."""
    kept: list[Callable[[], object]] = []

    class NoThreads(ThreadPoolExecutor):
        def submit(self, call: Callable[..., Any], /, *arguments: Any, **_: Any) -> NoReturn:
            kept.append(lambda: call(*arguments))
            raise RuntimeError("can't start new thread")

    async def work() -> None:
        async with world.guard().begin(KEY, ORDER):
            await asyncio.Event().wait()

    async def begin() -> Any:
        task = asyncio.ensure_future(working)
        await turn()
        return task

    loop, working = asyncio.new_event_loop(), work()
    monkeypatch.setattr(guard_threads, "own_threads", NoThreads)
    task = loop.run_until_complete(begin())
    task._log_destroy_pending = False
    loop.close()
    for call in kept:
        call()
    working.close()
    assert FAILED == world.lock().status


class _Odd(BaseException):
    """What nothing catches."""


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit, _Odd])
@pytest.mark.parametrize(("kind", "status"), [(Exception, FAILED), (RetryLater, RELEASED)])
def test_an_error_whose_text_is_a_signal_is_on_record(
    world: World, signal: type[BaseException], kind: type[Exception], status: str
) -> None:
    """The lock was held until its lease ended. A Ctrl-C may come while the text is read, so it goes on."""

    def text(_error: Exception) -> NoReturn:
        raise signal

    speechless = type("Speechless", (kind,), {"__str__": text})

    with pytest.raises(signal) as raised, world.guard().begin(KEY, ORDER):
        raise speechless
    assert isinstance(raised.value.__context__, speechless)
    assert (status, "Speechless") == (world.lock().status, world.lock().failure.error)
