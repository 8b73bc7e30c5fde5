"""Every interleaving of a few actors, from one call's boundary to the next."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Schedule:
    """Who makes the next call: the one that is at it, but for some switches."""

    def __init__(self, switches: dict[int, int]) -> None:
        self._switches = switches
        self.choices: list[int] = []

    def choose(self, ready: list[int], current: int | None) -> int:
        """The next to go; records how many others there were."""
        ordered = sorted(ready, key=lambda one: (one != current, one))
        position = len(self.choices)
        self.choices.append(len(ordered))
        return ordered[self._switches.get(position, 0) % len(ordered)]


def schedules(run: Callable[[Schedule], None], switches: int) -> int:
    """Run with every schedule that leaves whoever is at it at most so often; how many there were."""
    waiting, count = [dict[int, int]()], 0
    while waiting:
        chosen = waiting.pop()
        schedule = Schedule(chosen)
        run(schedule)
        count += 1
        if len(chosen) < switches:
            first = max(chosen, default=-1) + 1
            waiting += [
                chosen | {position: other}
                for position, options in enumerate(schedule.choices[first:], first)
                for other in range(1, options)
            ]
    return count


def together(schedule: Schedule, *actors: Callable[[Callable[[str], None]], None]) -> None:
    """Run actors as threads of which one at a time moves, from one call's boundary to the next."""
    turns = [threading.Semaphore(0) for _ in actors]
    paused = threading.Semaphore(0)
    done = [False] * len(actors)
    failures: list[BaseException] = []

    def live(number: int) -> None:
        def gate(_name: str) -> None:
            paused.release()
            turns[number].acquire()

        turns[number].acquire()
        try:
            actors[number](gate)
        except BaseException as error:
            failures.append(error)
        done[number] = True
        paused.release()

    threads = [threading.Thread(target=live, args=(number,)) for number in range(len(actors))]
    for thread in threads:
        thread.start()
    current: int | None = None
    while ready := [number for number, is_done in enumerate(done) if not is_done]:
        current = schedule.choose(ready, current)
        turns[current].release()
        paused.acquire()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
