"""What the arguments of a decorated function's call say: its payload, its key, and Lambda's context."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import NoneType
from typing import Any

import jmespath

from steponce.errors import InvalidSetting, MissingKey
from steponce.guards.invocation import is_context
from steponce.guards.plain import plain_argument
from steponce.request.canonical import in_one_form
from steponce.request.expressions import find
from steponce.request.settings import is_no_key, is_null

_PLAIN = (str, int, float, bool, list, dict, NoneType)
"""JSON's own types. A method's object is none of them."""


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
        self._signature = inspect.signature(function)

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """
        The arguments by name, as JSON, and Lambda's context if it is one of them.

        Left out are the context and a method's object.
        """
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        first = next(iter(given), None)
        if first in ("self", "cls") and self._is_of_method(given[first]):
            del given[first]
        contexts = {name: value for name, value in given.items() if is_context(value)}
        document = {name: plain_argument(value) for name, value in given.items() if name not in contexts}
        return document, next(iter(contexts.values()), None)

    def _is_of_method(self, value: Any) -> bool:
        """Whether a first argument called `self` or `cls` is a method's object."""
        is_alone = inspect.isfunction(self._function) and "." not in self._called
        return type(value) not in _PLAIN and (not is_alone or hasattr(value, self._function.__name__))

    def payload(self, document: Mapping[str, Any]) -> Any:
        """
        The payload.

        Raises:
            MissingKey: its expression finds nothing.
            InvalidSetting: it has no expression, and the arguments hold a message of SQS.
        """
        if self._payload is None:
            if self._shared is None and _has_message(document):
                raise InvalidSetting(
                    f"The arguments of {self._called} hold a message of SQS. Each delivery of it has another "
                    "receiptHandle, so that no two are the same request. Say what is the same, for example "
                    'lock_token="record.messageId", payload="record.body"; boto3 has MessageId and Body.'
                )
            return document
        found = find(self._payload, in_one_form(document), "call")
        is_key = self._lock_token is None
        if found is None or (is_key and _builds(self._payload) and is_null(found)):
            raise self._missing(self._payload, "payload")
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


def wrapped_by(function: Callable[..., Any]) -> set[str]:
    """The names of the functions that a function was made with, as a decorator's wrapper is."""
    found = set()
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # it is empty: a function that calls itself is not there yet
            if inspect.isfunction(held := cell.cell_contents):
                found.add(f"{held.__module__}.{held.__qualname__}")
    return found


def _builds(expression: str) -> bool:
    """Whether a JMESPath builds a list or an object, which is there even if all in it is missing."""
    return "'type': 'multi_select_" in str(jmespath.compile(expression).parsed)


def _has_message(document: Mapping[str, Any]) -> bool:
    """Whether a whole message of SQS is anywhere in a document, as Lambda or boto3 gets it."""
    parts: list[Any] = [document]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            from_lambda = part.get("eventSource") == "aws:sqs" and "receiptHandle" in part
            if from_lambda or {"MessageId", "ReceiptHandle"} <= part.keys():
                return True
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return False
