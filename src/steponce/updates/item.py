"""
One item of a table of yours: its key and changes as DynamoDB has them, and one conditional write.

Names of attributes never stand in an expression, so that reserved words, dots and spaces are names like any
other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import boto3
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError, ParamValidationError

from steponce.aws.errors import answering, error_code, is_refusal
from steponce.aws.forks import own_connections
from steponce.errors import InvalidRequest, shown

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class _Removal(Enum):
    REMOVE = "REMOVE"


REMOVE: Final = _Removal.REMOVE
"""A change that removes its attribute."""

_LONGEST_EXPRESSION = 4_096
"""Bytes. Source: "Constraints in Amazon DynamoDB", expression parameters."""

_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


def typed(name: str, value: Any) -> dict[str, Any]:
    """
    A value as DynamoDB has it (`{"S": "ann"}`).

    Raises:
        InvalidRequest: DynamoDB has no such value or name: a float, a time, an empty set, a list that holds
            itself.
    """
    try:
        found: Any = _serialize(value)
        problem = "its name is empty." if name == "" else next(_problems({name: value}), None)
    except (TypeError, ArithmeticError) as error:  # a Decimal of more than 38 digits is the second
        why = str(error).partition(" for value ")[0].removesuffix(".")  # boto3 quotes the value after that
        raise InvalidRequest(
            f"The attribute {name!r} cannot be stored: {why}. Nothing was written. Give text, a whole "
            "number, a Decimal, a truth value, None, bytes, or a list, set or dict of these."
        ) from None
    except RecursionError:
        raise InvalidRequest(
            f"The attribute {name!r} cannot be stored: it is nested too deeply, or holds itself. Nothing was "
            "written."
        ) from None
    if problem is not None:
        raise InvalidRequest(f"The attribute {name!r} cannot be stored: {problem} Nothing was written.")
    return dict(found)


def _problems(value: Any) -> Iterator[str]:
    """Why DynamoDB cannot store what boto3 gives it."""
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        yield "a text holds half a character."
    elif isinstance(value, Mapping):
        for name, member in value.items():
            if not isinstance(name, str):
                yield f"the name {shown(name)} is not text."
            yield from _problems(name)
            yield from _problems(member)
    elif isinstance(value, Set) and not value:
        yield "a set is empty."
    elif isinstance(value, Set | list | tuple):  # of the sequences, boto3 stores these
        for member in value:
            yield from _problems(member)


@contextmanager
def accepting() -> Iterator[None]:
    """
    Turn what boto3 or DynamoDB finds wrong with a call inside the block into InvalidRequest: another name of
    the table or the key than it has, or an item that is too large.
    """
    try:
        yield
    except ParamValidationError as error:
        raise InvalidRequest(f"boto3 refused the call, and nothing was written. {error}") from error
    except ClientError as error:
        if error_code(error) != "ValidationException":
            raise
        raise refused(error.response["Error"]) from error


def refused(error: Mapping[str, Any]) -> InvalidRequest:
    """The error for a call, or an item of a transaction, that DynamoDB refuses."""
    return InvalidRequest(f"DynamoDB refused the call, and nothing was written. {error.get('Message', '')}")


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item's attributes as Python has them; numbers are Decimals."""
    return {name: _deserialize(value) for name, value in item.items()}


