"""
Where the error of a state leads.

A Fail says its error, and the first catcher that names it gets it. What a Task may raise is not in the
definition: it may be any error, but none that a catcher further in has taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from steponce.cost.definition import State

ALL, TASK_FAILED, BRANCH_FAILED = "States.ALL", "States.TaskFailed", "States.BranchFailed"
TOO_LARGE = "States.DataLimitExceeded"
RUNTIME, TIMEOUT = "States.Runtime", "States.Timeout"
TIMEOUTS = frozenset({TIMEOUT, "States.HeartbeatTimeout"})
OF_WHAT_IS_INSIDE = TIMEOUTS | {ALL, TASK_FAILED, BRANCH_FAILED}
"""Names for errors that a Parallel or a Map has only from a state inside."""

Catcher = Mapping[str, Any]


@dataclass(frozen=True)
class Errors:
    """
    What the error of a state may be.

    Attributes:
        named: One of these; None for any.
        without: Of any, those that it is not.
        has_cause: Its Cause is a text for certain.
    """

    named: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    has_cause: bool = False

    def __bool__(self) -> bool:
        return self.named is None or bool(self.named)

    def __or__(self, other: Errors) -> Errors:
        """One of either."""
        has_cause = self.has_cause and other.has_cause
        if self.named is None or other.named is None:
            sides = [errors.without for errors in (self, other) if errors.named is None]
            named = (self.named or frozenset()) | (other.named or frozenset())
            return Errors(None, frozenset.intersection(*sides) - named, has_cause)
        return Errors(self.named | other.named, has_cause=has_cause)

    def left_by(self, names: Collection[str]) -> Errors:
        """What a catcher with these names does not take."""
        if self.named is not None:
            return self._one_of(error for error in self.named if not _is_taken(names, error))
        without = self.without | set(names)
        if ALL in names:
            return self._one_of({TOO_LARGE} - without)
        if TASK_FAILED in names:
            return self._one_of((TIMEOUTS | {TOO_LARGE}) - without)
        return replace(self, without=without)

    def taken_by(self, names: Collection[str]) -> Errors:
        """What a catcher with these names takes."""
        if any(map(is_open, names)):
            return self
        if self.named is not None:
            return self._one_of(error for error in self.named if _may_be_taken(names, error))
        if {ALL, TASK_FAILED, BRANCH_FAILED} & set(names):
            return self
        return self._one_of(set(names) - self.without)

    def _one_of(self, names: Iterable[str]) -> Errors:
        return Errors(frozenset(names), has_cause=self.has_cause)


ANY, NONE = Errors(), Errors(frozenset())


class Outcome(NamedTuple):
    """
    How a state ends, with the states inside of it.

    Attributes:
        fails: It fails.
        in_task: A Task has failed, or may fail at the end.
        errors: Which errors it may fail with.
    """

    fails: bool
    in_task: bool
    errors: Errors


class Caught(NamedTuple):
    """
    What becomes of an error.

    Attributes:
        taken: The catchers that may get it, and what each of them gets.
        left: What passes all catchers, and fails what is around the state; false if nothing does.
    """

    taken: list[tuple[Catcher, Errors]]
    left: Errors


def errors_of_fail(state: State) -> Errors:
    """The error of a Fail. One without a name matches no name either."""
    error, cause = (str(state.get(name, "")) for name in ("Error", "Cause"))
    named = None if "ErrorPath" in state or is_open(error) else frozenset({error})
    return Errors(named, has_cause=bool(cause) and not is_open(cause))


def caught(state: State, errors: Errors) -> Caught:
    """What a state does with an error."""
    taken: list[tuple[Catcher, Errors]] = []
    for catcher in state.get("Catch", []):
        names = names_of(catcher)
        may_be_any = any(map(is_open, names))
        if (its := errors.taken_by(names)) or may_be_any:
            taken.append((catcher, its))
        errors = errors if may_be_any else errors.left_by(names)
    return Caught(taken, errors)


def catchers_after(state: State, outcome: Outcome) -> Iterator[tuple[Catcher, Errors]]:
    """
    The catchers that a state may lead to, and what each of them gets.

    A Parallel or a Map may fail itself, though nothing inside has failed, if its Catch names such an error.
    """
    if outcome.fails or outcome.in_task:
        yield from caught(state, outcome.errors).taken
        return
    for catcher in state.get("Catch", []):
        names = names_of(catcher)
        if any(name.startswith("States.") and name not in OF_WHAT_IS_INSIDE for name in names):
            yield catcher, ANY.taken_by(names)


def names_of(catcher: Catcher) -> list[str]:
    """The names of the errors that a catcher takes, such as `States.ALL`."""
    return [str(name) for name in catcher.get("ErrorEquals", [])]


def _is_taken(names: Collection[str], error: str) -> bool:
    """Whether a catcher with these names takes an error for certain."""
    if error in names:
        return True
    if ALL in names:
        return error not in (TOO_LARGE, RUNTIME)
    return TASK_FAILED in names and error not in TIMEOUTS | {TOO_LARGE, RUNTIME}


def _may_be_taken(names: Collection[str], error: str) -> bool:
    """
    Whether it may take it.

    The guide says that `States.TaskFailed` "matches any known error name except for `States.Timeout`". It
    does not say whether this is so for an error that is terminal, nor what `States.BranchFailed` matches.
    Source: Step Functions Developer Guide, "Handling errors in Step Functions workflows".
    """
    if _is_taken(names, error) or BRANCH_FAILED in names:
        return True
    return TASK_FAILED in names and error not in (TIMEOUT, RUNTIME)


def is_open(name: str) -> bool:
    """Whether it is known only once a placeholder or an expression is filled in."""
    return "${" in name or name.lstrip().startswith("{%")
