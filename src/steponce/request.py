"""
The request: its id, the name that its execution gets, and the envelope that the execution starts with.

    request id   ->  name           one id, one name, for ever
    name, payload ->  Envelope       lock token, hash, times, shard, callId
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from steponce.aws import times
from steponce.canonical import canonical_json, sha256
from steponce.errors import (
    InvalidLockToken,
    InvalidPayload,
    InvalidRequest,
    InvalidRequestId,
    MissingKey,
    PayloadTooLarge,
    shown,
)
from steponce.paths import find
from steponce.workflow import WORKFLOW_LIMIT

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

RESULT_RESERVE = 65_536
"""Bytes of it that an envelope leaves free, because payload and result travel together."""

ENVELOPE_LIMIT = WORKFLOW_LIMIT - RESULT_RESERVE
"""Bytes that an envelope may have, and so the payload in it."""

MAX_LOCK_TOKEN_BYTES = 2_048
"""What DynamoDB allows for a partition key."""

MAX_REQUEST_ID_BYTES = 2_048
"""As for a lock token: error messages, logs and records repeat the id."""

OPEN_SHARDS = 10
"""In how many parts an open index is kept, unless the stack says otherwise, so that no part is hot."""

LONGEST_WORK_SECONDS = 900
"""What Lambda allows, for where a stack does not say how long its own work may take."""

MAX_ATTEMPT = 999_999
"""So many attempts a name has room for."""

_MAX_NAME = 72
_LONGEST_UNKNOWN = 200
_AS_IT_IS = re.compile(rf"[0-9A-Za-z_-]{{1,{_MAX_NAME}}}")
_MARKED = re.compile(r".*--(\d+|x[0-9a-f]{32})")
_LIKE_AN_ATTEMPT = re.compile(r".*--\d+", re.DOTALL)
_ATTEMPT = re.compile(r"(?P<name>.+)--(?P<attempt>[2-9]|[1-9]\d{1,5})")


def name_of(request_id: str) -> str:
    """
    The execution name of a request id: the id itself where it can be one, else a slug with a hash.

    Args:
        request_id: Any text that is not blank. `[0-9A-Za-z_-]{1,72}` is used as it is, unless it ends the
            way our own names do (`--2`, `--x` and a hash).

    Returns:
        1 to 72 characters, so that `--2` to `--999999` fit behind it. Two ids never share a name.

    Raises:
        InvalidRequestId: the id is empty, blank, not text or longer than 2,048 bytes.

    Source: StartExecution API reference (names have 1-80 characters; for logs only 0-9A-Za-z-_).
    """
    if not isinstance(request_id, str) or not request_id.strip():
        raise InvalidRequestId(
            f"The request id {shown(request_id)} is empty or not text. Give one that names the request."
        )
    if _AS_IT_IS.fullmatch(request_id) and not _MARKED.fullmatch(request_id):
        return request_id
    try:
        size = len(request_id.encode())
    except UnicodeEncodeError:
        raise InvalidRequestId(
            f"The request id {shown(request_id)} holds half a character. Give whole text."
        ) from None
    if size > MAX_REQUEST_ID_BYTES:
        raise InvalidRequestId(
            f"The request id {shown(request_id)} has {size:,} bytes; {MAX_REQUEST_ID_BYTES:,} are allowed. "
            "Shorten it."
        )
    digest = sha256(request_id)[:32]
    mark = f"--x{digest}"
    slug = re.sub(r"[^0-9A-Za-z_]+", "-", request_id)[: _MAX_NAME - len(mark)].strip("-")
    return (slug or "id") + mark


def attempt_name(name: str, attempt: int) -> str:
    """The name of a request's n-th attempt: `order-1`, `order-1--2`, `order-1--3`, …"""
    return name if attempt == 1 else f"{name}--{attempt}"


def shard_of(key: str, shards: int) -> str:
    """In which of so many parts of an open index a key is."""
    return str(int(sha256(key)[:8], 16) % shards)


