"""The envelope: the input that an execution starts with."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from steponce.aws import times
from steponce.errors import (
    InvalidLockToken,
    InvalidPayload,
    InvalidRequest,
    PayloadTooLarge,
    shown,
)
from steponce.locks.record import LETTERS, ttl_of
from steponce.request.canonical import MAX_DEPTH, canonical_json
from steponce.request.names import check_name_by_hand, name_of, shard_of
from steponce.request.settings import RequestRules
from steponce.workflow import WORKFLOW_LIMIT

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

RESULT_RESERVE = 65_536
"""The part of WORKFLOW_LIMIT, in bytes, that is reserved for the result: it travels with the envelope."""

ENVELOPE_LIMIT = WORKFLOW_LIMIT - RESULT_RESERVE
"""The most bytes that an envelope may have."""

RESEND_RESERVE = 64
"""Bytes by which an envelope may grow when its message is resent: the digits of `tries`, and `countAt`."""

MAX_LOCK_TOKEN_BYTES = 2_048
"""DynamoDB's limit for a partition key."""

_LONGEST_UNKNOWN = 200


@dataclass(frozen=True)
class Envelope:
    """
    An execution's input.

    All times are UTC text. `expectedCompletion`, `expiresAt` and `ttl` (a day later; epoch seconds, as text)
    count from starting; `callId` is unique to one call; nothing else differs between two sends of one event.
    `requestId` is the caller's own, as it was given; of an execution that was started by hand it is the name.
    `redelivery` is absent unless the request came as a message or an event, so that no caller waits for an
    answer. Then it is what `resend_request` needs to send the request again later.
    `limit` is absent unless the machine has a rate limit: then it is what counts the request in its window;
    see `RequestLimit.count_of`.
    """

    requestId: str
    lockToken: str
    payload: Mapping[str, Any]
    payloadHash: str
    requestedAt: str
    expectedCompletion: str
    expiresAt: str
    ttl: str
    shard: str
    callId: str
    redelivery: Mapping[str, Any] | None = None
    limit: Mapping[str, str] | None = None

    @classmethod
    def make(
        cls,
        request_id: str,
        payload: Mapping[str, Any],
        rules: RequestRules,
        *,
        lock_token: str | None = None,
        requested_at: datetime | None = None,
        count_at: datetime | None = None,
        redelivery: Mapping[str, Any] | None = None,
    ) -> Self:
        """
        Make the envelope of a request.

        Args:
            request_id: As the caller gave it; see `name_of`.
            payload: JSON object for the work.
            rules: Of the machine that is to run it.
            lock_token: The business key, used as it is. Default: by the rules.
            requested_at: The event's own time. Default: now.
            count_at: The time that decides in which window of a rate limit the request counts. Default:
                `requested_at`.
            redelivery: JSON object for the re-sender, which the workflow carries along.

        Raises:
            InvalidRequest: with what is wrong, before anything is started.
        """
        name = name_of(request_id)
        if not isinstance(payload, Mapping):
            raise InvalidPayload(f"The payload is a {type(payload).__name__}. Send a JSON object.")
        if not isinstance(redelivery, Mapping | None):
            raise InvalidRequest(f"redelivery is a {type(redelivery).__name__}. Give a JSON object.")
        for what, time in (("requested_at", requested_at), ("count_at", count_at)):
            if time is not None and not isinstance(time, datetime):
                raise InvalidRequest(f"{what} is {shown(time)}. Give a datetime with a zone.")
            if time is not None and time.tzinfo is None:
                raise InvalidRequest(f"{what} {time.isoformat()} has no zone. Give it one, like UTC.")
        text = _fitting(payload, "payload")  # first, so that nothing else meets a payload of any size
        now = times.now()
        token = rules.lock_token(name, payload) if lock_token is None else lock_token
        check_lock_token(token)
        expires_at = times.to_text(times.after(now, rules.retention_seconds))
        envelope = cls(
            requestId=request_id,
            lockToken=token,
            payload=payload,
            payloadHash=rules.payload_hash(payload, text),
            requestedAt=_text_of(requested_at or now),
            expectedCompletion=times.to_text(times.after(now, rules.expected_seconds)),
            expiresAt=expires_at,
            ttl=str(ttl_of(expires_at)),
            shard=shard_of(token, rules.open_shards),
            callId=uuid.uuid4().hex,
            redelivery=redelivery,
            limit=rules.count_of(payload, token, count_at or requested_at or now, now),
        )
        envelope.to_json()
        return envelope

    @classmethod
    def complete(cls, execution_name: str, execution_input: Mapping[str, Any], rules: RequestRules) -> Self:
        """
        Turn the input of an execution that was started by hand into an envelope.

        Args:
            execution_name: `$$.Execution.Name`, which is the request's id then.
            execution_input: `{"payload": {…}}`, with `lockToken` and `requestedAt` if you like. The name by
                which Step Functions links an execution to its parent is dropped. Or a whole envelope that the
                workflow cannot count itself, because its limit is too large for that, or because its client
                or these rules do not know the machine's limit, which is being deployed.
            rules: Of the machine that runs it.

        Raises:
            InvalidRequest: the input has something missing, wrong or unknown; the message says what.
            InvalidRequestId: the execution is named as the client names attempts or long ids, and no lock
                token of its own says which request it is.
        """
        if isinstance(execution_input, Mapping) and execution_input.keys() >= _ALWAYS:
            return cls._limited(execution_input, rules)
        from jsonschema.exceptions import best_match  # needs 0.1 s, and most functions never do

        problem = best_match(_hand_started_schema().iter_errors(execution_input))
        if problem is not None:
            place = ".".join(["input", *map(str, problem.absolute_path)])
            raise InvalidPayload(
                f'{place}: {_demand(problem)}. Start with {{"payload": {{…}}}}; only lockToken and '
                "requestedAt may stand beside it."
            )
        check_name_by_hand(execution_name, "lockToken" in execution_input)
        requested_at = execution_input.get("requestedAt")
        return cls.make(
            execution_name,
            execution_input["payload"],
            rules,
            lock_token=execution_input.get("lockToken"),
            requested_at=None if requested_at is None else _time(requested_at),
        )

    @classmethod
    def _limited(cls, given: Mapping[str, Any], rules: RequestRules) -> Self:
        """A whole envelope, with what counts it under these rules."""
        known = {field.name: given[field.name] for field in fields(cls) if field.name in given}
        check_lock_token(known["lockToken"])
        for name in ("payload", "redelivery"):
            if not isinstance(known.get(name, {}), Mapping):
                raise InvalidPayload(f"input.{name} is no JSON object.")
        at = _counted_at(known.get("limit"), _time(known["requestedAt"]))
        limit = rules.count_of(known["payload"], known["lockToken"], at, times.now())
        envelope = cls(**known | {"limit": limit})
        envelope.to_json()
        return envelope

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in given.items() if value is not None or name in _ALWAYS}

    def to_json(self) -> str:
        """
        The canonical text that StartExecution sends.

        Raises:
            PayloadTooLarge: it would leave less than 64 KiB for the result.
        """
        known = vars(self)  # a `cached_property` waits for other threads in 3.11, after a fork for ever
        if "_json" not in known:
            reserve = RESEND_RESERVE if self._may_grow else 0
            known["_json"] = _fitting(self.to_dict(), "input", ENVELOPE_LIMIT - reserve, levels=MAX_DEPTH + 1)
        text: str = known["_json"]
        return text

    @property
    def _may_grow(self) -> bool:
        """Whether it comes as a message for the first time. A message that was admitted then stays so."""
        found = self.redelivery
        return found is not None and found.get("tries") == 0 and "countAt" not in found


