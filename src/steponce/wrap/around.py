"""The workflow starts the machine, which does not change, and waits for its end."""

from __future__ import annotations

from typing import Any

from steponce.workflow import WORK
from steponce.wrap import decisions, source
from steponce.wrap.refusals import expect_not_wrapped
from steponce.wrap.workflow import LONGEST_TIMEOUT_SECONDS, around_work, with_free_placeholders
from steponce.wrap.wrapped import Wrapped

MARGIN_SECONDS = 60
"""The workflow waits longer than its machine may run, so that the machine's own time-out comes first."""

TIMEOUT_SECONDS = 2_588_400
"""How long it waits for a machine without a time-out: an hour less than the workflow's own 30 days."""

_OF_THE_WORKFLOW_SECONDS = 3_600


def wrap_around(text: str) -> Wrapped:
    """
    Wrap a machine by starting it from the workflow. The machine itself does not change.

    Args:
        text: The definition of a Standard state machine, as JSON with its placeholders.

    Raises:
        CannotWrap: it is wrapped already.
    """
    machine = source.read(text)
    expect_not_wrapped(machine)
    given = machine.get("TimeoutSeconds")
    limit = LONGEST_TIMEOUT_SECONDS - _OF_THE_WORKFLOW_SECONDS
    seconds = min(given + MARGIN_SECONDS, limit) if isinstance(given, int) else TIMEOUT_SECONDS
    whole = max(seconds, TIMEOUT_SECONDS) + _OF_THE_WORKFLOW_SECONDS
    workflow, substitutions = with_free_placeholders(
        around_work(_work(seconds), timeout_seconds=whole), source.placeholders(text)
    )
    return Wrapped(
        form="around",
        definition=workflow,
        substitutions=substitutions,
        decisions=decisions.around(machine, seconds),
    )


def _work(seconds: int) -> dict[str, Any]:
    return {
        WORK: {
            "Comment": "Your state machine, which gets the payload and stays as it is. The child is named "
            "after this attempt, so a try whose answer was lost finds the child, while that runs. Its end "
            "is the end of the work, also if this execution dies.",
            "Type": "Task",
            "Resource": "arn:${Partition}:states:::states:startExecution.sync:2",
            "TimeoutSeconds": seconds,
            "Parameters": {
                "StateMachineArn": "${WorkStateMachineArn}",
                "Name.$": "States.Format('{}-{}', States.Hash(States.Format('{}/{}', $.lockToken, $.callId), "
                "'SHA-256'), $.held.attempt)",
                "Input.$": "$.payload",
            },
            "ResultSelector": {"result.$": "$.Output"},
            "ResultPath": "$.work",
            "Retry": [
                {
                    "ErrorEquals": [
                        "StepFunctions.AWSStepFunctionsException",
                        "StepFunctions.SdkClientException",
                    ],
                    "IntervalSeconds": 1,
                    "BackoffRate": 2.0,
                    "MaxAttempts": 5,
                    "MaxDelaySeconds": 30,
                    "JitterStrategy": "FULL",
                }
            ],
            "Catch": [
                {
                    "ErrorEquals": ["StepFunctions.StateMachineDoesNotExistException"],
                    "ResultPath": "$.failure",
                    "Next": "ReleaseLock",
                },
                {
                    "ErrorEquals": ["States.DataLimitExceeded"],
                    "ResultPath": "$.failure",
                    "Next": "ResultTooLarge",
                },
                {"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "RecordError"},
            ],
            "Next": "CompleteRequest",
        }
    }
