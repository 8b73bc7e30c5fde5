"""
Which states may release the lock by raising RetryLater.

RetryLater says that nothing has happened, and so the lock is released and the request may run again. Of work
in several states this is true only before the first effect. Nobody knows what a state that has run did, so
only a state that no Task, Map or Parallel comes before may release the lock; or one that the user names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from typing import Any

from steponce.errors import RetryLater
from steponce.lint.asl import Machine, State, reachable
from steponce.workflow import THROTTLED
from steponce.wrap.errors import CannotWrap
from steponce.wrap.machine import catches, edges, is_action

FAIL_STATE = "NothingHappened"
NOTHING_HAPPENED = "Steponce.NothingHappened"
"""The state that ends the branch where the lock may be released, and how its error begins."""

RELEASING = [RetryLater.__name__, THROTTLED]

_FUNCTIONS = (":states:::lambda:invoke", ":lambda:")

_HANDED_OUT = re.compile(r"""(\$\$|context)(\.|\[\\?['"])Task\b""")
"""In the parameters of a callback, which reads its token, also where its Resource is a placeholder."""


def error_of(machine: Machine) -> str:
    """
    The error by which this machine releases its lock.

    A Fail state may take its error from data, and a waiting task takes it from the answer that it gets. So
    the name ends with a digest of the definition, which the definition itself cannot contain.
    """
    digest = sha256(json.dumps(machine, sort_keys=True).encode()).hexdigest()
    return f"{NOTHING_HAPPENED}.{digest[:16]}"


def first_states(machine: Machine, activities: Collection[str] = ()) -> list[str]:
    """
    The states that may release the lock: nothing that may have an effect is before them.

    Args:
        machine: All states.
        activities: The placeholders that stand for an activity or an integration, and not for a function.
    """
    graph = edges(machine)
    acting = [name for name, state in machine["States"].items() if is_action(state)]
    after = set().union(*(reachable(graph, *graph[name]) for name in acting))
    return [name for name in acting if name not in after and not list(_reasons(name, machine, activities))]


def checked(machine: Machine, named: Sequence[str], activities: Collection[str] = ()) -> list[str]:
    """
    The states that the user has named, each once.

    Raises:
        CannotWrap: one of them cannot release the lock, whatever the user knows of it.
    """
    reasons = [reason for name in named for reason in _reasons(name, machine, activities)]
    if reasons:
        raise CannotWrap(reasons)
    return list(dict.fromkeys(named))


def let_release(machine: Machine, names: Sequence[str], error: str) -> None:
    """Let the RetryLater of these states end the machine with this error. The machine is changed."""
    for name in names:
        catcher = {"ErrorEquals": RELEASING, "Next": FAIL_STATE}
        state = machine["States"][name]
        state["Catch"] = [catcher, *state.get("Catch", [])]
    if names:
        machine["States"][FAIL_STATE] = {
            "Comment": "No effect comes before this, so the lock may be released.",
            "Type": "Fail",
            "Error": error,
            "CausePath": "$.Cause",
        }


def _reasons(name: str, machine: Machine, activities: Collection[str]) -> Iterator[str]:
    """Why a state cannot release the lock."""
    state = machine["States"].get(name)
    if state is None:
        yield f"{name}: the machine has no such state outside of its Maps and Parallels."
        return
    if not _is_function(state, activities):
        yield f"{name}: only a Task that calls a function and waits for its answer can raise RetryLater."
        return
    graph = edges(machine)
    if name in reachable(graph, *graph[name]):
        yield f"{name}: a loop leads back to it, and then its first round has had its effects."
    if any(catches(state, error) for error in RELEASING):
        yield f"{name}: its own Catch takes RetryLater, so nobody else sees it."
    for retrier in state.get("Retry", []):
        others = [error for error in retrier["ErrorEquals"] if error not in RELEASING]
        if others and retrier.get("MaxAttempts", 3) != 0:
            yield (
                f"{name}: its Retry repeats it after {', '.join(others)}. Such a try may have had effects, "
                "and RetryLater speaks of the last try alone."
            )


def _is_function(state: State, activities: Collection[str]) -> bool:
    resource: Any = state.get("Resource", "")
    placeholder = resource.removeprefix("${").removesuffix("}") if resource.startswith("${") else ""
    calls = any(part in resource for part in _FUNCTIONS) or (placeholder and placeholder not in activities)
    is_callback = resource.endswith(".waitForTaskToken") or _HANDED_OUT.search(json.dumps(state))
    return state["Type"] == "Task" and bool(calls) and not is_callback
