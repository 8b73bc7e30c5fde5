"""
Where the error of a state leads.

A Fail says its error, and the first catcher that names it gets it. What a Task may raise is not in the
definition: it may be any error, but none that a catcher further in has taken.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from steponce.cost.definition import State

ALL, TASK_FAILED, BRANCH_FAILED = "States.ALL", "States.TaskFailed", "States.BranchFailed"
TOO_LARGE = "States.DataLimitExceeded"
TIMEOUTS = frozenset({"States.Timeout", "States.HeartbeatTimeout"})
OF_WHAT_IS_INSIDE = TIMEOUTS | {ALL, TASK_FAILED, BRANCH_FAILED}
"""Names for errors that a Parallel or a Map has only from a state inside."""


@dataclass(frozen=True)
class Errors:
    """
    What the error of a state may be.

    Attributes:
        named: One of these; None for any.
        without: Of any, those that it is not.
    """

    named: frozenset[str] | None = None
    without: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.named is None or bool(self.named)

    def __or__(self, other: Errors) -> Errors:
        """One of either."""
        if self.named is None or other.named is None:
            sides = [errors.without for errors in (self, other) if errors.named is None]
            return Errors(without=frozenset.intersection(*sides))
        return Errors(self.named | other.named)

    def left_by(self, names: Collection[str]) -> Errors:
        """What a catcher with these names does not take."""
        if self.named is not None:
            return Errors(frozenset(error for error in self.named if not _matches(names, error)))
        without = self.without | set(names)
        if ALL in names:
            return Errors(frozenset({TOO_LARGE}) - without)
        if TASK_FAILED in names:
            return Errors((TIMEOUTS | {TOO_LARGE}) - without)
        return Errors(without=without)


ANY = Errors()


class Caught(NamedTuple):
    """
    What becomes of an error.

    Attributes:
        targets: Where it may lead.
        left: What passes all catchers, and fails what is around the state; false if nothing does.
    """

    targets: list[str]
    left: Errors


def errors_of_fail(state: State) -> Errors:
    """The error of a Fail. One without a name matches no name either."""
    if "ErrorPath" in state:
        return ANY
    error = str(state.get("Error", ""))
    return ANY if is_open(error) else Errors(frozenset({error}))


def caught(state: State, errors: Errors) -> Caught:
    """What a state does with an error."""
    targets: list[str] = []
    for catcher in state.get("Catch", []):
        names = [str(name) for name in catcher.get("ErrorEquals", [])]
        left = errors.left_by(names)
        may_be_any = any(map(is_open, names))
        if may_be_any or left != errors:
            targets.append(str(catcher.get("Next")))
        errors = errors if may_be_any else left
    return Caught(targets, errors)


def own_failures(state: State) -> list[str]:
    """Where a Parallel or a Map leads whose own failure its Catch names, though nothing inside has failed."""
    return [
        str(catcher.get("Next"))
        for catcher in state.get("Catch", [])
        if any(
            str(name).startswith("States.") and name not in OF_WHAT_IS_INSIDE
            for name in catcher.get("ErrorEquals", [])
        )
    ]


def _matches(names: Collection[str], error: str) -> bool:
    if error in names or BRANCH_FAILED in names:
        return True
    if ALL in names:
        return error not in (TOO_LARGE, "States.Runtime")
    return TASK_FAILED in names and not error.startswith("States.")


def is_open(name: str) -> bool:
    """Whether it is known only once a placeholder or an expression is filled in."""
    return "${" in name or name.lstrip().startswith("{%")
