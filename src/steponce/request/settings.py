"""The rules by which one state machine turns requests into envelopes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from steponce import environment
from steponce.errors import (
    InvalidEventTime,
    InvalidPayload,
    InvalidRequest,
    InvalidSetting,
    MissingKey,
    shown,
)
from steponce.limits.request_limit import RequestLimit
from steponce.limits.window import Window
from steponce.locks.record import LETTERS
from steponce.request.canonical import canonical_json, in_one_form, sha256
from steponce.request.expressions import expect_jmespath, find
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
        work_timeout_seconds: The time-out that the machine's work has now. None: it is not known.
        rate_limit: How many requests of a user the machine runs in a window. 0: no limit.
        rate_limit_window: `minute`, `hour`, `day`, or whole seconds as text.
        rate_limit_path: JMESPath into the payload that finds the user.

    Raises:
        InvalidSetting: the rate limit has no path, or its window is none, or there is no shard, or the key
            prefix begins as the key of another item of the lock table.
    """

    key_prefix: str
    expected_seconds: float = 4500
    retention_seconds: float | None = 90 * 86_400
    lock_token_path: str | None = None
    payload_hash_path: str | None = None
    open_shards: int = OPEN_SHARDS
    work_timeout_seconds: float | None = None
    rate_limit: int = 0
    rate_limit_window: str = "day"
    rate_limit_path: str | None = None

    def __post_init__(self) -> None:
        if self.key_prefix.startswith(LETTERS):
            raise InvalidSetting(
                f"The setting KeyPrefix is {shown(self.key_prefix)}. It must not begin with {LETTERS!r}, "
                "because the marks of dead letters have such keys. Give another one."
            )
        if self.open_shards < 1:
            raise InvalidSetting(f"The setting OpenShards is {self.open_shards}. Set it to 1 or more.")
        if self.rate_limit and not self.rate_limit_path:
            raise InvalidSetting("The setting RateLimit needs RateLimitPath, which finds the user.")
        self.request_limit()  # shows that its window is one

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Self:
        """
        Read the template's Outputs, or a function's environment. Both use the same names.

        Raises:
            InvalidSetting: a setting is missing or malformed. The times are required, because all users of a
                table must count them alike.
        """
        return environment.read(cls, settings, required=("ExpectedSeconds", "RetentionSeconds"))

    def expect_paths(self) -> Self:
        """
        Refuse paths that work on no payload, as a function does that takes requests from outside. Operators'
        commands go on without them.

        Raises:
            InvalidSetting: one is no JMESPath.
        """
        paths = {"LockTokenPath": self.lock_token_path, "PayloadHashPath": self.payload_hash_path}
        if self.rate_limit:
            paths["RateLimitPath"] = self.rate_limit_path
        for setting, path in paths.items():
            if path is not None:
                expect_jmespath(path, setting)
        return self

    def lock_token(self, name: str, payload: Mapping[str, Any]) -> str:
        """Make the lock token of a request that was started without one."""
        if self.lock_token_path is None:
            return f"{self.key_prefix}/{name}"
        found = find(self.lock_token_path, in_one_form(payload))
        if is_no_key(found):
            raise MissingKey(
                f"The payload has nothing at {self.lock_token_path!r}, which is to be the lock token. "
                "Send that part, or give lock_token yourself."
            )
        key = found if isinstance(found, str) else canonical_json(found, self.lock_token_path)
        return f"{self.key_prefix}/{key}"

    def request_limit(self) -> RequestLimit | None:
        """The machine's rate limit. None if it has none."""
        if not self.rate_limit:
            return None
        given = self.rate_limit_window
        try:
            window = Window.of(int(given) if given.isdecimal() else given)
        except ValueError as error:
            raise InvalidSetting(f"The setting RateLimitWindow: {error}") from None
        name = self.key_prefix.replace("%", "%25").replace("/", "%2F")
        return RequestLimit(name, self.rate_limit, window)

    @property
    def longest_work_seconds(self) -> float:
        """How long the work may run at most. Where the settings do not say it, it is Lambda's longest."""
        return self.work_timeout_seconds or LONGEST_WORK_SECONDS

    @property
    def limit_rule(self) -> str:
        """Limit, window and path, by which the workflow can tell a client that knows others than its own."""
        return f"{self.rate_limit}/{self.rate_limit_window}/{self.rate_limit_path}"

    def count_of(
        self, payload: Mapping[str, Any], lock_token: str, at: datetime, now: datetime
    ) -> dict[str, str] | None:
        """
        What the workflow needs to count a request; see `RequestLimit.count_of`. None without a limit.

        Its `rule` is `limit_rule`.

        Raises:
            MissingKey: the payload does not say who is limited.
            InvalidPayload: what it says cannot be a user.
            InvalidEventTime: the time is too far in the future, or too old.
        """
        limit, path = self.request_limit(), self.rate_limit_path
        if limit is None or path is None:
            return None
        found = find(path, in_one_form(payload))
        if is_no_key(found):
            raise MissingKey(
                f"The payload has nothing at {path!r}, which says whose requests the rate limit counts. "
                "Send that part."
            )
        who = found if isinstance(found, str) else canonical_json(found, path)
        try:
            counted = limit.count_of(who, lock_token, at, now)
        except InvalidEventTime:
            raise
        except InvalidRequest as error:
            raise InvalidPayload(f"The payload at {path!r}: {error}") from None
        return {"rule": self.limit_rule} | counted

    def payload_hash(self, payload: Mapping[str, Any], text: str | None = None) -> str:
        """
        SHA-256 of the canonical payload, or of the part that `payload_hash_path` picks.

        Args:
            payload: JSON object.
            text: Its canonical text, if the caller has it already.
        """
        if self.payload_hash_path is None:
            return sha256(canonical_json(payload) if text is None else text)
        found = find(self.payload_hash_path, in_one_form(payload))
        if is_null(found):
            raise MissingKey(
                f"The payload has nothing at {self.payload_hash_path!r}, which two sends of a request must "
                "share. Send that part."
            )
        return sha256(canonical_json(found, self.payload_hash_path))


def is_no_key(found: Any) -> bool:
    """Whether an expression found nothing that can be a key: no value, or only blanks."""
    return all(leaf is None or not str(leaf).strip() for leaf in _leaves(found))


def is_null(found: Any) -> bool:
    """Whether an expression found nothing: null, or an object or a list of nothing else."""
    return set(_leaves(found)) == {None}


def _leaves(found: Any) -> Iterator[Any]:
    """All values in what an expression found, however deep."""
    left = [found]
    while left:
        item = left.pop()
        if isinstance(item, Mapping):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
        else:
            yield item