def split_attempt(execution_name: str) -> tuple[str, int]:
    """The request's name and the attempt's number behind an execution's name."""
    match = _ATTEMPT.fullmatch(execution_name)
    return (match["name"], int(match["attempt"])) if match else (execution_name, 1)


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
        """Read the template's Outputs, or a function's environment: the names are the same."""
        retention = settings["RetentionSeconds"]
        return cls(
            key_prefix=settings["KeyPrefix"],
            expected_seconds=float(settings["ExpectedSeconds"]),
            retention_seconds=None if retention == "never" else float(retention),
            lock_token_path=settings.get("LockTokenPath") or None,
            payload_hash_path=settings.get("PayloadHashPath") or None,
            open_shards=int(settings.get("OpenShards") or OPEN_SHARDS),
            work_timeout_seconds=float(settings.get("WorkTimeoutSeconds") or LONGEST_WORK_SECONDS),
        )

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


@dataclass(frozen=True)
class Envelope:
    """
    An execution's input.

    All times are UTC text. `expectedCompletion`, `expiresAt` and `ttl` (epoch seconds, as text) count from
    starting; `callId` is unique to one call; nothing else differs between two sends of one event.
    `redelivery` is absent unless the request came as a message or an event, to which nobody waits for an
    answer: then it is what the re-sender needs, should the request have to come back later.
    """

    lockToken: str  # noqa: N815 - the fields are the JSON's, here and in the workflow
    payload: Mapping[str, Any]
    payloadHash: str  # noqa: N815
    requestedAt: str  # noqa: N815
    expectedCompletion: str  # noqa: N815
    expiresAt: str  # noqa: N815
    ttl: str
    shard: str
    callId: str  # noqa: N815
    redelivery: Mapping[str, Any] | None = None

    @classmethod
    def make(
        cls,
        name: str,
        payload: Mapping[str, Any],
        rules: RequestRules,
        *,
        lock_token: str | None = None,
        requested_at: datetime | None = None,
        redelivery: Mapping[str, Any] | None = None,
    ) -> Self:
        """
        Fill in what an execution needs to know of its request.

        Args:
            name: What `name_of` made of the request id.
            payload: JSON object for the work.
            rules: Of the machine that is to run it.
            lock_token: The business key, used as it is. Default: by the rules.
            requested_at: The event's own time. Default: now.
            redelivery: JSON object for the re-sender, which the workflow carries along.

        Raises:
            InvalidRequest: with what is wrong, before anything is started.
        """
        if not isinstance(payload, Mapping):
            raise InvalidPayload(f"The payload is a {type(payload).__name__}. Send a JSON object.")
        if requested_at is not None and requested_at.tzinfo is None:
            raise InvalidRequest(
                f"requested_at {requested_at.isoformat()} has no zone. Give it one, like UTC."
            )
        text = _fitting(payload, "payload")  # first, so that nothing else meets a payload of any size
        now = times.now()
        token = rules.lock_token(name, payload) if lock_token is None else lock_token
        _check_lock_token(token)
        expires_at = times.to_text(times.after(now, rules.retention_seconds))
        envelope = cls(
            lockToken=token,
            payload=payload,
            payloadHash=rules.payload_hash(payload, text),
            requestedAt=times.to_text(requested_at or now),
            expectedCompletion=times.to_text(times.after(now, rules.expected_seconds)),
            expiresAt=expires_at,
            ttl=str(times.epoch_seconds(expires_at)),
            shard=shard_of(token, rules.open_shards),
            callId=uuid.uuid4().hex,
            redelivery=redelivery,
        )
        envelope.to_json()
        return envelope

    @classmethod
    def complete(cls, execution_name: str, execution_input: Mapping[str, Any], rules: RequestRules) -> Self:
        """
        Turn the input of an execution that was started by hand into an envelope.

        Args:
            execution_name: `$$.Execution.Name`.
            execution_input: `{"payload": {…}}`, with `lockToken` and `requestedAt` if you like.
            rules: Of the machine that runs it.

        Raises:
            InvalidRequest: the input has something missing, wrong or unknown; the message says what.
            InvalidRequestId: the execution has the name of an attempt, and no lock token of its own.
        """
        from jsonschema.exceptions import best_match  # needs 0.1 s, and most functions never do

        problem = best_match(_hand_started_schema().iter_errors(execution_input))
        if problem is not None:
            place = ".".join(["input", *map(str, problem.absolute_path)])
            raise InvalidPayload(
                f'{place}: {_demand(problem)}. Start with {{"payload": {{…}}}}; only lockToken and '
                "requestedAt may stand beside it."
            )
        _check_name_by_hand(execution_name, "lockToken" in execution_input)
        requested_at = execution_input.get("requestedAt")
        return cls.make(
            name_by_hand(execution_name),
            execution_input["payload"],
            rules,
            lock_token=execution_input.get("lockToken"),
            requested_at=None if requested_at is None else _time(requested_at),
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.redelivery is None:
            del given["redelivery"]
        return given

    def to_json(self) -> str:
        """
        The canonical text that StartExecution sends.

        Raises:
            PayloadTooLarge: it would leave less than 64 KiB for the result.
        """
        return self._json

    @cached_property
    def _json(self) -> str:
        return _fitting(self.to_dict(), "input")


def _fitting(value: Any, where: str) -> str:
    """The canonical text of an envelope or its payload, if a workflow can carry it."""
    try:
        return canonical_json(value, where, limit=ENVELOPE_LIMIT)
    except PayloadTooLarge as error:
        raise PayloadTooLarge(
            f"{error} The result travels with it in a workflow's {WORKFLOW_LIMIT:,}. Keep the large part "
            "in S3 and send its address."
        ) from None


@cache
def _hand_started_schema() -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(
        json.loads(files("steponce").joinpath("hand_started.schema.json").read_text())
    )


def name_by_hand(execution_name: str) -> str:
    """The name that the client makes of the same id, so that both mean one request."""
    name, _ = split_attempt(execution_name)
    return name if _AS_IT_IS.fullmatch(name) and _MARKED.fullmatch(name) else name_of(name)


def _check_name_by_hand(execution_name: str, has_key: bool) -> None:
    """`report--10` may be a request of that id or the tenth attempt of `report`, which have two keys."""
    if has_key or not _LIKE_AN_ATTEMPT.fullmatch(execution_name):
        return
    other = re.sub(r"--(\d+)$", r"-\1", execution_name)
    raise InvalidRequestId(
        f"The execution's name {execution_name!r} ends as an attempt's does, so none can tell which request "
        f"it is. Start it under another name, like {other!r}, or give its lockToken beside the payload. The "
        "next attempt of a request is started by the client: steponce start, or steponce locks retry."
    )


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


def _demand(problem: ValidationError) -> str:
    """What the schema wants, without the value that it found: errors end in logs, payloads must not."""
    if problem.validator == "additionalProperties":
        unknown = problem.message.partition("(")[2].rpartition(")")[0]
        return f"has an unknown field: {unknown[:_LONGEST_UNKNOWN]}"
    return f"does not fit: {problem.validator} must be {json.dumps(problem.validator_value)}"


def _time(text: str) -> datetime:
    try:
        return times.from_text(text)
    except ValueError:
        raise InvalidPayload(
            f"input.requestedAt: {shown(text)} is no time. Write it like 2026-01-31T12:00:00Z."
        ) from None


def _check_lock_token(token: Any) -> None:
    if not isinstance(token, str) or not token.strip():
        raise InvalidLockToken(f"The lock token {shown(token)} is empty or not text. Give the business key.")
    canonical_json(token, "lock_token")
    size = len(token.encode())
    if size > MAX_LOCK_TOKEN_BYTES:
        raise InvalidLockToken(
            f"The lock token has {size:,} bytes; {MAX_LOCK_TOKEN_BYTES:,} are allowed. Shorten it."
        )