class Changes:
    """
    Changes of attributes, as the parts of an UpdateItem.

    Args:
        given: By the name of the attribute: its new value, or REMOVE.
        reserved: Attributes that these changes must not name.

    Raises:
        InvalidRequest: a change cannot be stored, or names a reserved attribute.
    """

    def __init__(self, given: Mapping[str, Any], reserved: Collection[str] = ()) -> None:
        self._sets: list[str] = []
        self._removes: list[str] = []
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        if not isinstance(given, Mapping):
            raise InvalidRequest("The changes are no dict of names and values. Nothing was written.")
        for name, value in given.items():
            if name in reserved:
                raise InvalidRequest(
                    f"The attribute {name!r} cannot be changed here: it is part of the key, or the update "
                    "writes it by itself. Nothing was written."
                )
            kept = typed(name, None if value is REMOVE else value)
            if value is REMOVE:
                self.remove(name)
            else:
                self.set(name, kept)

    def set(self, name: str, value: Mapping[str, Any]) -> None:
        """Set an attribute to a typed value."""
        number = len(self._names)
        self._sets.append(f"#c{number} = :c{number}")
        self._names[f"#c{number}"] = name
        self._values[f":c{number}"] = value

    def remove(self, name: str) -> None:
        """Remove an attribute, if it is there."""
        number = len(self._names)
        self._removes.append(f"#c{number}")
        self._names[f"#c{number}"] = name

    def arguments(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        What UpdateItem is given of them.

        Args:
            values: The values that the condition needs as well.

        Raises:
            InvalidRequest: there are too many changes for one call.
        """
        parts = [("SET", self._sets), ("REMOVE", self._removes)]
        expression = " ".join(f"{verb} {', '.join(each)}" for verb, each in parts if each)
        if len(expression) > _LONGEST_EXPRESSION:
            raise InvalidRequest(
                f"{len(self._names)} attributes are changed at once, and DynamoDB takes about 280. Nothing "
                "was written. Change fewer, or keep several of them as one dict."
            )
        values = {**self._values, **(values or {})}
        return {
            **({"UpdateExpression": expression} if expression else {}),
            **({"ExpressionAttributeNames": dict(self._names)} if self._names else {}),
            **({"ExpressionAttributeValues": values} if values else {}),
        }


@dataclass(frozen=True)
class Written:
    """
    What became of a conditional write.

    Args:
        done: Whether the condition held.
        item: The item as it is now, with typed values. None if there is none.
        was_sent_twice: Whether the SDK repeated a write that is refused. The first one may have taken effect.
    """

    done: bool
    item: dict[str, Any] | None
    was_sent_twice: bool = False


class ItemOf:
    """
    One item, by its table and key.

    Args:
        table: The table's name.
        key: The key's attributes, by their names.
        dynamodb: The client. None: one with boto3's defaults, made once.
        own: Attributes that the caller writes by itself. In a key they could not change.

    Raises:
        InvalidRequest: the key cannot be one, or has an attribute of `own`.
    """

    def __init__(
        self,
        table: str,
        key: Mapping[str, Any],
        dynamodb: DynamoDBClient | None,
        own: Collection[str] = (),
    ) -> None:
        if not isinstance(key, Mapping) or not key:
            raise InvalidRequest("The key is empty or no dict. Give the attributes of the table's key.")
        taken = sorted(key.keys() & own)
        if taken:
            raise InvalidRequest(
                f"The attribute {taken[0]!r} is part of the key, and this call writes an attribute of that "
                "name by itself. Nothing was written. Use a table with another key."
            )
        self.key = {name: typed(name, value) for name, value in key.items()}
        self.where: Any = {"TableName": table, "Key": self.key}
        self._table = table
        self._dynamodb: Any = dynamodb or default_client()

    @property
    def label(self) -> str:
        """The item's name in errors."""
        return f"{self._table} {plain(self.key)}"

    @property
    def key_name(self) -> str:
        """The first attribute of its key, which each item of the table has."""
        return next(iter(self.key))

    def get(self) -> dict[str, Any] | None:
        """
        The item with its typed values, read consistently; None if there is none.

        Raises:
            InvalidRequest: the table has no such key, or no such name.
            Unavailable: no answer; safe to try again.
        """
        with accepting(), answering("DynamoDB"):
            found: dict[str, Any] | None = self._dynamodb.get_item(**self.where, ConsistentRead=True).get(
                "Item"
            )
        return found

    def update(self, **arguments: Any) -> Written:
        """
        Make an UpdateItem under a condition, which is among its arguments.

        Raises:
            InvalidRequest: DynamoDB takes no such item. Nothing was written.
            Unavailable: no answer; the write may have taken effect.
        """
        return self._write(self._dynamodb.update_item, **self.where, **arguments, ReturnValues="ALL_NEW")

    def put(self, item: Mapping[str, Any], **arguments: Any) -> Written:
        """Put another item, with typed values, in its place. Raises as `update`."""
        whole = {**item, **self.key}
        written = self._write(self._dynamodb.put_item, TableName=self._table, Item=whole, **arguments)
        return Written(True, whole) if written.done else written

    def _write(self, write: Any, **arguments: Any) -> Written:
        try:
            with accepting(), answering("DynamoDB"):
                done = write(**arguments, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            there: Any = error.response.get("Item")
            return Written(False, there or None, was_sent_twice=not is_refusal(error))
        return Written(True, done.get("Attributes"))


@cache
def default_client() -> DynamoDBClient:
    """The client for calls that bring none."""
    return own_connections(boto3.client("dynamodb"))
