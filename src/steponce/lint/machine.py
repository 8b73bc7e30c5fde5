"""A definition as the rules read it: parts of the wrong type are left out, without an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from steponce.lint.asl import as_object, inner_machines, objects
from steponce.lint.calls import Call
from steponce.lint.definitions import STANDARD, Refusal, refusals_before_substitution
from steponce.lint.values import JSONATA, JSONPATH

Body = dict[str, Any]


@dataclass(frozen=True)
class Handler:
    """A retrier or a catcher. `place` counts from 0; `tries` is MaxAttempts, 3 if it is not given."""

    place: int
    errors: tuple[str, ...]
    body: Body

    @property
    def tries(self) -> int:
        given = self.body.get("MaxAttempts", 3)
        return given if isinstance(given, int) else 3

    @property
    def target(self) -> str:
        return str(self.body.get("Next", ""))


@dataclass(frozen=True)
class State:
    """
    One state.

    Attributes:
        name: Its name.
        body: What the definition says.
        language: The query language that it speaks.
        depth: How many Maps and Parallels enclose it.
        comments: Its own Comment, and those of the machines and states around it.
    """

    name: str
    body: Body
    language: str
    depth: int
    comments: tuple[str, ...]

    @property
    def kind(self) -> str:
        return str(self.body.get("Type"))

    @property
    def is_jsonata(self) -> bool:
        return self.language == JSONATA

    @cached_property
    def call(self) -> Call | None:
        """What a Task calls; None for other states, and for a Resource that is no ARN."""
        return Call.of(self.body.get("Resource")) if self.kind == "Task" else None

    @property
    def arguments(self) -> Body:
        """The arguments of the call: Parameters, or in JSONata Arguments."""
        return as_object(self.body.get("Arguments" if self.is_jsonata else "Parameters"))

    @cached_property
    def retriers(self) -> list[Handler]:
        return handlers(self.body.get("Retry"))

    @cached_property
    def catchers(self) -> list[Handler]:
        return handlers(self.body.get("Catch"))

    @property
    def rules(self) -> list[Body]:
        """The rules of a Choice."""
        return objects(self.body.get("Choices"))

    @cached_property
    def ways_on(self) -> list[str]:
        """The states that it leads to if nothing fails."""
        parts = [self.body, *self.rules]
        given = [part.get(key) for part in parts for key in ("Next", "Default")]
        return [target for target in given if isinstance(target, str)]

    @property
    def ways(self) -> list[str]:
        """All states that it may lead to."""
        return [*self.ways_on, *(catcher.target for catcher in self.catchers)]

    @property
    def ends(self) -> bool:
        """Whether the machine may end in success here."""
        return self.kind == "Succeed" or self.body.get("End") is True


@dataclass(frozen=True)
class Machine:
    """
    A machine, or the one in a Map or in a branch of a Parallel.

    Attributes:
        body: What the definition says.
        states: Its states by their names.
        owner: The name of the state that it is in. Empty for the outermost one.
        inner: The machines in its states.
        kind: STANDARD or EXPRESS, as the outermost one is created.
    """

    body: Body
    states: Mapping[str, State]
    owner: str
    inner: tuple[Machine, ...]
    kind: str = STANDARD

    @property
    def start(self) -> str:
        return str(self.body.get("StartAt"))

    @cached_property
    def graph(self) -> dict[str, list[str]]:
        """Where each state may lead."""
        return {
            name: [way for way in state.ways if way in self.states] for name, state in self.states.items()
        }

    @cached_property
    def refusals(self) -> list[Refusal]:
        """The reasons for which AWS would not create it."""
        return refusals_before_substitution(self.body, self.kind)

    def all(self) -> Iterator[Machine]:
        """This machine and every one inside."""
        yield self
        for machine in self.inner:
            yield from machine.all()

    def all_states(self) -> Iterator[State]:
        """Every state, those of Maps and Parallels too."""
        return (state for machine in self.all() for state in machine.states.values())

    def tasks(self) -> Iterator[tuple[State, Call]]:
        """Every Task whose Resource is an ARN."""
        return ((state, state.call) for state in self.all_states() if state.call is not None)

    def inside(self, state: State) -> list[Machine]:
        """The machines in a Map or a Parallel."""
        return [machine for machine in self.inner if machine.owner == state.name]

    def with_inner(self, state: State) -> Iterator[State]:
        """A state of this machine or of one inside, and the states inside that state."""
        yield state
        for inner in self._inner_of.get(state.name, ()):
            yield from inner.all_states()

    @cached_property
    def _inner_of(self) -> dict[str, list[Machine]]:
        """The machines in each Map and Parallel, at any level, by the name of that state."""
        found: dict[str, list[Machine]] = {}
        for machine in self.all():
            for inner in machine.inner:
                found.setdefault(inner.owner, []).append(inner)
        return found


def read_machine(body: Any, kind: str = STANDARD) -> Machine:
    """Reads a definition, given as parsed JSON."""
    return replace(_machine(as_object(body), JSONPATH, "", 0, ()), kind=kind)


def _machine(body: Body, language: str, owner: str, depth: int, around: tuple[str, ...]) -> Machine:
    spoken = str(body.get("QueryLanguage", language))
    comments = (*around, str(body.get("Comment", "")))
    states: dict[str, State] = {}
    inner: list[Machine] = []
    for name, part in as_object(body.get("States")).items():
        if isinstance(part, dict):
            own = str(part.get("QueryLanguage", spoken))
            states[name] = State(name, part, own, depth, (*comments, str(part.get("Comment", ""))))
            inner += [
                _machine(one, spoken, name, depth + 1, states[name].comments)
                for _, one in inner_machines(part)
            ]
    return Machine(body, states, owner, tuple(inner))


def handlers(value: Any) -> list[Handler]:
    """The retriers or catchers in a list."""
    found = []
    for place, part in enumerate(objects(value)):
        errors = part.get("ErrorEquals")
        names = tuple(name for name in errors if isinstance(name, str)) if isinstance(errors, list) else ()
        found.append(Handler(place, names, part))
    return found


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is neither an object nor a list, under its key."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part, key)
    else:
        yield key, value