_ALWAYS = frozenset(field.name for field in fields(Envelope) if field.default is MISSING)
"""The fields of every envelope."""


def _fitting(value: Any, where: str, limit: int = ENVELOPE_LIMIT, levels: int = MAX_DEPTH) -> str:
    """The canonical text of an envelope or a payload. It raises if the text is too large for a workflow."""
    try:
        return canonical_json(value, where, limit=limit, levels=levels)
    except PayloadTooLarge as error:
        raise PayloadTooLarge(
            f"{error} The result travels with it in a workflow's {WORKFLOW_LIMIT:,}. Keep the large part "
            "in S3 and send its address."
        ) from None


@cache
def _hand_started_schema() -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(
        json.loads(files("steponce.request").joinpath("hand_started.schema.json").read_text())
    )


def _demand(problem: ValidationError) -> str:
    """What the schema requires, without the value that it found: logs must not contain payloads."""
    if problem.validator == "additionalProperties":
        unknown = problem.message.partition("(")[2].rpartition(")")[0]
        return f"has an unknown field: {unknown[:_LONGEST_UNKNOWN]}"
    return f"does not fit: {problem.validator} must be {json.dumps(problem.validator_value)}"


def _counted_at(limit: Any, requested_at: datetime) -> datetime:
    """
    The time at which a whole envelope counts: its own, unless its client has cut a window apart from it.

    A client may know another window than the machine has now. So the window's start stands for the request's
    time only where that is not in it.
    """
    if not isinstance(limit, Mapping) or "windowStart" not in limit:
        return requested_at
    start = _time(limit["windowStart"], "limit.windowStart")
    if "resetsAt" not in limit:
        return start
    return requested_at if start <= requested_at < _time(limit["resetsAt"], "limit.resetsAt") else start


def _text_of(requested_at: datetime) -> str:
    try:
        return times.to_text(requested_at)
    except ValueError as error:
        raise InvalidRequest(f"requested_at: {error}") from None


def _time(text: Any, place: str = "requestedAt") -> datetime:
    try:
        return times.from_text(text)
    except (TypeError, ValueError):
        raise InvalidPayload(
            f"input.{place}: {shown(text)} is no time. Write it like 2026-01-31T12:00:00Z."
        ) from None


def check_lock_token(token: Any) -> None:
    """
    Check that a text can be a lock token.

    Raises:
        InvalidLockToken: it is empty, blank, not text or longer than a DynamoDB key may be, or it begins as
            the key of another item of the lock table.
    """
    if not isinstance(token, str) or not token.strip():
        raise InvalidLockToken(f"The lock token {shown(token)} is empty or not text. Give the business key.")
    if token.startswith(LETTERS):
        raise InvalidLockToken(
            f"The lock token {shown(token)} begins with {LETTERS!r}, as no lock token may. Give another one."
        )
    canonical_json(token, "lock_token")
    size = len(token.encode())
    if size > MAX_LOCK_TOKEN_BYTES:
        raise InvalidLockToken(
            f"The lock token has {size:,} bytes; {MAX_LOCK_TOKEN_BYTES:,} are allowed. Shorten it."
        )
