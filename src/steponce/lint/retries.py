"""Rules for retries."""

from __future__ import annotations

from collections.abc import Iterator

from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Handler, Machine, State
from steponce.lint.repeating import why_not_repeatable
from steponce.lint.rule import Rules

RETRIES = Rules("general")

FUNCTION_DIED = {"Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory"}
"""A function ran out of time or memory, at any point of its work."""

AFTER_WORK = {"States.ALL", "States.TaskFailed", "States.Timeout"} | FUNCTION_DIED
"""Errors after which the work may be done."""

REFUSED = "ConditionalCheckFailedException"
_LARGE = {"lambda", "dynamodb", "http", "apigateway", "bedrock"}
_LARGE_CALLS = {"athena:getQueryResults", "s3:getObject", "sfn:describeExecution"}


@RETRIES.rule("retry-repeats-work", "warning")
def retry_repeats_work(machine: Machine) -> Complaints:
    """
    A Retry may repeat work that is already done and is not idempotent.

    "Standard Workflows employ an exactly-once model, where your tasks and states are never executed more than
    once unless you have specified `Retry` behavior in ASL." After `States.ALL`, `States.TaskFailed` and
    `States.Timeout` the work may have happened: an answer was lost, or a function failed after its effect. A
    time-out does not stop a function, so the second try runs beside the first. `Lambda.Unknown`,
    `Sandbox.Timedout`, `Runtime.ExitError` and `Runtime.OutOfMemory` say that a function ran out of time or
    memory in its work.

    These count as not idempotent: a function; an execution without a `Name`, unless its `Input` has a
    `lockToken`, as a request has; a message without a deduplication id; an event; a job that AWS starts
    again, such as `glue:startJobRun`, or `ecs:runTask` without a `ClientToken`; a POST; an `updateItem` that
    adds to a value without a condition.

    Name only errors that come before the work: for a function `Lambda.TooManyRequestsException`, and also
    AWS's own proposal of `Lambda.ServiceException`, `Lambda.AWSLambdaException` and
    `Lambda.SdkClientException`, which this rule allows. Or make the work idempotent, and say so in the
    Comment. [A guard](guards.md) or Powertools does that for a function.

    Source: [Standard and Express workflows](https://docs.aws.amazon.com/step-functions/latest/dg/choosing-workflow-type.html).
    """
    for state in machine.all_states():
        reasons = map(why_not_repeatable, machine.with_inner(state))
        reason = next((why for why in reasons if why), None)
        if reason is None:
            continue
        for retrier in state.retriers:
            names = sorted(AFTER_WORK & set(retrier.errors))
            if names and retrier.tries > 0:
                text = f"{', '.join(names)} may come after the work, and {reason}"
                advice = "Retry only errors that come before it, or make it idempotent."
                yield Complaint(state.name, f"{text}. {advice}")
                break


@RETRIES.rule("retry-refused-write", "warning")
def retry_refused_write(machine: Machine) -> Complaints:
    """
    A Retry repeats a conditional write whose condition was false.

    `States.TaskFailed` and `States.ALL` match `ConditionalCheckFailedException`. The condition stays false,
    so each try costs a transition and a write, and the Catch waits for all of them. Put a retrier with
    `"MaxAttempts": 0` for this error before the others.
    """
    for state, call in machine.tasks():
        if call.service == "dynamodb" and "ConditionExpression" in state.arguments:
            for retrier in _until_excluded(state, REFUSED):
                matching = [name for name in retrier.errors if _matches(name, REFUSED)]
                if matching and retrier.tries > 0:
                    text = f"{matching[0]} tries a refused write again."
                    advice = f'Put a retrier for {REFUSED} with "MaxAttempts": 0 first.'
                    yield Complaint(state.name, f"{text} {advice}")
                    break


@RETRIES.rule("retry-too-large", "warning")
def retry_too_large(machine: Machine) -> Complaints:
    """
    A Retry repeats work whose result was too large.

    A result over 256 KiB is `States.DataLimitExceeded`: the work is done, only its answer is lost.
    `States.TaskFailed` "matches any known error name except for `States.Timeout`", so it matches this one.
    The second answer is as large, and the work has been done twice. Put a retrier for it with `"MaxAttempts":
    0` before the others. The rule is about calls whose answers can be large: functions, items, objects, HTTP
    answers and other executions.

    Source: [Handling errors](https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html).
    """
    for state in machine.all_states():
        if state.kind not in ("Parallel", "Map") and not _answers_may_be_large(state):
            continue
        for retrier in _until_excluded(state, "States.DataLimitExceeded"):
            matching = {"States.TaskFailed", "States.DataLimitExceeded"} & set(retrier.errors)
            if matching and retrier.tries > 0:
                text = f"{min(matching)} matches States.DataLimitExceeded, and the work is done then."
                advice = 'Put a retrier for it with "MaxAttempts": 0 first.'
                yield Complaint(state.name, f"{text} {advice}")
                break


def _answers_may_be_large(state: State) -> bool:
    call = state.call
    if call is None:
        return False
    child = call.does("states:startExecution") and call.pattern.startswith("sync")
    return call.service in _LARGE or call.does(*_LARGE_CALLS) or child


def _until_excluded(state: State, error: str) -> Iterator[Handler]:
    """The retriers that can match an error: those before one that names it and does not retry."""
    for retrier in state.retriers:
        if retrier.tries == 0 and any(_matches(name, error) for name in retrier.errors):
            return
        yield retrier


def _matches(name: str, error: str) -> bool:
    return name in ("States.ALL", "States.TaskFailed", error) or name.endswith(f".{error}")
