"""Rules for the names of errors in Retry and Catch, and for how a caught error is handled."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from steponce.lint.asl import reachable
from steponce.lint.calls import Call
from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Handler, Machine, State
from steponce.lint.rule import Rules
from steponce.lint.services import errors_of

ERROR_NAMES = Rules("general")

RESERVED = {
    "States.ALL",
    "States.BranchFailed",
    "States.DataLimitExceeded",
    "States.ExceedToleratedFailureThreshold",
    "States.HeartbeatTimeout",
    "States.Http.Socket",
    "States.IntrinsicFailure",
    "States.ItemReaderFailed",
    "States.NoChoiceMatched",
    "States.ParameterPathFailure",
    "States.Permissions",
    "States.QueryEvaluationError",
    "States.ResultPathMatchFailure",
    "States.ResultWriterFailed",
    "States.TaskFailed",
    "States.Timeout",
}
"""The errors of Step Functions itself that a Retry or a Catch can match."""

_PREFIXES = {
    "dynamodb": ("DynamoDB", "DynamoDb"),
    "states": ("StepFunctions", "Sfn"),
    "sfn": ("StepFunctions", "Sfn"),
}
"""By service: how the errors of the optimized integration begin, and those of the AWS SDK integration."""

_LAMBDA = {
    "AWSLambdaException",
    "ClientExecutionTimeoutException",
    "SdkClientException",
    "ServiceException",
    "TooManyRequestsException",
    "Unknown",
}


@ERROR_NAMES.rule("error-name", "error")
def error_name(machine: Machine) -> Complaints:
    """
    A Retry or a Catch names an error of Step Functions that does not exist, or that nothing can catch.

    Names that begin with `States.` are reserved. A misspelt name matches nothing, and AWS does not report it.
    The name is allowed if a Fail state of the same machine raises it. `States.Runtime` "is not retriable, and
    will always cause the execution to fail": a missing path or a value of the wrong type causes it. Test for
    the path in a Choice instead.

    Source: [Handling errors](https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html).
    """
    raised = {str(state.body.get("Error")) for state in machine.all_states() if state.kind == "Fail"}
    for state, handler in _handlers(machine):
        for name in handler.errors:
            if name == "States.Runtime":
                yield Complaint(
                    state.name, "nothing catches States.Runtime. Test for what is missing in a Choice."
                )
            elif name.startswith("States.") and not _is_reserved(name) and name not in raised:
                close = get_close_matches(name, RESERVED, 1)
                hint = f" Did you mean {close[0]}?" if close else ""
                yield Complaint(state.name, f"there is no error {name}.{hint}")


def _is_reserved(name: str) -> bool:
    return name in RESERVED or name.startswith("States.Http.StatusCode.")


@ERROR_NAMES.rule("error-spelling", "error")
def error_spelling(machine: Machine) -> Complaints:
    """
    A Retry or a Catch spells an error differently from its integration, so it never matches.

    `dynamodb:putItem` raises `DynamoDB.ConditionalCheckFailedException`, and `aws-sdk:dynamodb:putItem`
    raises `DynamoDb.ConditionalCheckFailedException`. Names are case-sensitive. Where the API's name lacks
    the suffix `Exception`, the AWS SDK integrations append it: `Sfn.ExecutionAlreadyExistsException`. In the
    optimized ones the rule takes such a name with the suffix and without, as AWS's guide does. Both spellings
    in one list are fine. So is an exception that the API's model does not list, unless it looks like a
    misspelling of one that it lists.

    Source: [AWS SDK integrations](https://docs.aws.amazon.com/step-functions/latest/dg/supported-services-awssdk.html).
    """
    for state in machine.all_states():
        calls = [inner.call for inner in machine.with_inner(state) if inner.call is not None]
        for handler in [*state.retriers, *state.catchers]:
            for name in handler.errors:
                right = _right_spelling(name, calls)
                if right is not None and right not in handler.errors:
                    yield Complaint(state.name, f"{name} never matches here. Write {right}.")


def _right_spelling(name: str, calls: list[Call]) -> str | None:
    """The right spelling of an error; None if it is spelled right, or if that is unknown."""
    prefix, dot, rest = name.partition(".")
    possible = [(own, call) for call in calls for own in _prefixes(call) if own.lower() == prefix.lower()]
    if not dot or not possible:
        return _other_family(prefix, rest, calls) if dot else None
    known = {error for _, call in possible for error in _errors(call)}
    spellings = {f"{own}.{_closest(rest, known)}" for own, _ in possible}
    return None if name in spellings else min(spellings)


def _closest(name: str, known: set[str]) -> str:
    """The name of an exception, or the known one that it was probably meant to be."""
    whole = f"{name}Exception"
    if name in known or whole in known:
        return name if name in known else whole
    close = get_close_matches(name, sorted(known), 1, 0.85)
    return close[0] if close else name


def _other_family(prefix: str, rest: str, calls: list[Call]) -> str | None:
    """`Sfn.X` where `StepFunctions.X` would match, and the other way round."""
    for call in calls:
        if call.service in _PREFIXES and prefix in _PREFIXES[call.service]:
            return f"{_prefixes(call)[0]}.{rest}"
    return None


def _prefixes(call: Call) -> list[str]:
    if call.integration in ("function", "optimized") and call.service == "lambda":
        return ["Lambda"]
    optimized, sdk = _PREFIXES.get(call.service, ("", ""))
    found = {"optimized": optimized, "sdk": sdk}.get(call.integration)
    return [found] if found else []


def _errors(call: Call) -> set[str]:
    found = errors_of(call)
    return found | _LAMBDA if call.service == "lambda" else found


@ERROR_NAMES.rule("swallowed-failure", "warning")
def swallowed_failure(machine: Machine) -> Complaints:
    """
    A Catch of all errors leads to a successful end, and no state on the way handles the error.

    The execution is `SUCCEEDED`, so no alarm is raised, and its caller takes the work for done. Let it lead
    to a Fail state. The rule does not apply to a catcher that does something, such as a compensation, a
    default value or a message to a person. Nor does it apply inside a Map or a Parallel, where one item may
    fail without the others.
    """
    for state in machine.states.values():
        for catcher in state.catchers:
            if set(catcher.errors) & {"States.ALL", "States.TaskFailed"} and _ends_well(
                machine, catcher.target
            ):
                names = ", ".join(catcher.errors)
                text = f"{names} leads to success by {catcher.target}. Lead it to a Fail state."
                yield Complaint(state.name, text)


def _ends_well(machine: Machine, start: str) -> bool:
    """Whether every path from here ends in success without an action."""
    after = [machine.states[name] for name in reachable(machine.graph, start) if name in machine.states]
    return bool(after) and all(
        state.kind in ("Succeed", "Choice") or (state.kind == "Pass" and not _gives_default(state))
        for state in after
    )


def _gives_default(state: State) -> bool:
    return bool({"Result", "Parameters", "Output", "Assign"} & set(state.body))


def _handlers(machine: Machine) -> Iterator[tuple[State, Handler]]:
    for state in machine.all_states():
        for handler in [*state.retriers, *state.catchers]:
            yield state, handler
