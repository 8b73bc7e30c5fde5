"""Returns what is known of a Task's result, before ResultSelector."""

from __future__ import annotations

import re

from steponce.lint.facts import WHOLE, Facts, there
from steponce.lint.machine import State

_METADATA = there(("SdkHttpMetadata",), ("SdkResponseMetadata",))
_LAMBDA = _METADATA | there(("Payload",), ("StatusCode",), ("ExecutedVersion",))
_ATTRIBUTE_SET = re.compile(r"(?<!\w)(\w+) = ")


def answer(state: State) -> Facts:
    """
    The fields that a result has for certain.

    Item is missing if getItem finds nothing. ReturnValues decides about Attributes. What answers a callback
    or an unknown call is not known at all.
    """
    call = state.call
    if call is None or call.integration != "optimized" or call.waits_for_token:
        return frozenset()
    if call.pattern:
        return there(("Output",)) if call.service == "states" else frozenset()
    if call.does("lambda:invoke"):
        return _LAMBDA | {(WHOLE,)}
    if call.does("dynamodb:getItem"):
        return _METADATA | {(WHOLE,)}
    if call.does("dynamodb:putItem", "dynamodb:updateItem", "dynamodb:deleteItem"):
        return _METADATA | {(WHOLE,)} | _attributes(state)
    return frozenset()


def _attributes(state: State) -> Facts:
    update = str(state.arguments.get("UpdateExpression", ""))
    wanted = state.arguments.get("ReturnValues")
    if wanted not in ("UPDATED_NEW", "ALL_NEW"):
        return frozenset()
    names = _ATTRIBUTE_SET.findall(update)
    return there(("Attributes",), *(("Attributes", name, kind) for name in names for kind in "SN"))
