"""The bucket of results that are too large for their records."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    FlexibleChecksumError,
    IncompleteReadError,
    ResponseStreamingError,
)

from steponce.aws.errors import answering, error_code
from steponce.aws.forks import OwnLock, own_connections
from steponce.aws.pauses import pauses
from steponce.errors import (
    ResultAltered,
    ResultForbidden,
    ResultGone,
    ResultNotKept,
    ResultUnreadable,
    Unavailable,
)
from steponce.locks.record import Lock
from steponce.locks.reference import REFERENCE, Kept, Reference, folder_of, new_key

if TYPE_CHECKING:
    import boto3

OFF = "off"
"""The value of the parameter ResultBucket where results stay in their records."""

LARGEST_IN_RECORD = 200_000
"""Bytes that a result may have in a record, as a workflow carries it."""

LARGEST_KEPT = 50 * 1024 * 1024
"""The most bytes of a result in the bucket. Its reader holds it in memory."""

LIFETIMES = (40, 120, 400, 4000)
"""Days after which the bucket's lifecycle deletes an object; its tag `keepDays` says which of them."""

LATE_DAYS = 30
"""A record that is settled late is kept longer than its retention says; so much is allowed for."""

_GONE = frozenset({"NoSuchKey", "NoSuchVersion", "NoSuchBucket", "MethodNotAllowed", "404"})
_FORBIDDEN = frozenset({"AccessDenied", "AllAccessDisabled", "AccountProblem", "403"})
_EXPIRED = frozenset({"ExpiredToken", "TokenRefreshRequired"})
_AT_ONCE = 1000

ONE_TRY = Config(retries={"total_max_attempts": 1})
"""For clients that write: `Results.keep` tries again itself."""

_RETRIES = 2
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 1.0


