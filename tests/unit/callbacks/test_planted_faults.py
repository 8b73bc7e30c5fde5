"""A rule that cannot fail is no rule: each planted fault of the resolver is caught by an order or a race."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steponce.callbacks import awaiting, outcome, resolver
from steponce.callbacks.answer import Answer
from steponce.errors import SteponceError
from tests.unit.callbacks.happenings import HAPPENINGS, live_through, race
from tests.unit.callbacks.interleaving import schedules
from tests.unit.callbacks.scene import BEAT, NO, YES, Scene, waiting

pytestmark = pytest.mark.usefixtures("day_after")


def some_order(**parts: Any) -> None:
    """All orders; neighbours are alike, so they are mixed, to find a fault soon."""
    orders = list(product(HAPPENINGS, repeat=3))
    for order in random.Random(3).sample(orders, len(orders)):
        live_through(waiting(**parts), order)


def in_order(*order: str, known: bool = True) -> Callable[..., None]:
    """One telling order."""
    return lambda **parts: live_through(waiting(**parts) if known else Scene(0, **parts), order)


def races(
    other: Answer, meanwhile: str, *, first: Answer = YES, has_returned: bool = True
) -> Callable[..., None]:
    """Two answers at once, with something in between."""

    def run(**parts: Any) -> None:
        schedules(
            lambda schedule: race(schedule, (first, other), meanwhile, has_returned=has_returned, **parts),
            switches=3,
        )

    return run


BY_CLAIM = '"accepted" if step.claim == call else "duplicate"'
END_IN_SIGHT = "return None, last_event in EXECUTION_ENDS"
OF_WAITING = "#status IN (:pending, :late) AND"
PLANTED: list[tuple[ModuleType, str, str, Callable[..., None]]] = [
    (resolver, BY_CLAIM, '"accepted"', some_order),
    (resolver, BY_CLAIM, '"duplicate"', races(YES, "nothing")),
    (resolver, 'if delivery == "sent" else self._what_arrived(step, answer)', "", some_order),
    (resolver, "else self._what_arrived(step, answer)", "else None", some_order),
    (resolver, "if arrived is None and not over:", "if False:", some_order),
    (resolver, "if arrived is None and not over:", "if arrived is None:", some_order),
    (resolver, "step = changed or self._steps.get(step_id)", "return 'accepted'", some_order),
    (outcome, "link.previous not in linked:", "not linked:", some_order),
    (outcome, END_IN_SIGHT, "return None, True", some_order),
    (outcome, END_IN_SIGHT, "return None, False", some_order),
    (outcome, "if last_event not in _OF_A_TRY:", "if False:", some_order),
    (outcome, "if last_event not in _OF_A_TRY:", "if last_event in EXECUTION_ENDS:", some_order),
    (outcome, "last_event in _EXITED and", "last_event == 'nothing' and", in_order("abort")),
    (outcome, "or submitted or arrived == sent", "", some_order),
    (
        outcome,
        "or submitted or arrived == sent",
        "or True",
        in_order("record only", "crash", known=False),
    ),
    (
        outcome,
        "or (submitted and scheduled is None)",
        "or submitted",
        in_order("time out", "retry", "crash"),
    ),
    (awaiting, '"#status = :pending AND', '"#status IN (:pending, :answering) AND', races(NO, "nothing")),
    (
        awaiting,
        "#status = :was AND taskToken = :taskToken",
        "#status = :was",
        races(YES, "a time-out, and entering again"),
    ),
    (
        awaiting,
        "#status = :was AND taskToken = :taskToken",
        "taskToken = :taskToken",
        races(NO, "nothing", first=BEAT, has_returned=False),
    ),
    (
        awaiting,
        '"SET #status = :status, answer = :answer, answeredAt',
        '"SET #status = :status, answeredAt',
        some_order,
    ),
    (awaiting, "retryCount < :retryCount", "retryCount >= :retryCount", some_order),
    (
        awaiting,
        f"{OF_WAITING} {{_NEWER}}",
        OF_WAITING.removesuffix(" AND"),
        in_order("time out", "retry", "record", "slow record"),
    ),
    (awaiting, OF_WAITING, "#status = :pending AND", some_order),
    (
        awaiting,
        '"#status = :answering AND {_NEWER}"',
        '"#status = :answering AND #status = :late"',
        some_order,
    ),
]


@pytest.mark.full
@pytest.mark.parametrize(("module", "right", "wrong", "catcher"), PLANTED)
def test_a_planted_fault_is_caught(
    module: ModuleType,
    right: str,
    wrong: str,
    catcher: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
):
    """The orders and interleavings above notice each of these changes."""
    source = Path(str(module.__file__)).read_text()
    assert 1 == source.count(right)
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(source.replace(right, wrong), "spoiled", "exec"), names)  # noqa: S102 - our own text
    if module is outcome:
        monkeypatch.setattr(resolver, "outcome_of", names["outcome_of"])
    parts = {
        resolver: {"kind": names.get("Callbacks")},
        awaiting: {"records": names.get("AwaitingSteps")},
    }.get(module, {})

    with pytest.raises((AssertionError, SteponceError)):
        catcher(**parts)
