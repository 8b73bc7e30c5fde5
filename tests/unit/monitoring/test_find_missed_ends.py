"""The function that sends messages of unreported ends again: what it counts, and what it logs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from steponce.errors import InvalidPayload, RecordUnreadable, Unavailable
from steponce.monitoring.missed_ends import Looked
from steponce.monitoring.rounds import LOGGED, FallenBehind
from tests.fakes.errors import client_error
from tests.unit.triggers.world import Context, World, function

ARN = "arn:aws:states:us-east-1:123456789012:execution:m:order-1"
CARD = "tok_visa"


class Ends:
    """A look that skips what a test wants, and notes how much time it has."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = errors
        self.seconds = 0.0

    def look(
        self, *, seconds_left: Callable[[], float], skip: Callable[[Exception, str], object], **_how: Any
    ) -> Looked:
        self.seconds = seconds_left()
        for error in self.errors:
            skip(error, ARN)
        return Looked(resent=2, dead_lettered=1, left=3)


def skipped(caplog: pytest.LogCaptureFixture) -> list[Any]:
    """What it has logged of ends that it could not look at."""
    return [one for one in caplog.records if one.getMessage() == "could not be examined"]


def test_it_counts_what_it_did_and_what_it_could_not_look_at(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    """
    Each skipped end is logged by its execution, without the error's text, which may quote a payload. What no
    later round examines again rings an alarm at once.
    """
    ends = Ends(
        RecordUnreadable("k", "attempt", "is missing"),
        Unavailable(CARD),
        client_error("AccessDeniedException", CARD),
        FallenBehind(),
        InvalidPayload(CARD),
    )
    with function("find_missed_ends", World(), DescribesPerSecond="5") as module:
        module.missed_ends = ends
        told = module.handler({}, Context())

    counted = next(json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line)
    names = ["RecordUnreadable", "Unavailable", "AccessDeniedException", "FallenBehind", "InvalidPayload"]
    assert {"resent": 2, "deadLettered": 1, "left": 3, "skipped": 3, "unreadable": 2} == told
    assert {"Resent": [2], "DeadLettered": [1], "Skipped": [3], "Unreadable": [2]}.items() <= counted.items()
    assert [(name, ARN) for name in names] == [(one.error, one.arn) for one in skipped(caplog)]
    damaged = vars(skipped(caplog)[0])
    assert {"key": "k", "attribute": "attempt", "problem": "is missing"}.items() <= damaged.items()
    assert CARD not in str([vars(one) for one in caplog.records])
    assert 15 == ends.seconds  # of thirty


def test_a_flood_of_skipped_ends_is_counted_and_not_logged(caplog: pytest.LogCaptureFixture):
    """A hundred lines say as much as ten thousand."""
    with function("find_missed_ends", World(), DescribesPerSecond="5") as module:
        module.missed_ends = Ends(*[Unavailable("x")] * 150)
        told = module.handler({}, Context())

    assert 150 == told["skipped"]
    assert LOGGED == len(skipped(caplog))
