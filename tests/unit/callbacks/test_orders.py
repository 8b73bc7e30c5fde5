"""Every short order of what can happen, and long ones by chance on a real table."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from moto import mock_aws

from steponce.callbacks.answer import Answer
from tests.fakes.tables import create_table
from tests.unit.callbacks.happenings import FAULTS, HAPPENINGS, live_through
from tests.unit.callbacks.scene import BEAT, FULL, MAYBE, NO, YES, FaultAt, Scene, waiting
from tests.unit.shared_clients import shared

pytestmark = pytest.mark.usefixtures("day_after")


@pytest.mark.parametrize("share", [len(HAPPENINGS), pytest.param(1, marks=FULL)])
def test_every_order_of_what_can_happen_keeps_the_invariant(share: int):
    """
    Answers, heartbeats, ends, retries, stops and deaths: every three of them in every order; or so many that
    every two are at every two places.
    """
    names = list(HAPPENINGS)
    for numbers in product(range(len(names)), repeat=3):
        if sum(numbers) % share == 0:
            live_through(waiting(), (names[number] for number in numbers))
    for order in product(HAPPENINGS, repeat=2):
        live_through(Scene(), order)


class LongStory(RuleBasedStateMachine):
    """Whatever happens, for long, on moto's table; each verdict and the end are checked."""

    table: Any = None

    @initialize(retries=st.integers(0, 3))
    def begin(self, retries: int) -> None:
        self.scene = Scene(retries, table=self.table)

    @rule(happening=st.sampled_from(sorted(HAPPENINGS)))
    def let_happen(self, happening: str) -> None:
        HAPPENINGS[happening](self.scene)

    @rule(
        answer=st.sampled_from([YES, NO, MAYBE, BEAT]),
        position=st.integers(1, 7),
        fault=st.sampled_from(FAULTS),
    )
    def stumble(self, answer: Answer, position: int, fault: str) -> None:
        self.scene.resolve(answer, FaultAt(position, fault))

    @rule(lag=st.booleans(), throttled=st.booleans())
    def disturb(self, lag: bool, throttled: bool) -> None:
        self.scene.wait.lag() if lag else self.scene.wait.catch_up()
        self.scene.throttle(throttled)

    @rule(position=st.integers(1, 5), fault=st.sampled_from(FAULTS))
    def look_after(self, position: int, fault: str) -> None:
        self.scene.look_after(FaultAt(position, fault))

    @rule()
    def abort(self) -> None:
        if self.scene.wait.is_inside:
            self.scene.wait.abort()

    def teardown(self) -> None:
        if hasattr(self, "scene"):
            self.scene.settle()


def test_a_long_story_ends_well():
    """Hypothesis makes up the story."""
    with mock_aws():
        LongStory.table = shared("dynamodb")
        create_table(LongStory.table, "AwaitingStepsTable", "steps")
        run_state_machine_as_test(LongStory, settings=settings(max_examples=15, stateful_step_count=15))
