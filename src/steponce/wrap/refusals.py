"""What cannot go inside a Parallel, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator

from steponce import workflow
from steponce.lint.asl import Machine, machines, states
from steponce.lint.definitions import complaints
from steponce.wrap import context, source
from steponce.wrap.errors import CannotWrap
from steponce.wrap.retry_later import NOTHING_HAPPENED

OURS = frozenset({"IsRequestPrepared", "AcquireLock", "CompleteRequest"})
"""States that only a wrapped machine has together."""

_AROUND = "Wrap it with --around, which leaves the machine as it is."

_JSONATA = "JSONata"
_FIELDS = {"Comment", "StartAt", "States", "TimeoutSeconds", "Version", "QueryLanguage"}


def expect_taken(what: str, text: str) -> None:
    """
    Refuse a definition that AWS would refuse.

    Args:
        what: What to call it in the message.
        text: The definition, as JSON with its placeholders.

    Raises:
        CannotWrap: with every reason, or because it is a template.
    """
    definition = source.read(text)
    if "Resources" in definition:
        raise CannotWrap([f"{what} is a template. Name it with --into, and its machine with --machine."])
    if found := _complaints(definition):
        raise CannotWrap([f"{what} would be refused by AWS: {' '.join(found)}"])


def _complaints(definition: Machine) -> list[str]:
    """Why AWS would refuse it. Nothing is said of a text with a placeholder, which may become anything."""
    return [text for text in complaints(source.with_values(definition)) if "${" not in text]


def expect_valid(definition: Machine) -> None:
    """
    Refuse a machine whose wrapped form AWS would refuse: a renamed state may read its own name by a path.

    Raises:
        CannotWrap: with the reasons.
    """
    if found := _complaints(definition):
        raise CannotWrap([f"What comes of it would be refused by AWS: {' '.join(found)}", _AROUND])


def expect_not_wrapped(machine: Machine) -> None:
    """
    Refuse a machine that is wrapped already.

    Raises:
        CannotWrap: it is.
    """
    if machine["States"].keys() >= OURS:
        raise CannotWrap(
            ["The definition is wrapped already: it has the states of the workflow. Give the one before it."]
        )


def expect_inline(machine: Machine) -> None:
    """
    Refuse what cannot go inside a Parallel.

    Raises:
        CannotWrap: with every reason, and what to do instead.
    """
    reasons = list(_reasons(machine))
    if reasons:
        raise CannotWrap([*reasons, _AROUND])


def taken_names(definition: Machine) -> set[str]:
    """
    The names that no state of the work may have.

    A state's name alone says what it means that an execution died in it. So the work may not have the name of
    a state that this definition leaves out, either.
    """
    known = workflow.BEFORE_WORK | workflow.TAKING_OVER | workflow.OUTCOMES
    return {name for name, _ in states(definition)} | known


def _reasons(machine: Machine) -> Iterator[str]:
    for field in sorted(machine.keys() - _FIELDS):
        yield f"The definition has a field {field!r}, which a Parallel's branch cannot have."
    if machine.get("QueryLanguage") == _JSONATA:
        yield "The machine is in JSONata, which reads the execution's input by an expression of its own."
        return
    for name, state in states(machine):
        if state.get("QueryLanguage") == _JSONATA:
            yield f"{name}: the state is in JSONata."
    for inner in machines(machine):
        if inner.get("ProcessorConfig", {}).get("Mode") == "DISTRIBUTED":
            yield (
                f"{inner['StartAt']}: it is in a distributed Map, whose items are executions of their own. "
                "The owner check cannot see them."
            )
    yield from context.refusals(machine)
    if NOTHING_HAPPENED in json.dumps(machine):
        yield f"The definition has the error {NOTHING_HAPPENED}, by which the workflow releases locks."
