"""The monitor settles steps that nobody answers any more, alone and beside an answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from steponce.callbacks.answer import Answer
from steponce.callbacks.step import ANSWERED
from tests import covering
from tests.unit.callbacks.happenings import FAULTS, MEANWHILE
from tests.unit.callbacks.interleaving import Schedule, schedules, together
from tests.unit.callbacks.scene import BEAT, FULL, NO, YES, FaultAt, Scene, waiting

pytestmark = pytest.mark.usefixtures("day_after")


def race_with_the_monitor(schedule: Schedule, answer: Answer, meanwhile: str) -> None:
    """The same with one call and the monitor, for a step whose time is over."""
    scene = Scene()
    for handed in scene.wait.handed:
        handed["timeoutSeconds"] = -1
    scene.record()
    told: list[str] = []

    def others(gate: Callable[[str], None]) -> None:
        for happening in MEANWHILE[meanwhile]:
            happening(scene)
            gate("")

    together(
        schedule,
        lambda gate: told.append(scene.ask(answer, gate)),
        lambda gate: told.append(scene.look_after(gate)),
        others,
    )
    assert len(scene.wait.got) <= scene.wait.entries
    assert len(scene.accepted) <= 1
    assert all(one in scene.wait.got for one in scene.accepted)
    scene.settle()


@covering.first(4, "meanwhile", MEANWHILE)
@pytest.mark.parametrize("answer", [YES, pytest.param(BEAT, marks=FULL)])
def test_the_monitor_and_an_answer_at_once_do_no_harm(answer: Answer, meanwhile: str):
    """Whoever of them moves next: the workflow gets one answer, and what was told is true."""
    assert 10 < schedules(lambda schedule: race_with_the_monitor(schedule, answer, meanwhile), switches=2)


def test_the_monitor_finishes_what_others_have_begun():
    """A claimed answer is sent; after that there is nothing to do, and no verdict changes."""
    scene = waiting()
    assert "died" == scene.resolve(YES, FaultAt(3, "die before"))

    assert ["True", "True"] == [scene.look_after(), scene.look_after()]

    assert ([YES], ANSWERED) == (scene.wait.got, scene.status())
    assert ["duplicate", "conflict"] == [scene.resolve(YES), scene.resolve(NO)]


def test_the_monitor_takes_out_an_answer_that_step_functions_refuses():
    """Its sender is not there to be told; the step waits on."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_failure", "ValidationException")
    assert "died" == scene.resolve(NO, FaultAt(3, "die before"))

    assert "False" == scene.look_after()
    assert "accepted" == scene.resolve(YES)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_monitor_may_fail_at_every_call(fault: str):
    """The next round mends it."""
    for position in range(1, 5):
        scene = waiting()
        assert "died" == scene.resolve(YES, FaultAt(3, "die before"))
        scene.look_after(FaultAt(position, fault))
        assert "True" == scene.look_after()
        assert [YES] == scene.wait.got


def test_a_step_that_another_closes_meanwhile_is_closed():
    """The refused write is no step that is gone: the record is read again."""
    scene, others = waiting(), []
    assert "died" == scene.resolve(YES, FaultAt(3, "die before"))

    def another_first(name: str) -> None:
        if name == "update_item" and not others:
            others.append("another monitor")
            assert "True" == scene.look_after()

    assert "True" == scene.look_after(another_first)
    assert [YES] == scene.wait.got


def test_the_monitor_knows_nothing_of_a_step_that_is_gone():
    """DynamoDB has deleted it."""
    assert "False" == Scene().look_after()
