"""The workflow around the work: the states of `run_once.asl.json` that it needs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

from steponce.lint.asl import Machine, reachable
from steponce.scaffold import workflow
from steponce.workflow import WORK
from steponce.wrap.machine import edges
from steponce.wrap.source import placeholders

LONGEST_TIMEOUT_SECONDS = 31_536_000
"""AWS ends every execution after a year."""

_PREFIX = "Steponce"


def around_work(states: dict[str, Any], *, timeout_seconds: int | None = None) -> Machine:
    """
    The workflow with these states for its work; the first is where the work begins.

    States that nothing leads to any more are left out, since AWS refuses them.

    Args:
        states: `DoWork`, and others that it leads to.
        timeout_seconds: The least time-out that the whole needs. Default: that of a new application.
    """
    definition: Machine = json.loads(workflow.definition(callback=False))
    definition["States"] = {
        name: inserted
        for place, state in definition["States"].items()
        for name, inserted in (states.items() if place == WORK else [(place, state)])
    }
    if timeout_seconds is not None:
        definition["TimeoutSeconds"] = min(timeout_seconds, LONGEST_TIMEOUT_SECONDS)
    kept = reachable(edges(definition), definition["StartAt"])
    definition["States"] = {name: state for name, state in definition["States"].items() if name in kept}
    return definition


def with_free_placeholders(definition: Machine, theirs: Iterable[str]) -> tuple[Machine, dict[str, str]]:
    """
    Give each placeholder of the workflow another name where the machine has it, too.

    Args:
        definition: The workflow, without the machine's own states.
        theirs: The names of the machine's placeholders.

    Returns:
        The definition, and the name of each placeholder of the workflow in it.
    """
    text, taken = json.dumps(definition), set(theirs)
    names = {name: _free(name, taken) for name in sorted(placeholders(text))}
    for before, after in names.items():
        text = text.replace(f"${{{before}}}", f"${{{after}}}")
    renamed: Machine = json.loads(text)
    return renamed, names


def _free(name: str, taken: Collection[str]) -> str:
    """The name, with as many prefixes as it takes."""
    while name in taken:
        name = _PREFIX + name
    return name
