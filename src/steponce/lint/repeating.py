"""Which calls are not idempotent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steponce.lint.asl import as_object
from steponce.lint.machine import Body, State

_TOKENS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "sqs:sendMessage": (("MessageDeduplicationId",), "a second message is sent"),
    "sns:publish": (("MessageDeduplicationId",), "a second message is sent"),
    "dynamodb:transactWriteItems": (
        ("ClientRequestToken",),
        "it is written again without a ClientRequestToken",
    ),
    "ecs:runTask": (("ClientToken",), "a second task runs without a ClientToken"),
    "athena:startQueryExecution": (
        ("ClientRequestToken",),
        "a second query runs without a ClientRequestToken",
    ),
    "codebuild:startBuild": (("IdempotencyToken",), "a second build runs without an IdempotencyToken"),
}
"""By call: the parameters that make it idempotent, and what a second call does without them."""

_NEVER = {
    "lambda:invoke": "the function runs again",
    "sqs:sendMessageBatch": "second messages are sent",
    "sns:publishBatch": "second messages are sent",
    "events:putEvents": "second events are sent",
    "eventbridge:putEvents": "second events are sent",
    "batch:submitJob": "a second job runs",
    "glue:startJobRun": "a second job runs",
    "ses:sendEmail": "a second mail is sent",
    "sesv2:sendEmail": "a second mail is sent",
    "kinesis:putRecord": "a second record is written",
}


def why_not_repeatable(state: State) -> str | None:
    """What a second call of a Task does; None if it may be idempotent."""
    call = state.call
    if call is None:
        return None
    name = f"{call.service}:{call.action}"
    if name in _NEVER:
        return _NEVER[name]
    if name in _TOKENS:
        keys, what = _TOKENS[name]
        return None if any(_has(state.arguments, key) for key in keys) else what
    special = _SPECIAL.get(name)
    return special(state.arguments) if special else None


def _update(arguments: Body) -> str | None:
    expression = arguments.get("UpdateExpression")
    adds = isinstance(expression, str) and _adds(expression)
    return "the value grows again" if adds and not _has(arguments, "ConditionExpression") else None


def _adds(expression: str) -> bool:
    """Whether an UpdateExpression makes a value from the one that is there."""
    words = expression.replace("(", " ").replace(",", " , ").split()
    if "ADD" in words or "list_append" in words:
        return True
    assigned = [place for place, word in enumerate(words) if word == "=" and place]
    repeated = any(words[place - 1] in words[place + 1 : place + 3] for place in assigned)
    return repeated and bool({"+", "-"} & set(words))


def _request(arguments: Body) -> str | None:
    method = str(arguments.get("Method", arguments.get("HttpMethod", ""))).upper()
    headers = as_object(arguments.get("Headers"))
    named = any(key.removesuffix(".$").lower() == "idempotency-key" for key in headers)
    return f"a second {method} is sent" if method in ("POST", "PATCH") and not named else None


def _start(arguments: Body) -> str | None:
    """A request with its lock token needs no Name: each execution for it ends with the first one's answer."""
    named = _has(arguments, "Name") or _has(as_object(arguments.get("Input")), "lockToken")
    return None if named else "another execution starts without a Name"


def _has(arguments: Body, key: str) -> bool:
    return key in arguments or f"{key}.$" in arguments


_SPECIAL: Mapping[str, Callable[[Body], str | None]] = {
    "states:startExecution": _start,
    "sfn:startExecution": _start,
    "dynamodb:updateItem": _update,
    "http:invoke": _request,
    "apigateway:invoke": _request,
}
