"""`erase` beside `locks complete` of a large result: the orders of their calls, and every death."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import combinations
from queue import SimpleQueue
from threading import Semaphore, Thread, current_thread
from typing import Any

import pytest
from moto import mock_aws

from steponce.errors import RecordChanged
from steponce.locks.record import Lock
from steponce.locks.results import Results
from steponce.locks.table import Locks
from steponce.operator.erasure import Kept, erase, find_kept
from steponce.operator.locks import Operator
from steponce.workflow import COMPLETED, RELEASED
from tests import covering
from tests.unit.locks.large import BUCKET, bucket, kept
from tests.unit.one_machine import TO_WORK, WORK_TIMEOUT, World

KEY = "m/order-1"
TTL = 4_000_000_000
LARGE = json.dumps("x" * 210_000)
ERASER, COMPLETER = "eraser", "completer"
MOST_CALLS = {ERASER: 6, COMPLETER: 4}
ORDERS = [
    [ERASER if place in places else COMPLETER for place in range(sum(MOST_CALLS.values()))]
    for places in combinations(range(sum(MOST_CALLS.values())), MOST_CALLS[ERASER])
]
IN_ORDERS = pytest.mark.parametrize(
    "orders", [ORDERS[::20], pytest.param(ORDERS[::3], marks=pytest.mark.full)], ids=["some", "many"]
)


class Died(BaseException):
    """The command's process has ended."""


class Turns:
    """Lets two commands call AWS by turns. `dies` says who dies, and before which of its calls."""

    def __init__(self, order: list[str], dies: tuple[str, int] | None = None) -> None:
        self.told: dict[str, Any] = {}
        self._order, self._dies = iter(order), dies
        self._calls = {ERASER: 0, COMPLETER: 0}
        self._go = {name: Semaphore(0) for name in self._calls}
        self._stopped: SimpleQueue[str] = SimpleQueue()

    def run(self, commands: dict[str, Callable[[], Any]]) -> None:
        """Run both to their ends. If one has ended, the other one goes on alone."""
        for name, command in commands.items():
            Thread(target=self._run, args=(name, command), name=name).start()
        for _ in commands:
            self._stopped.get()
        while left := [name for name in commands if name not in self.told]:
            turn = next((name for name in self._order if name in left), left[0])
            self._go[turn].release()
            self._stopped.get()

    def wait(self) -> None:
        """Before each call of a command: wait for its turn."""
        me = current_thread().name
        if me not in self._calls or me in self.told:
            return
        self._stopped.put(me)
        self._go[me].acquire()
        if (me, self._calls[me]) == self._dies:
            raise Died
        self._calls[me] += 1

    def _run(self, me: str, command: Callable[[], Any]) -> None:
        try:
            told = command()
        except (RecordChanged, Died) as error:
            told = error
        self.told[me] = told
        self._stopped.put(me)


