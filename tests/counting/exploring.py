"""Every way that a machine can go, if its tasks are answered in every way that a drive names."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.counting.answers import Answer, answers_of, states
from tests.counting.drives import Drive, Driven
from tests.counting.engine import Engine
from tests.counting.units import used

Key = tuple[str, int]
"""
A state, and the how manieth time it is there. In a Map, whose items all go the same way, it is always 0; and
where there are many rounds of a loop, those after the first go the same way.
"""


@functools.cache
def engine() -> Engine:
    """That of this process."""
    return Engine()


def explore(drives: Sequence[Drive], most: Mapping[str, int], is_thorough: bool) -> list[list[Driven]]:
    """
    Run a machine in every way; for a process of its own.

    Args:
        drives: Of the machine.
        most: How often each state may be called. A run that comes back more often is left out.
        is_thorough: Every way; else each answer once.

    Returns:
        The runs of each drive.
    """
    tried: set[str] | None = None if is_thorough else set()
    return [list(_Explorer(drive, most, tried).ways()) for drive in drives]


class _Explorer:
    def __init__(self, drive: Drive, most: Mapping[str, int], tried: set[str] | None) -> None:
        definition = drive.definition
        self._drive, self._most, self._tried = drive, most, tried
        self._machine = engine().make(definition)
        flags = {"may_fail": drive.may_fail, "says_why": drive.says_why}
        self._offered = answers_of(definition, drive.answers, **flags)
        self._in_maps = {
            name for name, _, around in states(definition) if any(one["Type"] == "Map" for one in around)
        }

    def ways(self) -> Iterator[Driven]:
        for given in self._drive.inputs:
            waiting: list[dict[Key, int]] = [{}]
            while waiting:
                driven, others = self._run(given, waiting.pop())
                waiting += others
                if driven:
                    yield driven

    def _run(self, given: Any, chosen: dict[Key, int]) -> tuple[Driven | None, list[dict[Key, int]]]:
        """One run; and with which choices the runs begin that choose otherwise from here on."""
        new: dict[Key, int] = {}
        seen: Counter[str] = Counter()

        def script(state: str) -> Answer | None:
            seen[state] += 1
            if seen[state] > self._most.get(state, 0) * self._drive.rounds:
                return None
            key = (state, 0 if state in self._in_maps else self._time(seen[state]))
            place = chosen[key] if key in chosen else new.setdefault(key, 0)
            return self._offered[state][place]

        run = engine().run(self._machine, given, script, self._drive)
        others, before = [], dict(chosen)
        for key in new:
            others += [{**before, key: place} for place in self._other_places(key[0])]
            before[key] = 0
        if run.status == "ABORTED":
            return None, others
        return Driven(run.entered, used(run), run.status == "FAILED", run.error), others

    def _time(self, seen: int) -> int:
        return seen if self._drive.rounds == 1 else min(seen, 2)

    def _other_places(self, state: str) -> list[int]:
        """Which answers a state may get instead of the first."""
        answers = {place: self._about(state, answer) for place, answer in enumerate(self._offered[state])}
        if self._tried is not None:
            answers = {place: answer for place, answer in answers.items() if answer not in self._tried}
            self._tried |= set(answers.values())
        return [place for place in answers if place]

    def _about(self, state: str, answer: Answer) -> str:
        """With other values for the placeholders the same answer may lead elsewhere."""
        return f"{self._drive.values} {state} {answer}"
