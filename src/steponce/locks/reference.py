"""
The address of a result that is kept in a bucket, in a record's place for the result.

A reference counts only in the record that it was made for: its bucket is the stack's own, and its key has the
digests of that record's lock token and callId. So what comes from outside, and may end up in a result (a part
of a payload, the answer of a callback), makes nobody read another bucket, or the result of another request.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from steponce.errors import ResultUnreadable
from steponce.locks.record import Lock

if TYPE_CHECKING:
    from steponce.locks.results import Results

REFERENCE = "steponceResult"
"""The one key of a reference."""

FOLDER = "results/"
"""What every object's key begins with."""

_NAME = re.compile(r"[0-9a-f]{32}\.json")


def folder_of(lock_token: str) -> str:
    """
    Where the results of a lock token are.

    A digest, since a lock token may name a person, and a bucket's logs and inventories hold keys.
    """
    return f"{FOLDER}{_digest(lock_token)}/"


def new_key(lock_token: str, call_id: str) -> str:
    """A key that no object has, for a result of this call."""
    return f"{_folder_of_call(lock_token, call_id)}{uuid.uuid4().hex}.json"


@dataclass(frozen=True)
class Reference:
    """Where a result is: bucket, key and version; and what it is: SHA-256 (hexadecimal) and size in bytes."""

    bucket: str
    key: str
    version: str
    sha256: str
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """The reference as it stands for the result."""
        return {REFERENCE: asdict(self)}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def read(cls, result: Any, lock: Lock) -> Self | None:
        """The reference that a record's result is; None where it is the result itself, whatever it holds."""
        fields = result.get(REFERENCE) if isinstance(result, Mapping) else None
        kinds = {"bucket": str, "key": str, "version": str, "sha256": str, "bytes": int}
        if not isinstance(fields, Mapping) or {name: type(value) for name, value in fields.items()} != kinds:
            return None
        reference = cls(**fields)
        return reference if reference._is_of(lock) else None

    def _is_of(self, lock: Lock) -> bool:
        own = _folder_of_call(lock.lock_token, lock.call_id)
        return self.key.startswith(own) and _NAME.fullmatch(self.key.removeprefix(own)) is not None


@dataclass(frozen=True)
class Kept:
    """
    A result that is kept in a bucket, and not read yet.

    Args:
        results: Where to read it.
        lock: The record that has its address.
        reference: The address.
        beside: What later states of the workflow have put beside it, like an answer that they waited for.
    """

    results: Results = field(repr=False)
    lock: Lock = field(repr=False)
    reference: Reference
    beside: Mapping[str, Any]

    @property
    def which(self) -> str:
        """Which result it is, as an error message begins."""
        where = self.reference
        return (
            f"The result of {self.lock.lock_token!r}, kept as {where.key} (version {where.version}) in the "
            f"bucket {where.bucket},"
        )

    def read(self) -> Any:
        """
        The result, with what was put beside it.

        Raises:
            ResultUnreadable: it is gone, altered, or may not be read.
            Unavailable: S3 did not answer; safe to try again.
        """
        result = self.results.fetch(self)
        if not self.beside:
            return result
        if not isinstance(result, dict):
            raise ResultUnreadable(
                f"{self.which} is no object, so that {', '.join(self.beside)}, which "
                "the workflow has put beside it, has no place. Let the work return an object."
            )
        return result | dict(self.beside)


def _folder_of_call(lock_token: str, call_id: str) -> str:
    return f"{folder_of(lock_token)}{_digest(call_id)}/"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
