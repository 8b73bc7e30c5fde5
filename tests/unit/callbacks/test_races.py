"""Two answers at once, in every interleaving of their calls."""

from __future__ import annotations

import pytest

from steponce.callbacks.answer import Answer
from tests import covering
from tests.unit.callbacks.happenings import MEANWHILE, race
from tests.unit.callbacks.interleaving import schedules
from tests.unit.callbacks.scene import BEAT, FULL, NO, YES

pytestmark = pytest.mark.usefixtures("day_after")


@covering.first(4, "meanwhile", MEANWHILE)
@pytest.mark.parametrize("answers", [(YES, NO), *(pytest.param((YES, o), marks=FULL) for o in (YES, BEAT))])
@pytest.mark.parametrize("switches", [2, pytest.param(3, marks=FULL)])
def test_two_answers_at_once_get_true_verdicts(answers: tuple[Answer, Answer], meanwhile: str, switches: int):
    """Whoever moves next at every call's boundary, with a few switches away from who is at it."""
    assert 50 < schedules(lambda schedule: race(schedule, answers, meanwhile), switches)


@pytest.mark.parametrize("other", [BEAT, YES])
def test_two_answers_at_once_may_be_quicker_than_the_recorder(other: Answer):
    """The history shows a failure from then like a crash of the recording function."""
    assert 40 < schedules(lambda schedule: race(schedule, (other, NO), "nothing", has_returned=False), 2)


@FULL
def test_two_answers_at_once_may_switch_more_often():
    """With nothing but each other in the way, and up to four switches."""
    assert 500 < schedules(lambda schedule: race(schedule, (YES, NO), "nothing"), switches=4)
