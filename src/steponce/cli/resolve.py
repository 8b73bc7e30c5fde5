"""Sends an answer through the function resolve_awaiting_step. Nothing else in a stack may answer a task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from steponce.aws.errors import answering
from steponce.callbacks.answer import Verdict
from steponce.errors import InvalidAnswer, OutputTooLarge, SteponceError, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

_VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_REFUSALS: Mapping[str, type[SteponceError]] = {
    kind.__name__: kind for kind in (InvalidAnswer, OutputTooLarge, Unavailable)
}


def resolve(functions: LambdaClient, function: str, step_id: str, answer: Mapping[str, Any]) -> Verdict:
    """
    Send an answer to an awaiting step.

    Args:
        functions: A Lambda client that may invoke the function.
        function: Its name or ARN; the template's Output `ResolveAwaitingStepFunction`.
        step_id: The awaiting-step id.
        answer: What `Answer.parse` reads.

    Raises:
        InvalidAnswer, OutputTooLarge: the function refused the answer; nothing was sent.
        Unavailable: the outcome is not known. The same answer is safe to send again.
    """
    event = json.dumps({"awaitingStepId": step_id, "answer": answer})
    with answering("Lambda"):
        reply = functions.invoke(FunctionName=function, Payload=event.encode())
        returned = _object(reply["Payload"].read())
    if "FunctionError" in reply:
        raise _refusal(function, returned)
    for verdict in _VERDICTS:
        if returned.get("verdict") == verdict:
            return verdict
    raise _unknown(function, "gave no verdict that this version knows")


def _refusal(function: str, returned: Mapping[str, Any]) -> SteponceError:
    """
    The error that the function raised.

    Of a foreign error only the name is shown, because its text may quote a task token.
    """
    name = str(returned.get("errorType") or "an error without a name")
    if name in _REFUSALS:
        return _REFUSALS[name](str(returned.get("errorMessage", "")))
    return _unknown(function, f"failed with {name}")


def _unknown(function: str, how: str) -> Unavailable:
    return Unavailable(
        f"The function {function} {how}, so nobody knows what became of the answer. Its log says more; the "
        "same answer is safe to send again."
    )


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
