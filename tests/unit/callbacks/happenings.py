"""What can happen to a step, alone or while others answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from steponce.callbacks.answer import Answer
from tests.unit.callbacks.interleaving import Schedule, together
from tests.unit.callbacks.scene import BEAT, MAYBE, NO, YES, FaultAt, Scene

HAPPENINGS: dict[str, Callable[[Scene], object]] = {
    "record": Scene.record,
    "record only": Scene.record_only,
    "slow record": Scene.record_the_first,
    "lag": lambda scene: scene.wait.lag(),
    "yes": lambda scene: scene.resolve(YES),
    "no": lambda scene: scene.resolve(NO),
    "beat": lambda scene: scene.resolve(BEAT),
    "raw yes": lambda scene: scene.answer_raw(YES),
    "raw maybe": lambda scene: scene.answer_raw(MAYBE),
    "time out": lambda scene: scene.wait.time_out(),
    "time out for good": Scene.time_out_for_good,
    "crash": lambda scene: scene.wait.crash(),
    "retry": lambda scene: scene.wait.retry() if scene.wait.is_between_tries else None,
    "again": Scene.again,
    "abort": lambda scene: scene.wait.abort() if scene.wait.is_inside else None,
    "stop": lambda scene: scene.wait.stop(),
    "yes, dying": lambda scene: scene.resolve(YES, FaultAt(3, "die before")),
    "no, dying": lambda scene: scene.resolve(NO, FaultAt(3, "die after")),
}


def live_through(scene: Scene, order: Iterable[str]) -> None:
    """Let things happen in this order; every verdict on the way is checked, and the end."""
    for happening in order:
        HAPPENINGS[happening](scene)
    scene.settle()


MEANWHILE: dict[str, list[Callable[[Scene], object]]] = {
    "nothing": [],
    "a time-out": [lambda scene: scene.wait.time_out()],
    "a time-out, and a retry": [lambda scene: scene.wait.time_out(), Scene.retry_and_record],
    "a time-out, and entering again": [Scene.time_out_for_good, Scene.again],
    "a slow recorder": [Scene.record_the_first],
    "the same raw answer": [lambda scene: scene.answer_raw(YES)],
    "another raw answer": [lambda scene: scene.answer_raw(MAYBE)],
    "a raw answer that does not show": [
        lambda scene: scene.wait.lag(),
        lambda scene: scene.answer_raw(MAYBE),
    ],
    "a stop": [lambda scene: scene.wait.stop()],
}
FAULTS = ["die before", "die after", "lose answer", "repeat"]


def race(
    schedule: Schedule,
    answers: tuple[Answer, Answer],
    meanwhile: str,
    *,
    has_returned: bool = True,
    **options: Any,
) -> None:
    """
    Two calls and a happening, moving one call at a time; what they were told must be true at the end.

    The recording function may not have returned yet when the answers come.
    """
    scene = Scene(**options)
    (scene.record if has_returned else scene.record_only)()
    told: list[tuple[Answer, str]] = []

    def resolver(answer: Answer) -> Callable[[Callable[[str], None]], None]:
        return lambda gate: told.append((answer, scene.ask(answer, gate)))

    def others(gate: Callable[[str], None]) -> None:
        for happening in MEANWHILE[meanwhile]:
            happening(scene)
            gate("")

    together(schedule, *map(resolver, answers), others)

    got = scene.wait.got
    assert len(got) <= scene.wait.entries
    assert len(set(got)) <= 1 >= len(scene.accepted)
    assert all(answer in got for answer in scene.accepted)
    for answer, verdict in told:
        assert verdict != "duplicate" or answer in got
        assert verdict != "conflict" or set(got) not in (set(), {answer})
        assert verdict != "late" or answer == BEAT or "time-out" in meanwhile or "stop" in meanwhile
        assert verdict != "unavailable" or "time-out" in meanwhile or "show" in meanwhile
        assert verdict not in ("unknown", "died")
    if meanwhile == "nothing" and set(answers) != {BEAT}:
        assert 1 == len(got) == len(scene.accepted)
    scene.settle(answers[0])
