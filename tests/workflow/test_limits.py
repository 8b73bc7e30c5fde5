"""Rate limits under load, on the engine of this run: one answer for each request, and never too many."""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steponce import Limiter, Unavailable, admit_all
from steponce.aws import times
from steponce.limits import counters
from steponce.limits.record import COUNTER, Count
from steponce.limits.table import Limits
from steponce.local import LocalStack
from tests.unit.limits.world import make_table
from tests.workflow.faults import SERVER_ERROR
from tests.workflow.relay import Answer, Relay, serve

THREADS = 20
USER = "ann"

slow_on_moto = pytest.mark.timeout(1_800)
"""It answers one call at a time, so that thousands of them take a minute, or five on a busy machine."""


class Flaky:
    """Writes that are lost: some before they arrive, some after; the same for each run."""

    def __init__(self, share: float) -> None:
        self._random = random.Random(1)
        self._lock = threading.Lock()
        self._share = share
        self.lost = Counter[str]()

    def through(self, upstream: str) -> str:
        """A proxy in front of the table."""
        flaky = self

        class Proxy(Relay):
            def answer(self, body: bytes) -> Answer:
                is_write = not self.headers.get("X-Amz-Target", "").endswith("GetItem")
                when = flaky.draw() if is_write else "never"
                if when == "before":
                    return SERVER_ERROR
                answer = self.forward(upstream, body)
                return SERVER_ERROR if when == "after" else answer

        return serve(Proxy)

    def draw(self) -> str:
        with self._lock:
            drawn = self._random.random()
            when = "before" if drawn < self._share / 2 else "after" if drawn < self._share else "never"
            self.lost[when] += 1
            return when


@pytest.fixture(scope="module")
def table(stack: LocalStack) -> Iterator[str]:
    """As the template has it, beside the stack's own tables."""
    name, dynamodb = f"limits-{uuid.uuid4().hex[:8]}", stack.boto3("dynamodb")
    make_table(dynamodb, name)
    dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    yield name
    dynamodb.delete_table(TableName=name)


def limiter(stack: LocalStack, table: str, limit: int, *, url: str | None = None, **options: Any) -> Limiter:
    """A limiter that no other test shares its counts with, unless it says so."""
    options = {"name": uuid.uuid4().hex, "window": "day"} | options
    endpoints = stack.endpoints | ({"dynamodb": url} if url else {})
    return Limiter(table, limit=limit, session=stack.session(), endpoints=endpoints, **options)


def all_answers(one: Limiter, ids: list[str], at: datetime) -> dict[str, set[bool]]:
    """What each request was told, asked from many threads; who gets no answer asks again."""
    told: dict[str, set[bool]] = {request: set() for request in ids}

    def ask(request: str) -> None:
        while True:
            try:
                told[request].add(one.admit(USER, request, at).admitted)
                return
            except Unavailable:
                continue

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(ask, ids))
    return told


def shuffled(calls: int, different: int) -> list[str]:
    """So many calls of so many requests, each at least once, some of them often."""
    chosen = random.Random(2)
    ids = [f"r-{n}" for n in range(different)]
    calls_of = ids + chosen.choices(ids, k=calls - different)
    chosen.shuffle(calls_of)
    return calls_of


def counted(stack: LocalStack, table: str, one: Limiter) -> tuple[int, int]:
    """What the counters say, and how many requests are really on record."""
    pages = stack.boto3("dynamodb").get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"]]
    mine = [item for item in items if item["limitKey"]["S"].startswith(f"{one.name}/")]
    counts = [Count.from_item(item) for item in mine if item["member"]["S"] == COUNTER]
    return sum(one.counted for one in counts), sum(len(one.members) for one in counts) + len(mine) - len(
        counts
    )


