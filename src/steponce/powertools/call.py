"""One decorated call: its key, its lock, its outcome. With others it shares only what never changes."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import jmespath
from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer, IdempotencyConfig
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
    IdempotencyValidationError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

from steponce.aws import times
from steponce.errors import (
    AlreadyInProgress,
    InvalidPayload,
    NotRecorded,
    PayloadMismatch,
    PayloadTooLarge,
    RequestFailed,
    ResultForbidden,
)
from steponce.guards.final_records import FinalRecords
from steponce.guards.holder import Holder
from steponce.guards.invocation import lease_of, owner_of
from steponce.guards.recorder import Recorder
from steponce.guards.run import Run
from steponce.guards.terms import Terms
from steponce.guards.texts import as_error
from steponce.locks.record import Lock
from steponce.locks.reference import Kept
from steponce.locks.results import Results
from steponce.locks.table import Locks
from steponce.powertools.data_records import FailedRecord, completed, in_progress
from steponce.request.canonical import canonical_json, sha256
from steponce.request.envelope import check_lock_token
from steponce.request.settings import RequestRules
from steponce.workflow import FAILED, INPROGRESS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class Store:
    """
    What the calls of one LocksPersistence share.

    Args:
        dynamodb: The client to write with.
        table: The name of the table.
        rules: For shards.
        terms: How its calls go.
        partition: The partition key's value in a table with a composite key.
        kept: FinalRecords records in memory, by how many a configuration keeps.
    """

    dynamodb: DynamoDBClient
    table: str
    rules: RequestRules
    terms: Terms
    partition: str | None = None
    kept: dict[int, FinalRecords] = field(default_factory=dict)


class Call(BasePersistenceLayer):
    """
    A store for one call, with its configuration.

    Powertools' own code makes the key and keeps the order of things; what is here is its four operations on a
    record. The lock is a guard's run, so that there is one holder, one lease and one set of rules for errors.
    """

    def __init__(
        self, store: Store, config: IdempotencyConfig, function_name: str | None, key_prefix: str | None
    ) -> None:
        super().__init__()
        self.configure(config, function_name, key_prefix)
        self.use_local_cache = False  # `kept` is the cache
        self._store = store
        self._locks = Locks(store.dynamodb, store.table)
        self._context = config.lambda_context
        size = config.local_cache_max_items if config.use_local_cache else 0
        self._kept = store.kept.setdefault(size, FinalRecords(size))
        self._data: Any = None
        self._run: _Run | None = None
        self._error: Exception | None = None

    # -- What Powertools calls ---------------------------------------------------------------------

    def save_inprogress(self, data: dict[str, Any], remaining_time_in_millis: int | None = None) -> None:
        self._data = data
        lease_seconds = self._store.terms.lease_seconds
        if lease_seconds is not None:  # so Powertools need not warn that it knows of no time
            remaining_time_in_millis = int(lease_seconds * 1000)
        super().save_inprogress(data, remaining_time_in_millis)

    def get_record(self, data: dict[str, Any]) -> DataRecord | None:
        self._data = data
        return super().get_record(data)

    def save_success(self, data: dict[str, Any], result: dict[str, Any]) -> None:
        try:
            super().save_success(data, result)
        except (TypeError, ValueError, RecursionError) as error:
            # No JSON. The work is done, so its lock must not be left to a clock.
            if self._run is None:
                raise
            self._run.adopt()
            self._run.hold_result(result, error)

    def delete_record(self, data: dict[str, Any], exception: Exception) -> None:
        self._error = exception
        super().delete_record(data, exception)

    # -- The operations on a record ----------------------------------------------------------------

    def _put_record(self, data_record: DataRecord) -> None:
        """Take the lock, or find who has it or how it ended."""
        token = data_record.idempotency_key
        check_lock_token(token)
        self._run = run = self._begin(token, data_record.payload_hash)
        try:
            run.__enter__()
        except PayloadMismatch as mismatch:
            raise IdempotencyValidationError(str(mismatch)) from mismatch
        except AlreadyInProgress as busy:
            found = in_progress(*self._names(token), data_record.payload_hash, busy.lease_until)
            raise IdempotencyItemAlreadyExistsError(old_data_record=found) from busy
        except RequestFailed as failed:
            found = FailedRecord(*self._names(token), data_record.payload_hash, failed)
            raise IdempotencyItemAlreadyExistsError(old_data_record=found) from failed
        if run.met is not None:
            raise IdempotencyItemAlreadyExistsError(old_data_record=self._as_record(run.met))

    def _get_record(self, idempotency_key: str) -> DataRecord:
        lock = self._locks.get(idempotency_key)
        if lock is None or lock.is_reusable(times.now_text()):
            raise IdempotencyItemNotFoundError
        return self._as_record(lock)

    def _update_record(self, data_record: DataRecord) -> None:
        if self._run is not None:
            self._run.adopt()
            try:
                self._run.complete(json.loads(data_record.response_data))
            except NotRecorded as error:
                if isinstance(error.__cause__, PayloadTooLarge):
                    error.add_note(
                        "LocksPersistence does not use the ResultBucket. Keep the large part elsewhere."
                    )
                self._run.__exit__(type(error), error, error.__traceback__)
                raise

    def _delete_record(self, data_record: DataRecord) -> None:
        """Nothing is deleted: the error of the work decides, as everywhere, what becomes of the record."""
        if self._run is None or self._error is None:
            raise NotImplementedError(f"The record {data_record.idempotency_key!r} is a lock, and is kept.")
        self._run.adopt()
        self._run.__exit__(type(self._error), self._error, self._error.__traceback__)

    # -- What they are made of -----------------------------------------------------------------------

    def _begin(self, token: str, their_hash: str) -> _Run:
        terms = self._store.terms
        holder = Holder(
            self._store.dynamodb,
            self._store.table,
            lock_token=token,
            request_id=token,
            payload_hash=self._payload_hash(),
            locked_by=owner_of(self._context),
            rules=replace(self._store.rules, retention_seconds=self.expires_after_seconds),
            expires_after_work=True,
        )
        lease = lease_of(terms, self._context)
        return _Run(holder, self._locks, terms, lease, self._kept, their_hash)

    def _as_record(self, lock: Lock) -> DataRecord:
        key, sort_key = self._names(lock.lock_token)
        payload_hash = lock.payload_hash or ""
        if payload_hash == self._payload_hash():  # Powertools compares with a hash of its own
            payload_hash = self._get_hashed_payload(self._data)
        if lock.status == INPROGRESS:
            return in_progress(key, sort_key, payload_hash, lock.lease_until)
        if lock.status == FAILED:
            return FailedRecord(key, sort_key, payload_hash, as_error(lock))
        return completed(key, sort_key, payload_hash, lock)

    def _names(self, token: str) -> tuple[str, str | None]:
        """Partition key and sort key, as Powertools' records name them."""
        return (token, None) if self._store.partition is None else (self._store.partition, token)

    def _payload_hash(self) -> str:
        """
        Of what every call under the key must share: the part that is validated, else the whole payload.

        A workflow with this payload has the same hash. No workflow has what is no JSON, so any does there.
        """
        payload = self._data
        if self.validation_key_jmespath is not None:
            options = jmespath.Options(**(self.jmespath_options or {}))
            payload = self.validation_key_jmespath.search(payload, options=options)
        try:
            return sha256(canonical_json(payload))
        except InvalidPayload:
            return self._generate_hash(payload)


