"""A bucket for large results in moto, with versions, as the template makes it."""

from __future__ import annotations

from typing import Any

from steponce.locks.record import Lock
from steponce.locks.reference import Reference
from steponce.locks.results import Results
from steponce.workflow import COMPLETED
from tests.unit.shared_clients import shared

BUCKET = "large-results"
KEY = "acme/o-1"
NOON = "2026-01-31T12:00:00.000Z"


def bucket(name: str = BUCKET, region: str = "us-east-1", *, versions: bool = True) -> Results:
    """Make one."""
    s3 = shared("s3", region)
    there = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **there)
    if versions:
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    return Results(name, lambda: s3)


def record(result: str | None, lock_token: str = KEY, call_id: str = "call-1") -> Lock:
    """A completed record."""
    return Lock(
        lock_token,
        COMPLETED,
        "arn:execution:order-1",
        call_id,
        "order-1",
        1,
        NOON,
        NOON,
        result=result,
    )


def kept(results: Results, text: str, **options: Any) -> Reference:
    """What `record` has in the place of this result."""
    given = {"lock_token": KEY, "call_id": "call-1", "retention_seconds": 7_776_000.0} | options
    return results.keep(text, **given)
