"""Makes the names of executions and attempts, and the index shard of a key."""

from __future__ import annotations

import re

from steponce.errors import InvalidRequestId, shown
from steponce.request.canonical import sha256

MAX_REQUEST_ID_BYTES = 2_048
"""The same limit as for a lock token, because error messages, logs and records repeat the id."""

OPEN_SHARDS = 10
"""The default number of shards of an open index. Shards prevent a hot partition."""

MAX_ATTEMPT = 999_999
"""The highest attempt that a name has room for."""

_MAX_NAME = 72
_AS_IT_IS = re.compile(rf"[0-9A-Za-z_-]{{1,{_MAX_NAME}}}")
_MARKED = re.compile(r".*--([0-9]+|x[0-9a-f]{32})", re.DOTALL)
_ATTEMPT = re.compile(r"(?P<name>.+)--(?P<attempt>[2-9]|[1-9][0-9]{1,5})")


def name_of(request_id: str) -> str:
    """
    Make the execution name of a request id: the id itself if it is a valid name, else a slug with a hash.

    Args:
        request_id: Any text that is not blank. `[0-9A-Za-z_-]{1,72}` is used unchanged, unless it ends like a
            generated name (`--2`, or `--x` and a hash).

    Returns:
        1 to 72 characters, which leaves room for `--2` to `--999999`. Two ids never have the same name.

    Raises:
        InvalidRequestId: the id is empty, blank, not text or longer than 2,048 bytes.

    Source: StartExecution API reference (names have 1-80 characters; for logs only 0-9A-Za-z-_).
    """
    if not isinstance(request_id, str) or not request_id.strip():
        raise InvalidRequestId(
            f"The request id {shown(request_id)} is empty or not text. Give one that names the request."
        )
    if not is_named_otherwise(request_id):
        return str.__str__(request_id)  # a member of a text Enum would be written as its name
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


def is_named_otherwise(request_id: str) -> bool:
    """Whether the client's executions of a request have another name than its id."""
    return not _AS_IT_IS.fullmatch(request_id) or _MARKED.fullmatch(request_id) is not None


def attempt_name(name: str, attempt: int) -> str:
    """Make the name of a request's n-th attempt: `order-1`, `order-1--2`, `order-1--3`, …"""
    return name if attempt == 1 else f"{name}--{attempt}"


def shard_of(key: str, shards: int) -> str:
    """The index shard of a key, from 0 to `shards` - 1, as text."""
    return str(int(sha256(key)[:8], 16) % shards)


def shards_to_read(shards: int) -> int:
    """
    How many shards of the open index to read, so that no open record is missed.

    A client or a guard that does not know the stack's `OpenShards` writes to the default number of shards.

    Args:
        shards: The stack's `OpenShards`.
    """
    return max(shards, OPEN_SHARDS)


def split_attempt(execution_name: str) -> tuple[str, int]:
    """Split an execution's name into the request's name and the attempt's number."""
    match = _ATTEMPT.fullmatch(execution_name)
    return (match["name"], int(match["attempt"])) if match else (execution_name, 1)


def check_name_by_hand(execution_name: str, has_key: bool) -> None:
    """
    Refuse the name of an execution that was started by hand if the client makes such names of other ids.

    `report--10` may be a request of that id or the tenth attempt of `report`, which have two keys.

    Raises:
        InvalidRequestId: it is ambiguous which request is meant, and there is no lock token.
    """
    if has_key or not _MARKED.fullmatch(execution_name):
        return
    before, _, last = execution_name.rpartition("-")
    other = f"{before.rstrip('-')}-{last}"
    raise InvalidRequestId(
        f"The execution's name {execution_name!r} ends as an attempt's does, or as one made of a longer id, "
        f"so none can tell which request it is. Start it under another name, like {other!r}, or give its "
        "lockToken beside the payload. The client starts the next attempt of a request: start the request "
        "again, or retry its lock."
    )