class _RecordsAlone(Results):
    """The results of a store that uses no bucket."""

    def fetch(self, kept: Kept) -> Any:
        raise ResultForbidden(
            f"{kept.which} is not read, since LocksPersistence uses no bucket. Read it with a guard or the "
            "client."
        )


class _Run(Run):
    """A run that compares payloads only if Powertools is configured to, and remembers what it replays."""

    def __init__(
        self, holder: Holder, locks: Locks, terms: Terms, lease: float, kept: FinalRecords, their_hash: str
    ) -> None:
        terms = replace(terms, on_replay=self._meet)
        super().__init__(holder, locks, holder.lock_token, terms, lease, kept, _RecordsAlone())
        self._claim = holder
        self._their_hash = their_hash
        self._waited_for: Lock | None = None
        self.met: Lock | None = None

    def adopt(self) -> None:
        """
        Hold the lock that kept this call away, if another invocation of the same function holds it.

        Powertools ends a call that it must leave alone only where a durable function is replayed: then
        its first invocation took the lock, and this one goes on in its place.
        """
        lock, mine = self._waited_for, self._claim.locked_by
        if lock is None or self._state != "new":
            return
        if mine.startswith("lambda/") and mine.rpartition("/")[0] == lock.locked_by.rpartition("/")[0]:
            self._claim.continues(lock)
            self._state = "begun"

    def hold_result(self, result: object, error: Exception) -> NoReturn:
        """Leave a result that is no JSON to a person; as `complete`."""
        self._state = "over"
        Recorder(self._claim, self._terms, self._results).hold_unwritable(result, error)

    def _wait(self, record: Lock, end: float, pause: float) -> Generator[float, None, None]:
        self._waited_for = record
        return super()._wait(record, end, pause)

    def _meet(self, result: Any, lock: Lock) -> Any:
        self.met = lock
        return result

    def _expect_same_payload(self, record: Lock) -> None:
        """
        Powertools' own records have a hash of Powertools' own. So has a payload that was no JSON.

        It may be JSON now: newer Powertools make text of a Decimal in a pydantic model.
        """
        if not self._their_hash or record.payload_hash == self._their_hash:
            return
        if record.is_of_powertools:
            raise PayloadMismatch(f"The key {self.lock_token!r} was used with another payload.")
        super()._expect_same_payload(record)