@pytest.mark.parametrize(
    ("limit", "calls", "largest_set"),
    [
        pytest.param(8, 200, 150, id="set-200"),
        pytest.param(30, 150, 0, id="number-150"),
        pytest.param(8, 4_000, 150, id="set-4000", marks=slow_on_moto),
        pytest.param(2_000, 4_000, 150, id="number-4000", marks=slow_on_moto),
    ],
)
def test_each_request_gets_one_answer_and_exactly_so_many_are_admitted(
    stack: LocalStack, table: str, monkeypatch: pytest.MonkeyPatch, limit: int, calls: int, largest_set: int
):
    """Shuffled calls with repetitions, from twenty threads."""
    monkeypatch.setattr(counters, "SET_MEMBERS", largest_set)
    one = limiter(stack, table, limit)
    told = all_answers(one, shuffled(calls, different=max(limit + 20, calls * 5 // 8)), times.now())

    assert {1} == {len(answers) for answers in told.values()}
    assert limit == sum(answers == {True} for answers in told.values())
    assert (limit, limit) == counted(stack, table, one)


@pytest.mark.parametrize("largest_set", [150, 0], ids=["set", "number"])
def test_writes_that_are_lost_change_no_answer(
    stack: LocalStack, table: str, monkeypatch: pytest.MonkeyPatch, largest_set: int
):
    """Before they arrive or after, as when a worker dies there: the count is never above the limit."""
    monkeypatch.setattr(counters, "SET_MEMBERS", largest_set)
    flaky = Flaky(0.4)
    one = limiter(stack, table, 10, url=flaky.through(stack.endpoints["dynamodb"]))
    told = all_answers(one, shuffled(80, different=30), times.now())

    assert {1} == {len(answers) for answers in told.values()}
    assert 10 == sum(answers == {True} for answers in told.values())
    assert (10, 10) == counted(stack, table, one)
    assert min(flaky.lost["before"], flaky.lost["after"]) > 0


def test_two_limits_at_once_count_all_or_none(stack: LocalStack, table: str):
    """The hour is full before the day is; what it refuses, the day has not counted either."""
    name = uuid.uuid4().hex
    hour = limiter(stack, table, 5, name=name, window="hour")
    day = limiter(stack, table, 8, name=name)
    at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    ids = shuffled(60, different=20)

    def ask(request: str) -> tuple[str, bool]:
        while True:
            try:
                return request, admit_all([(hour, USER), (day, USER)], request, at).admitted
            except Unavailable:
                continue

    with ThreadPoolExecutor(THREADS) as pool:
        told = set(pool.map(ask, ids))

    assert len(set(ids)) == len(told)
    assert 5 == sum(admitted for _, admitted in told)
    assert (10, 10) == counted(stack, table, day)
    assert 3 == day.peek(USER, at=at).remaining


@pytest.mark.parametrize("largest_set", [150, 0], ids=["set", "number"])
def test_a_redelivery_after_midnight_counts_for_yesterday(
    stack: LocalStack, table: str, monkeypatch: pytest.MonkeyPatch, largest_set: int
):
    """Its own time says which window it belongs to."""
    monkeypatch.setattr(counters, "SET_MEMBERS", largest_set)
    one = limiter(stack, table, 1)
    midnight = times.now().replace(hour=0, minute=0, second=0, microsecond=0)
    late = midnight - timedelta(seconds=1)
    answers = [one.admit(USER, request, at) for request, at in (("a", late), ("b", midnight), ("a", late))]
    assert [(True, False), (True, False), (True, True)] == [(a.admitted, a.counted_before) for a in answers]
    assert not one.admit(USER, "c", late)


@pytest.mark.parametrize("largest_set", [150, 0], ids=["set", "number"])
def test_a_person_can_reset_a_limit(
    stack: LocalStack, table: str, monkeypatch: pytest.MonkeyPatch, largest_set: int
):
    """The engine knows the index, and every condition of the reset."""
    monkeypatch.setattr(counters, "SET_MEMBERS", largest_set)
    user, one = uuid.uuid4().hex, limiter(stack, table, 1)
    limits = Limits(stack.boto3("dynamodb"), table)
    assert [True, False] == [one.admit(user, request).admitted for request in "ab"]
    (count,) = limits.at(user, times.now())
    assert limits.reset(count, by="eve", why="asked")
    assert not limits.reset(count, by="eve", why="again")
    assert [True, True, False] == [one.admit(user, request).admitted for request in "abc"]


def test_a_limit_that_outgrows_its_set_keeps_its_counts(
    stack: LocalStack, table: str, monkeypatch: pytest.MonkeyPatch
):
    """The limit was raised in the middle of the day."""
    name = uuid.uuid4().hex
    assert all_answers(limiter(stack, table, 3, name=name), [*"abc"], times.now())
    monkeypatch.setattr(counters, "SET_MEMBERS", 3)
    one = limiter(stack, table, 6, name=name)
    told = all_answers(one, [*"abcdefghi"] * 3, times.now())
    assert {1} == {len(answers) for answers in told.values()}
    assert {"a", "b", "c"} < {request for request, answers in told.items() if answers == {True}}
    assert (6, 6) == counted(stack, table, one)
