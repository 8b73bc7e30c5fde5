"""Puts the states of the machine into the workflow: a Parallel with one branch replaces DoWork."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any

from steponce.lint.asl import Machine, machines, states, transitions
from steponce.workflow import WORK
from steponce.wrap import context, decisions, retry_later, source
from steponce.wrap.refusals import expect_inline, expect_not_wrapped, expect_valid, taken_names
from steponce.wrap.workflow import around_work, with_free_placeholders
from steponce.wrap.wrapped import Wrapped

SAY_RETRY_LATER = "SayRetryLater"
REFUSE_RETRY_LATER = "RefuseRetryLater"
RETRY_LATER_REFUSED = "RetryLaterRefused"
"""The error of a request whose work raised RetryLater after an effect may have happened."""

MARGIN_SECONDS = 900
"""The longest time that the workflow's own states take beside the work, retries included."""

_PREFIX = "Work"


def wrap_inline(
    text: str, *, may_retry_later: Sequence[str] | None = None, activities: Collection[str] = ()
) -> Wrapped:
    """
    Wrap a machine by putting its states into the workflow.

    Args:
        text: The definition of a Standard state machine that AWS takes, as JSON with its placeholders.
        may_retry_later: The states whose RetryLater releases the lock, by their former names. Default: those
            that no other state with an effect is before.
        activities: The placeholders that stand for an activity or an integration. These cannot release the
            lock, and any other placeholder that is a whole Resource counts as a function's.

    Raises:
        CannotWrap: the machine cannot go inside a Parallel, or a named state cannot release the lock.
    """
    machine = source.read(text)
    expect_not_wrapped(machine)
    expect_inline(machine)
    if may_retry_later is None:
        releasing = retry_later.first_states(machine, activities)
    else:
        releasing = retry_later.checked(machine, may_retry_later, activities)
    before, error = copy.deepcopy(machine), retry_later.error_of(machine)
    seconds = machine.get("TimeoutSeconds")
    needed = seconds + MARGIN_SECONDS if isinstance(seconds, int) else None
    workflow = around_work(_work(_ends(error if releasing else None)), timeout_seconds=needed)
    workflow, substitutions = with_free_placeholders(workflow, source.placeholders(text))
    if isinstance(seconds, str):  # a placeholder, to which nothing can be added
        workflow["TimeoutSeconds"] = seconds

    renamed = _rename(machine, taken_names(workflow) | {retry_later.FAIL_STATE})
    changed = context.rewrite(machine, {after: name for name, after in renamed.items()})
    retry_later.let_release(machine, [renamed.get(name, name) for name in releasing], error)
    branch = {key: machine[key] for key in ("Comment", "StartAt", "States") if key in machine}
    workflow["States"][WORK]["Branches"] = [branch]
    expect_valid(workflow)
    return Wrapped(
        form="inline",
        definition=workflow,
        substitutions=substitutions,
        renamed=renamed,
        may_retry_later=releasing,
        decisions=decisions.inline(before, workflow["TimeoutSeconds"], releasing, renamed, changed),
    )


def _work(ends: list[dict[str, Any]]) -> dict[str, Any]:
    """The Parallel, still without its branch, and the states that its errors lead to."""
    catches = [
        *ends,
        {"ErrorEquals": ["${FinalErrors}"], "ResultPath": "$.failure", "Next": "RecordFinalError"},
        {"ErrorEquals": ["States.DataLimitExceeded"], "ResultPath": "$.failure", "Next": "RecordError"},
        {"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "RecordError"},
    ]
    work: dict[str, Any] = {
        WORK: {
            "Comment": "Your states, which get the payload and nothing else. No Retry: a second try would "
            "repeat the effects of the states that have run.",
            "Type": "Parallel",
            "InputPath": "$.payload",
            "Branches": [],
            "ResultSelector": {"result.$": "$[0]"},
            "ResultPath": "$.work",
            "Catch": catches,
            "Next": "CompleteRequest",
        }
    }
    if any(catcher["Next"] == SAY_RETRY_LATER for catcher in ends):
        work[SAY_RETRY_LATER] = {
            "Comment": "A state that no effect comes before has raised RetryLater, or Lambda has not run it.",
            "Type": "Pass",
            "Parameters": {"Error": "RetryLater", "Cause.$": "$.failure.Cause"},
            "ResultPath": "$.failure",
            "Next": "ReleaseLock",
        }
    work[REFUSE_RETRY_LATER] = {
        "Comment": "A state raised it after an effect may have happened. So the lock is kept, for a person.",
        "Type": "Pass",
        "Parameters": {
            "Error": RETRY_LATER_REFUSED,
            "Cause.$": "States.Format('This state or states before it may have had effects, so the lock is "
            "not released. The error: {}', States.JsonToString($.failure))",
        },
        "ResultPath": "$.failure",
        "Next": "RecordError",
    }
    return work


def _ends(error: str | None) -> list[dict[str, Any]]:
    """The Catch for RetryLater: where it may release the lock, it arrives as this error."""
    refused = {
        "ErrorEquals": retry_later.RELEASING,
        "ResultPath": "$.failure",
        "Next": REFUSE_RETRY_LATER,
    }
    released = {
        "ErrorEquals": [error],
        "ResultPath": "$.failure",
        "Next": SAY_RETRY_LATER,
    }
    return [released, refused] if error else [refused]


def _rename(machine: Machine, taken: set[str]) -> dict[str, str]:
    """Give each state whose name is taken another one. The machine is changed."""
    own = {name for name, _ in states(machine)}
    renamed: dict[str, str] = {}
    for name in sorted(own & taken):
        free = _PREFIX + name
        while free in taken or free in own:
            free = _PREFIX + free
        renamed[name] = free
    for inner in machines(machine):
        inner["StartAt"] = renamed.get(inner["StartAt"], inner["StartAt"])
        inner["States"] = {renamed.get(name, name): state for name, state in inner["States"].items()}
        for state in inner["States"].values():
            for part, key in transitions(state):
                part[key] = renamed.get(part[key], part[key])
    return renamed
