"""The rules by which one state machine turns requests into envelopes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from steponce import environment
from steponce.errors import MissingKey
from steponce.request.canonical import canonical_json, sha256
from steponce.request.expressions import find
from steponce.request.names import OPEN_SHARDS

LONGEST_WORK_SECONDS = 900
"""Lambda's longest time-out. It is the default where a stack does not state its work's time-out."""


@dataclass(frozen=True)
class RequestRules:
    """
    The rules of one state machine. The template has parameters of the same names.

    Args:
        key_prefix: The prefix of a default lock token. It keeps two machines on one table apart.
        expected_seconds: How long a request usually takes at most. After that an open lock is overdue.
        retention_seconds: How long a finished record answers for its key. None means for ever.
        lock_token_path: JMESPath into the payload that finds the business key. None: the key is the
            request's name.
        payload_hash_path: JMESPath that picks the part of the payload that two sends must share. None: the
            whole payload.
        open_shards: How many shards the table's open index has. It may grow but never shrink, because the
            monitor reads the shards from 0 to one less than this.
        work_timeout_seconds: How long work may run after its execution was stopped. Default: 900.
    """

    key_prefix: str
    expected_seconds: float = 4500
    retention_seconds: float | None = 90 * 86_400
    lock_token_path: str | None = None
    payload_hash_path: str | None = None
    open_shards: int = OPEN_SHARDS
    work_timeout_seconds: float = LONGEST_WORK_SECONDS

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Self:
        """
        Read the template's Outputs, or a function's environment. Both use the same names.

        Raises:
            InvalidSetting: a setting is missing or malformed. The times are required, because all users of a
                table must count them alike.
        """
        return environment.read(cls, settings, required=("ExpectedSeconds", "RetentionSeconds"))

    def lock_token(self, name: str, payload: Mapping[str, Any]) -> str:
        """Make the lock token of a request that was started without one."""
        if self.lock_token_path is None:
            return f"{self.key_prefix}/{name}"
        found = find(self.lock_token_path, payload)
        if all(leaf is None or not str(leaf).strip() for leaf in _leaves(found)):
            raise MissingKey(
                f"The payload has nothing at {self.lock_token_path!r}, which is to be the lock token. "
                "Send that part, or give lock_token yourself."
            )
        key = found if isinstance(found, str) else canonical_json(found, self.lock_token_path)
        return f"{self.key_prefix}/{key}"

    def payload_hash(self, payload: Mapping[str, Any], text: str | None = None) -> str:
        """
        SHA-256 of the canonical payload, or of the part that `payload_hash_path` picks.

        Args:
            payload: JSON object.
            text: Its canonical text, if the caller has it already.
        """
        if self.payload_hash_path is None:
            return sha256(canonical_json(payload) if text is None else text)
        found = find(self.payload_hash_path, payload)
        if set(_leaves(found)) == {None}:
            raise MissingKey(
                f"The payload has nothing at {self.payload_hash_path!r}, which two sends of a request must "
                "share. Send that part."
            )
        return sha256(canonical_json(found, self.payload_hash_path))


def _leaves(found: Any) -> Iterator[Any]:
    """All values in what an expression found. A list of nulls counts as nothing found."""
    left = [found]
    while left:
        item = left.pop()
        if isinstance(item, Mapping):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
        else:
            yield item
