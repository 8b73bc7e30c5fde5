"""Any order of requests, repetitions, deaths, conflicts, changes of the limit and resets, against a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from steponce import Unavailable
from steponce.aws import times
from steponce.limits import counters
from tests.unit.limits.world import (
    TABLE,
    Fault,
    World,
    conflict_of_one,
    dies_after,
    dies_before,
    lost_and_repeated,
    make_table,
)
from tests.unit.shared_clients import shared

LARGEST_SET = 2

FAULTS: st.SearchStrategy[Fault | None] = st.sampled_from(
    [None, None, None, dies_before, dies_after, lost_and_repeated, conflict_of_one]
)
REQUESTS = st.tuples(
    st.integers(1, 4),  # the limit, below and above the largest set
    st.sampled_from("abcdefg"),
    st.lists(FAULTS, max_size=3),
)
STEPS = st.lists(REQUESTS | st.just("reset"), max_size=10)


@dataclass
class Model:
    """What is to be: who was admitted, and how many of them count."""

    admitted: set[str] = field(default_factory=set)
    counted: int = 0

    def admit(self, limit: int, request: str) -> bool:
        if request not in self.admitted and self.counted < limit:
            self.admitted.add(request)
            self.counted += 1
        return request in self.admitted


@given(STEPS)
def test_a_limiter_does_what_the_model_does(steps: list[tuple[int, str, list[Fault | None]] | str]) -> None:
    """Each request gets one answer, and the record counts those that were admitted."""
    with empty_world() as world:
        model = Model()
        for step in steps:
            world.faults = []
            if isinstance(step, str):
                for count in world.limits.of("ann"):
                    assert world.limits.reset(count, by="eve", why="asked")
                model.counted = 0
            else:
                limit, request, faults = step
                world.faults = list(faults)
                assert model.admit(limit, request) == until_answered(world, limit, request)
        counts = world.counts()
        assert sum(count.counted for count in counts) == model.counted
        own_items = len(world.items()) - len(counts)
        assert sum(len(count.members) for count in counts) + own_items == len(model.admitted)


def until_answered(world: World, limit: int, request: str) -> bool:
    """The same request again and again, as a queue would deliver it."""
    for _ in range(10):
        try:
            return world.limiter(limit=limit).admit("ann", request).admitted
        except Unavailable:
            continue
    raise AssertionError("no answer")


@contextmanager
def empty_world() -> Iterator[World]:
    """As the fixture, for each example anew."""
    world = World()
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setattr(times, "now", lambda: world.now)
        patch.setattr(counters, "SET_MEMBERS", LARGEST_SET)
        patch.setattr(counters, "_FIRST_PAUSE_SECONDS", 0)
        make_table(shared("dynamodb"), TABLE)
        yield world
