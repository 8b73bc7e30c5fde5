"""How one state machine turns requests into envelopes."""

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
"""What Lambda allows, for where a stack does not say how long its own work may take."""


@dataclass(frozen=True)
class RequestRules:
    """
    How one state machine turns requests into envelopes; the template's parameters of the same names.

    Args:
        key_prefix: Goes before the request id in a default lock token, so that two machines on one
            table never answer for each other.
        expected_seconds: How long a request usually takes at the most; past it an open lock is overdue.
        retention_seconds: How long a finished record answers for its key; None means for ever.
        lock_token_path: JMESPath into the payload that finds the business key, if you want one.
        payload_hash_path: JMESPath that picks the part of the payload that two sends must share.
        open_shards: In how many parts the table's open index is kept. It may grow, never shrink: whoever
            watches over open locks reads the parts 0 to one less than this.
        work_timeout_seconds: So long work may run whose execution was stopped. Default: what Lambda allows.
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
        Read the template's Outputs, or a function's environment: the names are the same.

        Raises:
            InvalidSetting: one of them is missing or malformed. The times have to be said, since whoever
                shares a table must count them alike.
        """
        return environment.read(cls, settings, required=("ExpectedSeconds", "RetentionSeconds"))

    def lock_token(self, name: str, payload: Mapping[str, Any]) -> str:
        """The business key of a request for which none was given."""
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
            text: Its canonical text, if it is at hand.
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
    """The values that an expression found; a list of nulls has found as little as a null."""
    left = [found]
    while left:
        item = left.pop()
        if isinstance(item, Mapping):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
        else:
            yield item
