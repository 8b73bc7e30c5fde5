"""What a task may be answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Machine = Mapping[str, Any]
State = Mapping[str, Any]

ALL, TOO_LARGE = "States.ALL", "States.DataLimitExceeded"
UNFORESEEN = "Unforeseen"
"""An error that a Catch of its own names nowhere."""

HERE = "the ARN of this execution"
"""What an output has for it."""


@dataclass(frozen=True)
class Says:
    """
    The output of a call as the service has it; of a Lambda invocation, what the function returns.

    Args:
        output: It.
        redriven: Whether the execution has been redriven when it gets this answer.
    """

    output: Any = None
    redriven: bool = False


@dataclass(frozen=True)
class Fails:
    """An error. Only a token may be answered without a name or a cause."""

    error: str | None = UNFORESEEN
    cause: str | None = "Planned by a script."


Answer = Says | Fails


def answers_of(
    machine: Machine, outputs: Mapping[str, Sequence[Answer]], *, may_fail: bool = True, says_why: bool = True
) -> dict[str, list[Answer]]:
    """
    What each Task of a machine may be answered, those inside of Map and Parallel included.

    A Parallel is asked when its branches have ended, and may only fail by itself.

    Args:
        machine: The definition.
        outputs: By state. A state without any is answered with an empty object. One whose answers hold no
            error gets an error for each catcher of its own and around it.
        may_fail: Whether there are errors.
        says_why: Whether errors have a cause; without it, there is one without a name, too.
    """
    found: dict[str, list[Answer]] = {}
    for name, state, around in states(machine):
        given: list[Answer] = []
        if state["Type"] == "Task":
            given = list(outputs.get(name, [Says({})]))
            if not any(isinstance(one, Fails) for one in given):
                given += _errors([state, *reversed(around)])
        elif state["Type"] == "Parallel":
            named = {error for catcher in state.get("Catch", []) for error in catcher["ErrorEquals"]}
            given = [Says(), *([Fails(TOO_LARGE)] if TOO_LARGE in named else [])]
        if given:
            is_task = state["Type"] == "Task"
            found[name] = list(given if says_why else _without_reasons(given, may_lack_name=is_task))
            if not may_fail:
                found[name] = [one for one in given if isinstance(one, Says)]
    return found


def _without_reasons(answers: Sequence[Answer], *, may_lack_name: bool) -> list[Answer]:
    """Errors without a cause; and one without a name, as a task token may be answered, if `may_lack_name`."""
    errors = [answer for answer in answers if isinstance(answer, Fails)]
    bare = [Fails(error.error, None) for error in errors]
    bare += [Fails(None, None)] * bool(errors and may_lack_name)
    return [*(answer for answer in answers if isinstance(answer, Says)), *dict.fromkeys(bare)]


def _errors(levels: Sequence[State]) -> Iterator[Fails]:
    """One error for each catcher, of the state and of those around it, which none before it takes."""
    taken: set[str] = set()
    for catcher in [catcher for state in levels for catcher in state.get("Catch", [])]:
        names = [name for name in catcher["ErrorEquals"] if name not in taken]
        taken |= set(names)
        if not names or (ALL in taken - set(names) and TOO_LARGE not in names):
            continue
        yield Fails() if names[0] in (ALL, "States.TaskFailed") else Fails(names[0])


def states(
    machine: Machine, around: tuple[State, ...] = ()
) -> Iterator[tuple[str, State, tuple[State, ...]]]:
    """All states of a machine, each with the Map and Parallel states around it."""
    for name, state in machine["States"].items():
        yield name, state, around
        inner = [state[key] for key in ("ItemProcessor", "Iterator") if key in state]
        for one in [*inner, *state.get("Branches", [])]:
            yield from states(one, (*around, state))