class Results:
    """
    The bucket of a stack's large results.

    Args:
        bucket: Its name, or what the parameter ResultBucket says; None or `off` where there is none.
        make_client: Makes an S3 client, when one is needed for the first time.
        make_writer: Makes the one that writes, with `ONE_TRY`. Default: `make_client`.
    """

    def __init__(
        self,
        bucket: str | None = None,
        make_client: Callable[[], Any] | None = None,
        make_writer: Callable[[], Any] | None = None,
    ) -> None:
        self.bucket = None if bucket in (None, "", OFF) else bucket
        self._make_client = make_client
        self._make_writer = make_writer or make_client
        self._clients: dict[Callable[[], Any] | None, Any] = {None: None}
        self._making = OwnLock()

    def __bool__(self) -> bool:
        return self.bucket is not None

    def beside(self, bucket: str | None) -> Self:
        """A store for another bucket; this one, if the bucket is the same."""
        other = type(self)(bucket, self._make_client, self._make_writer)
        return self if other.bucket == self.bucket else other

    def of(self, lock: Lock) -> Any:
        """The result of a record, parsed; `Kept` where the record has but its address."""
        result: Any = None if lock.result is None else json.loads(lock.result)
        reference = Reference.read(result, lock)
        if reference is None:
            return result
        return Kept(self, lock, reference, {name: result[name] for name in result if name != REFERENCE})

    def read(self, lock: Lock) -> Any:
        """The result of a record, wherever it is; errors as `Kept.read`."""
        found = self.of(lock)
        return found.read() if isinstance(found, Kept) else found

    def keep(self, text: str, *, lock_token: str, call_id: str, retention_seconds: float | None) -> Reference:
        """
        Keep a result (JSON text), before a record gets its address.

        Each try makes an object of its own. Under one key, a try that got no answer may land after the next
        one. Then the record would name an older version, and the bucket's lifecycle deletes older versions.
        It also deletes an object that no record names, unless results are kept for ever.

        Args:
            text: At most LARGEST_KEPT bytes.
            lock_token, call_id: Of the record that is to have the address.
            retention_seconds: How long that is kept; None for ever.

        Raises:
            ResultNotKept: there is no bucket, it is not as it must be, or nothing may be written to it.
            Unavailable: S3 did not answer; safe to try again.
        """
        body = text.encode()
        if self.bucket is None:
            raise ResultNotKept("There is no bucket for large results. Set the parameter ResultBucket.")
        if len(body) > LARGEST_KEPT:
            raise ResultNotKept(
                f"The result has {len(body):,} bytes; {LARGEST_KEPT:,} are allowed. Keep it elsewhere, and "
                "let its address be the result."
            )
        days = lifetime_days(retention_seconds)
        for pause in islice(pauses(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS), _RETRIES):
            try:
                return self._put(self.bucket, new_key(lock_token, call_id), body, days)
            except Unavailable:
                time.sleep(pause)
        return self._put(self.bucket, new_key(lock_token, call_id), body, days)

    def fetch(self, kept: Kept) -> Any:
        """What a record's reference stands for, if it is as it was kept; errors as `Kept.read`."""
        reference, which = kept.reference, kept.which
        if reference.bucket != self.bucket:
            own = f"the bucket {self.bucket}" if self.bucket else "no bucket"
            raise ResultForbidden(
                f"{which} is not read, since the results of this stack have {own}. Give the stack's "
                f"parameter ResultBucket, or the client's result_bucket, the value {reference.bucket}."
            )
        body = self._body(reference, which)
        if len(body) != reference.bytes or hashlib.sha256(body).hexdigest() != reference.sha256:
            raise ResultAltered(
                f"{which} is not what was kept: its size or SHA-256 is another. Something else writes to the "
                "bucket. Find out what, and ask the system that did the work for the result."
            )
        return json.loads(body)

    def objects(self, lock_token: str) -> list[tuple[str, str]]:
        """
        Key and version of everything that is kept under a lock token, also of what no record names.

        Raises:
            ResultForbidden: the bucket may not be listed.
            Unavailable: S3 did not answer, or the credentials have expired; safe to try again.
        """
        if self.bucket is None:
            return []
        found: list[tuple[str, str]] = []
        pages = self._s3.get_paginator("list_object_versions").paginate(
            Bucket=self.bucket, Prefix=folder_of(lock_token)
        )
        with self._erasing():
            for page in pages:
                listed = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
                found += [(one["Key"], one["VersionId"]) for one in listed]
        return found

    def delete(self, objects: Sequence[tuple[str, str]]) -> None:
        """
        Delete versions of objects, for good.

        Raises:
            ResultForbidden: S3 has refused one.
            Unavailable: S3 did not answer, or the credentials have expired; safe to try again.
        """
        for first in range(0, len(objects), _AT_ONCE):
            some = [{"Key": key, "VersionId": version} for key, version in objects[first : first + _AT_ONCE]]
            with self._erasing():
                answer = self._s3.delete_objects(Bucket=self.bucket, Delete={"Objects": some, "Quiet": True})
            for error in answer.get("Errors", []):
                raise self._not_erased(str(error.get("Code")))

    def _put(self, bucket: str, key: str, body: bytes, days: int | None) -> Reference:
        """Make one object, in one try. Raises as `keep`."""
        digest = hashlib.sha256(body)
        try:
            with answering("S3"):
                made = self._writer.put_object(
                    Bucket=bucket,
                    Key=key,
                    Body=body,
                    ContentType="application/json",
                    ChecksumSHA256=base64.b64encode(digest.digest()).decode(),
                    **({} if days is None else {"Tagging": f"keepDays={days}"}),
                )
        except (ClientError, BotoCoreError) as error:
            what = error_code(error) if isinstance(error, ClientError) else type(error).__name__
            raise ResultNotKept(
                f"The bucket {bucket} took no result: {what}. Look whether it is there, whether this "
                "program may s3:PutObject and s3:PutObjectTagging in its results/, and use the bucket's key."
            ) from error
        version = made.get("VersionId", "null")
        if version == "null":
            raise ResultNotKept(
                f"The bucket {bucket} keeps no versions, so that any write could change a result. "
                "Switch its versioning on."
            )
        return Reference(bucket, key, version, digest.hexdigest(), len(body))

    @contextmanager
    def _erasing(self) -> Iterator[None]:
        try:
            with answering("S3"):
                yield
        except ClientError as error:
            if error_code(error) in _EXPIRED:
                raise Unavailable(
                    f"The credentials have expired (S3 said {error_code(error)}). Log in to AWS again. The "
                    "same command erases the rest."
                ) from error
            raise self._not_erased(error_code(error)) from error

    def _not_erased(self, code: str) -> ResultForbidden:
        return ResultForbidden(
            f"Not all large results were erased from the bucket {self.bucket} ({code}). Erasing needs "
            "s3:ListBucketVersions on the bucket, and s3:DeleteObjectVersion in its results/. The same "
            "command erases the rest."
        )

    def _body(self, reference: Reference, which: str) -> bytes:
        try:
            with answering("S3"):
                answer = self._s3.get_object(
                    Bucket=reference.bucket, Key=reference.key, VersionId=reference.version
                )
                if answer["ContentLength"] != reference.bytes:  # it may be of any size
                    answer["Body"].close()
                    return b""
                body: bytes = answer["Body"].read()
                return body
        except ClientError as error:
            raise _unreadable(error_code(error), which) from error
        except (FlexibleChecksumError, IncompleteReadError, ResponseStreamingError) as error:
            raise ResultAltered(f"{which} did not come whole ({error}). Ask again.") from error
        except BotoCoreError as error:
            raise _unreadable(type(error).__name__, which) from error

    @property
    def _s3(self) -> Any:
        return self._made_by(self._make_client)

    @property
    def _writer(self) -> Any:
        return self._made_by(self._make_writer)

    def _made_by(self, make: Callable[[], Any] | None) -> Any:
        """Made in one thread: boto3's sessions are not for several."""
        with self._making.here:
            if make is not None and make not in self._clients:
                self._clients[make] = make()
            return self._clients[make]


