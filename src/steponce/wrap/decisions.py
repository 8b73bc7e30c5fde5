"""What remains for a person to decide after a machine was wrapped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steponce.lint.asl import Machine, states
from steponce.wrap import context, source
from steponce.wrap.machine import is_action

_WORK_TIMEOUT = (
    "WorkTimeoutSeconds: set it to the longest time-out of the functions that your states call, 900 at the "
    "most. A stopped execution may still have effects for that long."
)
RETENTION_SECONDS = 7_776_000
"""The default of the parameter RetentionSeconds."""


def inline(
    machine: Machine,
    seconds: int | str,
    releasing: Sequence[str],
    renamed: Mapping[str, str],
    changed: Sequence[str],
) -> list[str]:
    """
    Of a machine whose states are in the workflow.

    Args:
        machine: As it was before.
        seconds: The workflow's TimeoutSeconds, a number or a placeholder.
        releasing: The states whose RetryLater releases the lock.
        renamed: The new names of states.
        changed: The states whose references to the execution's input are other ones now.
    """
    found = [
        *_who_starts_it(),
        _retry_later(machine, releasing),
        _final_errors(machine),
        _WORK_TIMEOUT,
    ]
    if "TimeoutSeconds" in machine:
        given = machine["TimeoutSeconds"]
        more = seconds - given if isinstance(given, int) and isinstance(seconds, int) else 0
        less = "" if more else " Nothing could be added, so the work has some minutes less."
        found.append(
            f"The machine's TimeoutSeconds {source.shown(given)} is now the workflow's, with {more} seconds "
            f"more for the workflow's own states.{less} If it is reached, the outcome is unknown, and a "
            "person decides. If the rate limit has a longer window, raise it."
        )
    else:
        found.append(
            f"The machine has no TimeoutSeconds, and the workflow's is {seconds}. It stops a request that "
            "takes longer, and its outcome is then unknown. Raise it in the wrapped definition if a request "
            "may take longer."
        )
    found += _retention(seconds)
    reading = dict(context.notes(machine))
    if reading:
        found.append(
            f"{_listed(list(reading))} read {_listed(sorted(set(reading.values())))}, which is now the "
            "workflow's execution. In a second attempt its name ends in --2. Do not derive from it anything "
            "that must be the same in all attempts."
        )
    if renamed:
        pairs = (f"{before} is called {after}" for before, after in renamed.items())
        found.append(f"{_listed(list(pairs))}. Change what looks for these names in logs and metrics.")
    if changed:
        found.append(
            f"Check {_listed(list(changed))}: the execution's input is now the envelope, so references to it "
            "were changed to its payload."
        )
    return found


def around(machine: Machine, seconds: int) -> list[str]:
    """
    Of a machine that the workflow starts.

    Args:
        machine: As it is.
        seconds: How long the workflow waits for its end.
    """
    waits = f"The workflow waits {seconds} seconds for the machine, and then stops it."
    if "TimeoutSeconds" not in machine:
        waits += " The machine has no TimeoutSeconds of its own; give it one."
    return [
        "The machine must be a Standard one. WorkStateMachineArn is its ARN.",
        "OtherStateMachines of the installation has the machine's ARN, so that the functions that settle "
        "locks may describe its executions. Without it, a request whose workflow dies while the machine runs "
        "stays in progress.",
        *_who_starts_it(),
        "If the machine fails, the error is States.TaskFailed, and the request waits for a person. "
        "FinalErrors and RetryLater do not apply.",
        waits,
        *_retention(seconds),
        _WORK_TIMEOUT,
        "WhenOutcomeUnknown: keep hold. With take-over, a machine that was stopped is started again, and its "
        "effects must be safe to repeat.",
    ]


def _retention(seconds: int | str) -> list[str]:
    """What a request needs that takes longer than its answer is kept, if there can be one."""
    if isinstance(seconds, int) and seconds < RETENTION_SECONDS:
        return []
    return [
        "RetentionSeconds counts from the start of a request. Make it longer than your longest request, or "
        "the answer may have expired when it is recorded, and the request can run again."
    ]


def _who_starts_it() -> list[str]:
    return [
        "Whatever starts the machine now must start requests instead: by a trigger, a client or the command "
        'line. An execution started by hand gets {"payload": INPUT}.',
        "There are no records of what ran before the first wrap. Deploy that wrap when no sender will repeat "
        "a request of that time: its work would run again, also under an id that named an execution.",
    ]


def _retry_later(machine: Machine, releasing: Sequence[str]) -> str:
    others = [name for name, state in states(machine) if is_action(state) and name not in releasing]
    kept = f" Raised by {_listed(others)} it is an error that waits for a person." if others else ""
    if not releasing:
        return f"RetryLater releases no lock here.{kept} See --may-retry-later."
    unsure = [name for name in releasing if machine["States"][name]["Resource"].startswith("${")]
    which = f" {_listed(unsure)} must call a function, and not an activity." if unsure else ""
    return f"RetryLater releases the lock if {_listed(releasing)} raises it.{which}{kept}"


def _final_errors(machine: Machine) -> str:
    names = sorted({str(state["Error"]) for _, state in states(machine) if "Error" in state})
    which = f" The machine's Fail states have {_listed(names)}." if names else ""
    return (
        "FinalErrors: which errors are answers that are kept and replayed to everyone? All others wait for a "
        f"person.{which}"
    )


def _listed(names: Sequence[Any]) -> str:
    shown = [str(name) for name in names[:5]]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(shown) + more
