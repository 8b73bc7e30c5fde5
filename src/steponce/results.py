"""
Results too large for a workflow and its record: the work keeps them in the stack's bucket, and returns their
address instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

from botocore.config import Config

from steponce.aws.forks import own_connections
from steponce.errors import ResultNotKept, Unavailable
from steponce.locks.results import LARGEST_IN_RECORD, ONE_TRY, Results, carried_bytes
from steponce.next_step import NextStep

# The work's own time is short, and it must still report a bucket that does not answer.
_CONFIG = ONE_TRY.merge(Config(connect_timeout=2, read_timeout=10))

_PLAIN = frozenset((str, int, float, bool, type(None)))


def keep(result: Any, work: Mapping[str, Any], results: Results | None = None) -> Any:
    """
    Make a result fit into the workflow, as the last thing that the work does.

        return results.keep({"statement": pages}, work)

    Args:
        result: What Lambda's runtime writes as JSON, of at most 50 MiB. That includes Decimals, which are
            numbers, and named tuples, which are objects. Bytes in it are text; if they are all of it, they
            are JSON.
        work: What the workflow hands to the work: `lockToken`, `callId`, `payload` and more.
        results: The bucket. Default: the one that the environment variable ResultBucket names.

    Returns:
        The result as it is, if it and the payload have at most 200,000 bytes together, or if there is no
        bucket. The result counts with its quotes and backslashes twice, or with the blanks that Lambda's
        runtime adds, whichever is more. Else a reference to the object that holds it: return that. Everyone
        who asks for the result gets what is kept there.

    Raises:
        ResultNotKept: S3 did not take it. Let it pass: the workflow ends with ResultTooLarge, the lock stays
            open, and the work is not run again. A person can complete it. Or `work` lacks what names the
            result, as in a wrapped machine: do not use `keep` there.
    """
    results = _results() if results is None else results
    if not results:
        return result
    try:
        plain = json.loads(result) if isinstance(result, bytes) else _as_answered(result)
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        answered = json.dumps(plain, ensure_ascii=False)  # Lambda's runtime adds blanks, which count, too
        payload = json.dumps(work.get("payload"), ensure_ascii=False, separators=(",", ":"))
        carried = max(carried_bytes(text), len(answered.encode())) + len(payload.encode())
    except (TypeError, ValueError, RecursionError):
        return result  # for the function's runtime to judge, as without a bucket
    if carried <= LARGEST_IN_RECORD:
        return result
    missing = [name for name in ("lockToken", "callId") if name not in work]
    if missing:
        raise ResultNotKept(
            f"The work is done, and its result was not kept: its input has no {' and no '.join(missing)}. "
            "Hand on what DoWork gives to its function."
        )
    try:
        return results.keep(
            text,
            lock_token=work["lockToken"],
            call_id=work["callId"],
            retention_seconds=_retention_seconds(),
        ).to_dict()
    except Unavailable as error:
        raise ResultNotKept(
            f"The work is done, and its result was not kept. {error} Do not run it again: complete its "
            "lock by hand.",
            next_steps=[NextStep("complete lock", work["lockToken"])],
        ) from error


def _as_answered(value: Any) -> Any:
    """
    A value as a caller reads what Lambda's runtime has written. What JSON has no form for stays as it is.

    A part that needs no change is not copied: most large results need none, and would take twice the memory.

    Source: `Encoder` of the package awslambdaric, and simplejson, on which it rests.
    """
    if isinstance(value, Decimal):
        return json.loads(str(value))
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _as_answered(value._asdict())
    if isinstance(value, dict):
        fields = {key: item if type(item) in _PLAIN else _as_answered(item) for key, item in value.items()}
        return fields if any(fields[key] is not item for key, item in value.items()) else value
    if isinstance(value, list | tuple):
        items = [item if type(item) in _PLAIN else _as_answered(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


@cache
def _results() -> Results:
    bucket = os.environ.get("ResultBucket")
    return Results(bucket, _s3)


def _s3() -> Any:
    import boto3  # a function without large results does not wait for it

    return own_connections(boto3.client("s3", config=_CONFIG))


def _retention_seconds() -> float | None:
    """How long results are kept. None means for ever, also if the variable RetentionSeconds is not set."""
    seconds = os.environ.get("RetentionSeconds", "never")
    return None if seconds == "never" else float(seconds)