def lifetime_days(retention_seconds: float | None) -> int | None:
    """The shortest of LIFETIMES that outlives a record; None where none does, so that the object stays."""
    if retention_seconds is None:
        return None
    return next((days for days in LIFETIMES if days * 86_400 >= retention_seconds + LATE_DAYS * 86_400), None)


def results_in(
    bucket: str | None, session: boto3.Session, config: Config, endpoints: Mapping[str, str]
) -> Results:
    """The large results in a bucket. The clients for S3 are made only when they are needed."""

    def client(config: Config) -> Any:
        return own_connections(session.client("s3", config=config, endpoint_url=endpoints.get("aws")))

    return Results(bucket, lambda: client(config), lambda: client(config.merge(ONE_TRY)))


def carried_bytes(text: str) -> int:
    """
    The size of a result (JSON text) in the write that records it: JSON in JSON, quotes counted twice.

    Of a text that is too long in any case, its length, so that it is not copied again.
    """
    if len(text) > LARGEST_IN_RECORD:
        return len(text)
    return len(json.dumps(text, ensure_ascii=False).encode())


def _unreadable(code: str, which: str) -> ResultUnreadable:
    if code in _GONE:
        return ResultGone(
            f"{which} is gone ({code}). The work is done, so do not run it again for that. Ask the "
            "system that did it for the result."
        )
    if code in _FORBIDDEN:
        return ResultForbidden(
            f"{which} may not be read ({code}). Reading needs s3:GetObjectVersion in the bucket's "
            "results/, as the policy ReadResultsPolicyArn gives it. If you have that, the object is gone: S3 "
            "gives this answer for both, unless you may list the bucket."
        )
    return ResultUnreadable(f"{which} cannot be read ({code}). Look at the object and at the bucket.")
