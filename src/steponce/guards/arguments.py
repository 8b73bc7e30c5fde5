"""What the arguments of a decorated function's call say: its payload, its key, and Lambda's context."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from types import CodeType, NoneType
from typing import Any

import jmespath

from steponce.errors import InvalidSetting, MissingKey
from steponce.guards.annotations import signature_of
from steponce.guards.invocation import is_context
from steponce.guards.models import is_model
from steponce.guards.plain import plain_argument
from steponce.request.canonical import in_one_form
from steponce.request.expressions import find
from steponce.request.settings import is_no_key, is_null

_PLAIN = (str, int, float, bool, list, dict, NoneType)
"""JSON's own types. A method's object is none of them."""

_BY_PATHS = 'lock_token="record.messageId", payload="record.body"'
"""How a decorator says what counts in a message of SQS."""


class Arguments:
    """
    How the arguments of one function are read.

    Args:
        function: The function.
        lock_token: The JMESPath of the key. None: the payload's hash is the key.
        payload: The JMESPath of the payload. None: all arguments are.
        shared: The stack's PayloadHashPath, which picks the part of a payload that two sends share.
    """

    def __init__(
        self, function: Callable[..., Any], lock_token: str | None, payload: str | None, shared: str | None
    ) -> None:
        self._function = function
        self._called = name_of(function)
        self._lock_token = lock_token
        self._payload = payload
        self._shared = shared
        self._signature = signature_of(function)

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """
        The arguments by name, as JSON, and Lambda's context if it is one of them.

        Left out are the context and a method's object.
        """
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        first = next(iter(given), None)
        if first in ("self", "cls") and self._is_of_method(first, given[first]):
            del given[first]
        contexts = {name: value for name, value in given.items() if is_context(value)}
        document = {name: plain_argument(value) for name, value in given.items() if name not in contexts}
        return document, next(iter(contexts.values()), None)

    def _is_of_method(self, name: str, value: Any) -> bool:
        """
        Whether a first argument called `self` or `cls` is a method's object.

        A function of a module may be a method as well, for example by a framework that binds its tasks. But
        no method has an object called `cls`.
        """
        is_alone = inspect.isfunction(self._function) and "." not in self._called
        has_json = (
            dataclasses.is_dataclass(value) or isinstance(value, Mapping | Enum) or is_model(type(value))
        )
        counts = is_alone and name == "cls" and has_json and not isinstance(value, type)
        return type(value) not in _PLAIN and not counts

    def payload(self, document: Mapping[str, Any]) -> Any:
        """
        The payload.

        Raises:
            MissingKey: its expression finds nothing.
            InvalidSetting: it is or has a whole message of SQS.
        """
        if self._payload is None:
            if self._shared is None:
                expect_no_delivery(document, f"An argument of {self._called}")
            return document
        found = find(self._payload, in_one_form(document), "call")
        is_key = self._lock_token is None
        if found is None or (is_key and _builds(self._payload) and is_null(found)):
            raise self._missing(self._payload, "payload")
        if self._shared is None:
            expect_no_delivery(found, f"The payload of {self._called}")
        return found

    def key(self, document: Mapping[str, Any], payload: Any) -> Any:
        """
        The key, before it is text. None if it is the payload's hash.

        Raises:
            MissingKey: its expression finds nothing that can be a key.
            InvalidSetting: it has no expression, and the payload's hash is that of a part.
        """
        if self._lock_token is None and self._shared is not None and isinstance(payload, Mapping):
            raise InvalidSetting(
                f"{self._called} has no lock_token. The stack's PayloadHashPath, {self._shared!r}, says "
                "which part two sends of a request share, but not what makes them one. Give a lock_token."
            )
        if self._lock_token is None:
            return None
        found = find(self._lock_token, in_one_form(document), "call")
        if is_no_key(found):
            raise self._missing(self._lock_token, "lock token")
        return found

    def _missing(self, expression: str, what: str) -> MissingKey:
        problem = f"have nothing at {expression!r}, which is to be the {what}"
        return MissingKey(f"The arguments of {self._called} {problem}. Nothing ran.")


def name_of(function: Callable[..., Any]) -> str:
    """The qualified name of a function. Another callable has the name of its class, in angle brackets."""
    return str(getattr(function, "__qualname__", f"<{type(function).__qualname__}>"))


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """
    The code of a function, or of what it wraps by functools.wraps. None if it has none, as a class.

    Two functions that one `def` makes at two calls have equal code.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def wrapped_by(function: Callable[..., Any]) -> str | None:
    """
    The name of the one function that a function was made with, as a decorator's wrapper is.

    None if there are none or several, and if functools.wraps says it.
    """
    found = set()
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # it is empty: a function that calls itself is not there yet
            if inspect.isfunction(held := cell.cell_contents):
                found.add(f"{held.__module__}.{held.__qualname__}")
    return found.pop() if len(found) == 1 and not hasattr(function, "__wrapped__") else None


def _builds(expression: str) -> bool:
    """Whether a JMESPath builds a list or an object, which is there even if all in it is missing."""
    return "'type': 'multi_select_" in str(jmespath.compile(expression).parsed)


def has_arguments(function: Callable[..., Any]) -> bool:
    """Whether a function takes any but a method's object."""
    names = list(signature_of(function).parameters)
    return bool(names[1:] if names[:1] in (["self"], ["cls"]) else names)


def expect_no_delivery(payload: Any, what: str, how: str = _BY_PATHS) -> None:
    """
    Refuse a payload that is a message of SQS, or has one among its values.

    Args:
        payload: As JSON.
        what: What it is, to begin the message with.
        how: How to say what counts, for example.

    Raises:
        InvalidSetting: it is or has one.
    """
    if _is_of_sqs(payload) or (isinstance(payload, Mapping) and any(map(_is_of_sqs, payload.values()))):
        raise InvalidSetting(
            f"{what} is a message of SQS, and each delivery of it has another receiptHandle, so that no two "
            f"are the same request. Say what is the same, for example {how}; boto3 has MessageId and Body."
        )


def _is_of_sqs(value: Any) -> bool:
    """Whether a value is a message of SQS, as Lambda or boto3 gets it, or an event or a list of them."""
    if isinstance(value, list):
        return any(map(_is_of_sqs, value))
    if not isinstance(value, Mapping):
        return False
    from_lambda = value.get("eventSource") == "aws:sqs" and "receiptHandle" in value
    from_boto3 = {"MessageId", "ReceiptHandle"} <= value.keys()
    return from_lambda or from_boto3 or _is_of_sqs(value.get("Records") or value.get("Messages"))