class Waiting:
    """A client of AWS, each of whose calls waits for its turn."""

    def __init__(self, client: Any, turns: Callable[[], Turns]) -> None:
        self._client, self._turns = client, turns

    def __getattr__(self, name: str) -> Any:
        called = getattr(self._client, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self._turns().wait()
            return called(*arguments, **options)

        return call if callable(called) else called


class Scene:
    """A released request with a large object, which two operators look at."""

    def __init__(self) -> None:
        self.world = World()
        self.turns = Turns([])
        self.world.execution("order-1", "FAILED", *TO_WORK, "ReleaseLock", error="RetryLater")
        self.s3 = bucket(region="eu-west-1")._s3
        self.results = Results(BUCKET, lambda: self.s3)
        machine = self.world.machine
        machine.results = Results(BUCKET, lambda: Waiting(self.s3, lambda: self.turns))
        machine.locks = Locks(Waiting(self.world.dynamodb, lambda: self.turns), "locks")  # type: ignore[arg-type]

    def play(self, turns: Turns) -> None:
        """Let one of them erase the request, and the other one complete it."""
        shown, found = self.lay_out()
        self.run(turns, shown, found)

    def lay_out(self) -> tuple[Lock, Kept]:
        """A released record with an object, as `locks complete` and `erase` look at it."""
        kept(self.results, "1", lock_token=KEY)
        shown = self.world.put(status=RELEASED, openStatus=None, ttl=TTL)
        return shown, find_kept(self.world.machine, self.world.steps, "m/")

    def run(self, turns: Turns, shown: Lock, found: Kept) -> None:
        """Let one erase what it has found, and the other one complete what it was shown."""
        machine = self.world.machine
        alice = Operator(machine, by="alice", work_timeout_seconds=WORK_TIMEOUT)
        commands = {
            ERASER: lambda: erase(machine, self.world.steps, found),
            COMPLETER: lambda: alice.complete(shown, LARGE, "as its log says"),
        }
        self.turns = turns
        turns.run(commands)

    def die_fenced(self, found: Kept) -> Lock:
        """Let an eraser die after its fence. Returns the record that is left."""
        self.turns = Turns([], (ERASER, 2))
        self.turns.run({ERASER: lambda: erase(self.world.machine, self.world.steps, found)})
        left = self.world.machine.locks.get(KEY)
        assert left is not None
        return left

    @property
    def is_readable(self) -> bool:
        """Whether everyone who asks gets the result."""
        record = self.world.machine.locks.get(KEY)
        return record is not None and json.loads(LARGE) == self.results.read(record)

    @property
    def is_gone(self) -> bool:
        """Whether neither a record nor an object is left."""
        return self.world.machine.locks.get(KEY) is None and not self.results.objects(KEY)

    def clear(self) -> bool:
        """Erase what is there, as the same command does. Returns whether nothing is left."""
        erase(self.world.machine, self.world.steps, find_kept(self.world.machine, self.world.steps, "m/"))
        return self.is_gone


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One for all orders."""
    with mock_aws():
        yield Scene()


@IN_ORDERS
def test_a_large_result_and_its_record_are_both_kept_or_both_erased(scene: Scene, orders: list[list[str]]):
    """One of the two operators is told that the record has changed; nobody gets ResultGone."""
    for order in orders:
        turns = Turns(order)
        scene.play(turns)

        completed = not isinstance(turns.told[COMPLETER], RecordChanged)
        assert (completed, int(completed)) == (scene.is_readable, turns.told[ERASER]), order
        assert completed or scene.is_gone, order
        assert scene.clear(), order


@IN_ORDERS
@covering.first(2, "call", range(MOST_CALLS[ERASER]))
def test_what_a_dead_eraser_has_left_is_found_by_the_same_command(
    scene: Scene, orders: list[list[str]], call: int
):
    """The record is there as long as anything else is."""
    for order in orders:
        turns = Turns(order, (ERASER, call))
        scene.play(turns)

        completed = not isinstance(turns.told[COMPLETER], RecordChanged)
        assert completed == scene.is_readable, order
        assert scene.clear(), order


@IN_ORDERS
def test_who_looked_before_another_eraser_died_takes_no_result(scene: Scene, orders: list[list[str]]):
    """Its own fence is refused, and that of the dead one is not its own."""
    for order in orders:
        _, found = scene.lay_out()
        left = scene.die_fenced(found)
        turns = Turns(order)
        scene.run(turns, left, found)

        assert (1, True) == (turns.told[ERASER], scene.is_readable), order
        assert scene.clear(), order


@IN_ORDERS
@covering.first(2, "call", range(MOST_CALLS[COMPLETER]))
def test_a_dead_completer_leaves_no_record_without_its_result(
    scene: Scene, orders: list[list[str]], call: int
):
    """At most an object that no record names, as a death before the write always does."""
    for order in orders:
        turns = Turns(order, (COMPLETER, call))
        scene.play(turns)

        record = scene.world.machine.locks.get(KEY)
        assert record is None or (COMPLETED, True) == (record.status, scene.is_readable), order
        if not scene.clear():
            assert isinstance(turns.told[COMPLETER], Died), order
            scene.results.delete(scene.results.objects(KEY))
