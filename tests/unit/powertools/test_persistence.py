"""Powertools' own decorators on our lock records."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from aws_lambda_powertools.utilities.idempotency import idempotent, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyItemNotFoundError,
    IdempotencyKeyError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from aws_lambda_powertools.utilities.idempotency.serialization.dataclass import DataclassSerializer

from steponce import CompletionRefused, NotRecorded, RequestFailed, ResultForbidden, RetryLater
from steponce.aws import times
from steponce.errors import InvalidLockToken, InvalidSetting
from steponce.failure import Failure
from steponce.locks.record import ttl_of
from steponce.locks.reference import Reference, new_key
from steponce.locks.table import Locks
from steponce.powertools import LocksPersistence
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, OUTCOME_UNKNOWN, RELEASED
from tests.unit.powertools.world import PREFIX, Context, config, finish, items, key_of, only, ours, table
from tests.unit.shared_clients import shared

ORDER = {"orderId": "1", "amount": 500}
DONE = {"charge": "ch-1"}


class Declined(Exception):
    """The work's own."""


@pytest.fixture
def locks() -> Iterator[Locks]:
    """The stack's lock table, empty."""
    with table() as found:
        yield found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Lets time go by, for us and for Powertools; by itself it stands."""
    passed, began = timedelta(), times.now()

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.fromtimestamp((began + passed).timestamp(), tz)

    def go_by(seconds: float) -> None:
        nonlocal passed
        passed += timedelta(seconds=seconds)

    monkeypatch.setattr(times, "now", lambda: began + passed)
    base = "aws_lambda_powertools.utilities.idempotency"
    for module in ("base", "persistence.base", "persistence.datarecord"):
        monkeypatch.setattr(f"{base}.{module}.dt.datetime", Later, raising=True)
    return go_by


class Work:
    """A function that Powertools decorates, and how often it ran."""

    def __init__(self, *outcomes: Any, **options: Any) -> None:
        self.outcomes = list(outcomes)
        self.ran = 0
        given = {"persistence_store": ours(), "config": config(), "key_prefix": "charge"} | options
        self._call = idempotent_function(self._work, data_keyword_argument="order", **given)

    def __call__(self, order: Any = ORDER) -> Any:
        return self._call(order=order)

    def _work(self, order: Any) -> Any:
        self.ran += 1
        outcome = self.outcomes.pop(0) if self.outcomes else DONE
        if callable(outcome):
            outcome = outcome(order)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def test_a_decorated_call_leaves_a_record_of_ours(locks: Locks):
    """With everything that a workflow and an operator read in it."""
    charge = Work()
    seen = []
    charge.outcomes.append(lambda _order: seen.append(only(locks)) or DONE)

    assert [DONE, DONE] == [charge(), charge()]

    assert 1 == charge.ran
    begun, done = seen[0], only(locks)
    assert (INPROGRESS, "lambda/shop/request-1", 1) == (begun.status, begun.locked_by, begun.attempt)
    assert begun.open_status is not None
    assert begun.lease_until is not None
    assert (COMPLETED, '{"charge":"ch-1"}', None) == (done.status, done.result, done.open_status)
    assert key_of("charge", ORDER) == done.lock_token


@pytest.mark.usefixtures("clock")
def test_a_handler_is_guarded_by_its_invocation_s_time(locks: Locks):
    """`@idempotent` takes the context that Lambda gives."""

    @idempotent(persistence_store=ours())
    def handler(_event: dict[str, Any], _context: Any) -> dict[str, str]:
        left = times.from_text(only(locks).lease_until or "") - times.now()
        assert timedelta(seconds=4) < left <= timedelta(seconds=6)
        return DONE

    assert DONE == handler(ORDER, Context(milliseconds=5_000))
    assert DONE == handler(ORDER, Context("request-2"))
    assert "lambda/shop/request-1" == only(locks).locked_by


# -- Errors ----------------------------------------------------------------------------------------


def test_an_exception_waits_for_a_person(locks: Locks):
    """Powertools deletes the record, and the next call does the work again."""
    charge = Work(Declined("no"), DONE)
    with pytest.raises(Declined):
        charge()
    with pytest.raises(RequestFailed, match=r"failed with Declined: no\. It waits for a person"):
        charge()
    held = only(locks)
    assert (1, FAILED, Failure("Declined", "no")) == (charge.ran, held.status, held.failure)
    assert held.open_status is not None


def test_a_final_exception_is_an_answer(locks: Locks):
    """Everybody gets it, and nobody need look."""
    charge = Work(Declined("no"), DONE, persistence_store=ours(final=(Declined,)))
    with pytest.raises(Declined):
        charge()
    with pytest.raises(RequestFailed) as failed:
        charge()
    assert ("Declined", "no", 1) == (failed.value.error, failed.value.cause, charge.ran)
    assert (FAILED, None) == (only(locks).status, only(locks).open_status)


@pytest.mark.parametrize("option", ["final", "releases"])
def test_an_exception_that_powertools_does_not_catch_is_refused(option: str):
    """Nothing was recorded of it, whatever the option said."""
    with pytest.raises(InvalidSetting, match=f"{option} has SystemExit, which Powertools does not catch"):
        LocksPersistence("locks", **{option: (ValueError, SystemExit)})
    caught = (ValueError, BaseException, BaseExceptionGroup)
    assert LocksPersistence("locks", boto3_client=shared("dynamodb"), **{option: caught})


@pytest.mark.parametrize(("error", "releases"), [(RetryLater("busy"), ()), (Declined("no"), (Declined,))])
def test_where_nothing_happened_the_next_call_runs(
    locks: Locks, error: Exception, releases: tuple[type[Exception], ...]
):
    """RetryLater, and classes that the user names."""
    charge = Work(error, DONE, persistence_store=ours(releases=releases))
    with pytest.raises(type(error)):
        charge()
    assert RELEASED == only(locks).status
    assert (DONE, 2, 2) == (charge(), charge.ran, only(locks).attempt)


def in_itself() -> dict[str, Any]:
    """A result that holds itself."""
    found: dict[str, Any] = {}
    found["again"] = found
    return found


def nested(levels: int) -> list[Any]:
    """A result of so many levels."""
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize(
    "result",
    [{"at": object()}, {"at": float("nan")}, 1e999, in_itself(), nested(10_000)],
    ids=["object", "nan", "inf", "in itself", "too deep"],
)
def test_a_result_that_is_no_json_waits_for_a_person(locks: Locks, result: Any):
    """The work is done, so no clock may let it run again."""
    charge = Work(result)
    with pytest.raises(IdempotencyPersistenceLayerError) as failed:
        charge()
    assert isinstance(failed.value.__cause__, NotRecorded)
    with pytest.raises(RequestFailed, match="no record can hold its result"):
        charge()
    assert (1, FAILED) == (charge.ran, only(locks).status)


@pytest.mark.usefixtures("locks")
def test_a_result_that_is_too_large_is_not_kept_in_a_bucket():
    """The parameter ResultBucket, which the error names, may be set already."""
    with pytest.raises(IdempotencyPersistenceLayerError) as failed:
        Work({"pages": "x" * 300_000})()
    (note,) = failed.value.__cause__.__notes__
    assert "does not use the ResultBucket" in note


def test_a_result_that_a_person_has_put_into_the_bucket_is_not_read(locks: Locks):
    """A caller is told who can read it, and not to give the stack a bucket that it has."""
    charge = Work({"pages": "x" * 300_000})
    with pytest.raises(IdempotencyPersistenceLayerError):
        charge()
    held = only(locks)
    key = new_key(held.lock_token, held.call_id)
    reference = Reference("large-results", key, version="1", sha256="0" * 64, bytes=300_014)
    assert locks.complete(held, reference.to_json(), by="ann", why="asked the bank")
    with pytest.raises(IdempotencyPersistenceLayerError, match="LocksPersistence uses no bucket") as failed:
        charge()
    assert isinstance(failed.value.__cause__, ResultForbidden)
    assert 1 == charge.ran


@pytest.mark.usefixtures("locks")
def test_a_payload_that_was_no_json_is_known_when_it_is():
    """An update of Powertools makes text of what was a Decimal. To Powertools both are the same."""
    options = config(event_key_jmespath="orderId", payload_validation_jmespath="amount")
    charge = Work(config=options)
    assert DONE == charge({"orderId": "1", "amount": Decimal("1.50")})
    assert DONE == charge({"orderId": "1", "amount": "1.50"})
    with pytest.raises(IdempotencyValidationError):
        charge({"orderId": "1", "amount": "1.5"})
    assert 1 == charge.ran


@pytest.mark.usefixtures("locks")
def test_a_key_of_another_item_of_the_table_is_refused():
    """The lists and `erase` leave such items out, so nobody would find its lock."""
    charge = Work(DONE, key_prefix="steponce:letter:mine")
    with pytest.raises(IdempotencyPersistenceLayerError) as failed:
        charge()
    assert isinstance(failed.value.__cause__, InvalidLockToken)
    assert (0, []) == (charge.ran, items())


# -- Time ------------------------------------------------------------------------------------------


def test_a_second_call_is_kept_away_from_the_first_s_work(locks: Locks):
    """With Powertools' own error."""
    charge = Work()

    def meanwhile(_order: Any) -> Any:
        with pytest.raises(IdempotencyAlreadyInProgressError, match="charge#"):
            charge()
        return DONE

    charge.outcomes.append(meanwhile)
    assert (DONE, 1) == (charge(), charge.ran)
    assert COMPLETED == only(locks).status


def time_out(work: Work, go_by: Any) -> None:
    """A call whose process ends in the middle of its work, as Lambda ends it."""
    work.outcomes.insert(0, SystemExit())
    with pytest.raises(SystemExit):
        work()
    go_by(62)


def test_what_timed_out_is_held(locks: Locks, clock: Any):
    """Powertools runs it again: nobody knows whether it took effect."""
    charge = Work()
    time_out(charge, clock)
    for _ in range(2):
        with pytest.raises(RequestFailed, match="lease of lambda/shop/request-1 ended") as failed:
            charge()
        assert OUTCOME_UNKNOWN == failed.value.error
    assert (1, FAILED) == (charge.ran, only(locks).status)


def test_what_timed_out_is_taken_over_on_request(locks: Locks, clock: Any):
    """The next attempt of the same key."""
    charge = Work(persistence_store=ours(when_outcome_unknown="take-over"))
    time_out(charge, clock)
    assert (DONE, 2) == (charge(), charge.ran)
    assert (COMPLETED, 2) == (only(locks).status, only(locks).attempt)


def test_a_late_owner_overwrites_nothing(locks: Locks, clock: Any):
    """Its successor's result stays, and its own is in its error."""
    charge = Work({"charge": "late"}, persistence_store=ours(when_outcome_unknown="take-over"))

    def late(_order: Any) -> Any:
        clock(62)
        charge.outcomes.insert(0, DONE)
        assert DONE == charge()
        return {"charge": "late"}

    charge.outcomes = [late]
    with pytest.raises(IdempotencyPersistenceLayerError) as failed:
        charge()
    refused = failed.value.__cause__
    assert isinstance(refused, CompletionRefused)
    assert {"charge": "late"} == refused.result
    assert '{"charge":"ch-1"}' == only(locks).result


@pytest.mark.parametrize("outcome", [Declined("no"), RetryLater("busy")])
def test_a_late_owner_s_error_deletes_nothing(locks: Locks, clock: Any, outcome: Exception):
    """Powertools would delete its successor's record."""
    charge = Work(persistence_store=ours(when_outcome_unknown="take-over"))

    def late(_order: Any) -> Any:
        clock(62)
        assert DONE == charge()
        return outcome

    charge.outcomes = [late]
    with pytest.raises(type(outcome)) as failed:
        charge()
    assert "was lost" in failed.value.__notes__[0]
    assert (COMPLETED, '{"charge":"ch-1"}') == (only(locks).status, only(locks).result)


def test_an_answer_lasts_as_long_as_powertools_says(locks: Locks, clock: Any):
    """From the end of the work, whatever the lease was."""
    charge = Work(config=config(expires_after_seconds=30))
    charge.outcomes.append(lambda _order: clock(50) or DONE)
    assert DONE == charge()
    clock(28)
    assert (DONE, 1) == (charge(), charge.ran)
    clock(3)
    assert (DONE, 2) == (charge(), charge.ran)
    assert 2 == only(locks).attempt


def get_record(**options: Any) -> Any:
    """What the store tells of the order. Powertools asks where it knows no record."""
    store = ours()
    store.configure(config(**options), "f", PREFIX)
    return store.get_record(ORDER)


def test_an_answer_that_has_expired_is_none(locks: Locks, clock: Any):
    """As one that was never there. Until then it answers whoever validates the same part."""
    with pytest.raises(IdempotencyItemNotFoundError):
        get_record()
    finish(ours(), DONE, expires_after_seconds=30, payload_validation_jmespath="amount")
    assert COMPLETED == get_record(payload_validation_jmespath="amount").status
    with pytest.raises(IdempotencyValidationError):
        get_record(payload_validation_jmespath="orderId")

    clock(31)
    assert COMPLETED == only(locks).status
    with pytest.raises(IdempotencyItemNotFoundError):
        get_record()


# -- Options ---------------------------------------------------------------------------------------


def test_the_key_is_a_part_of_the_payload_under_the_wanted_hash(locks: Locks):
    """And what is not of the key may differ."""
    charge = Work(config=config(event_key_jmespath="orderId", hash_function="sha256"))
    assert DONE == charge() == charge(ORDER | {"amount": 7})
    assert key_of("charge", "1", "sha256") == only(locks).lock_token


@pytest.mark.usefixtures("locks")
def test_a_payload_that_is_validated_must_be_the_same():
    """The part that is picked."""
    options = {"event_key_jmespath": "orderId", "payload_validation_jmespath": "amount"}
    charge = Work(config=config(**options))
    assert DONE == charge() == charge(ORDER | {"note": "x"})
    with pytest.raises(IdempotencyValidationError):
        charge(ORDER | {"amount": 7})
    assert 1 == charge.ran


@pytest.mark.usefixtures("locks")
def test_a_part_is_validated_with_powertools_own_functions():
    """An event of API Gateway has its payload as text."""
    options = {"event_key_jmespath": "id", "payload_validation_jmespath": "powertools_json(body).amount"}
    charge, event = Work(config=config(**options)), {"id": "1", "body": '{"amount": 500}'}
    assert DONE == charge(event) == charge(event | {"body": '{"amount": 500, "note": "x"}'})
    with pytest.raises(IdempotencyValidationError):
        charge(event | {"body": '{"amount": 7}'})
    assert 1 == charge.ran


@pytest.mark.usefixtures("locks")
def test_a_missing_key_is_an_error_on_request():
    """Else the work is done without a record, with Powertools' warning."""
    charge = Work(config=config(event_key_jmespath="nothing", raise_on_no_idempotency_key=True))
    with pytest.raises(IdempotencyKeyError):
        charge()
    charge = Work(Declined("no"), config=config(event_key_jmespath="nothing"))
    with pytest.warns(UserWarning, match="No idempotency key"), pytest.raises(Declined):
        charge()
    with pytest.warns(UserWarning, match="No idempotency key"):
        assert DONE == charge()
    assert [] == items()


@pytest.mark.usefixtures("locks")
def test_the_local_cache_answers_without_a_call():
    """A finished record never changes."""
    charge = Work(config=config(use_local_cache=True))
    assert DONE == charge()
    (item,) = items()
    shared("dynamodb").delete_item(TableName="locks", Key={"lockToken": item["lockToken"]})
    assert (DONE, 1) == (charge(), charge.ran)
    assert [] == items()


def test_the_response_hook_is_called_on_replays(locks: Locks):
    """With the answer and Powertools' record of it."""
    seen: list[DataRecord] = []

    def hook(response: Any, record: DataRecord) -> Any:
        seen.append(record)
        return response | {"replayed": True}

    charge = Work(config=config(response_hook=hook))
    assert [DONE, DONE | {"replayed": True}] == [charge(), charge()]
    assert (key_of("charge", ORDER), COMPLETED) == (seen[0].idempotency_key, seen[0].status)
    assert seen[0].expiry_timestamp == only(locks).ttl


def test_the_response_hook_is_told_until_when_a_workflows_answer_counts(locks: Locks):
    """DynamoDB deletes its record a day later."""
    seen: list[DataRecord] = []
    charge = Work(config=config(response_hook=lambda response, record: seen.append(record) or response))
    charge()
    lock = only(locks)
    ttl = {"N": str(ttl_of(str(lock.expires_at)))}
    shared("dynamodb").put_item(TableName="locks", Item=items()[0] | {"ttl": ttl})

    charge()
    assert seen[0].expiry_timestamp == times.epoch_seconds(str(lock.expires_at))


def test_a_serializer_gives_replays_their_type(locks: Locks):
    """Powertools' own."""

    @dataclass
    class Charge:
        id: str

    serializer = DataclassSerializer(model=Charge)
    charge = Work(Charge("ch-1"), output_serializer=serializer)
    assert [Charge("ch-1"), Charge("ch-1")] == [charge(), charge()]
    assert '{"id":"ch-1"}' == only(locks).result


def test_a_call_without_a_context_has_a_lease_all_the_same(locks: Locks):
    """What was said, else the longest that Lambda allows."""
    charge = Work(config=config(lambda_context=None), persistence_store=ours(lease_seconds=20))
    charge.outcomes.append(
        lambda _order: only(locks).lease_until < times.to_text(times.after(times.now(), 21)) and DONE
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DONE == charge()
    assert only(locks).locked_by.startswith("process/")


@pytest.mark.usefixtures("locks")
def test_powertools_off_switch_switches_it_off(monkeypatch: pytest.MonkeyPatch):
    """In tests, as always."""
    monkeypatch.setenv("POWERTOOLS_IDEMPOTENCY_DISABLED", "true")
    charge = Work()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [DONE, DONE] == [charge(), charge()]
    assert (2, []) == (charge.ran, items())


# -- Durable functions ---------------------------------------------------------------------------------


class Suspended(BaseException):
    """How a durable function waits: its invocation ends, and another one goes on."""


@dataclass
class Durable:
    """The context of a durable function."""

    lambda_context: Context
    steps: int

    @property
    def state(self) -> Any:
        return SimpleNamespace(operations=[None] * self.steps)


def durable(*outcomes: Any) -> Any:
    """A durable handler, whose invocations end so."""
    left = list(outcomes)

    @idempotent(persistence_store=ours(lease_seconds=3600), key_prefix="durable")
    def handler(_event: Any, _context: Any) -> Any:
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return handler


@pytest.mark.parametrize(("outcome", "status"), [(DONE, COMPLETED), (Declined("no"), FAILED)])
def test_a_durable_function_ends_what_its_first_invocation_began(locks: Locks, outcome: Any, status: str):
    """Powertools lets a replay pass, and its end is the end of the call."""
    handler = durable(Suspended(), outcome)
    with pytest.raises(Suspended):
        handler(ORDER, Durable(Context("first"), 1))
    begun = only(locks)
    with suppress(Declined):
        handler(ORDER, Durable(Context("second"), 2))
    done = only(locks)
    assert (INPROGRESS, status) == (begun.status, done.status)
    assert (begun.call_id, "lambda/shop/first", 1) == (done.call_id, done.locked_by, done.attempt)


def test_a_durable_function_whose_result_is_no_json_waits_for_a_person(locks: Locks):
    """The lock that its first invocation took is held, so that nobody runs the work again."""
    handler = durable(Suspended(), {"a", "set"})
    with pytest.raises(Suspended):
        handler(ORDER, Durable(Context("first"), 1))
    with suppress(Exception):
        handler(ORDER, Durable(Context("second"), 2))
    assert (FAILED, "lambda/shop/first") == (only(locks).status, only(locks).locked_by)
    assert only(locks).open_status is not None


def test_a_durable_function_ends_nothing_of_another_function(locks: Locks):
    """Its result is not recorded, and Powertools says so."""
    handler = durable(Suspended(), DONE)
    with pytest.raises(Suspended):
        handler(ORDER, Durable(Context("first", "another"), 1))
    with pytest.raises(IdempotencyPersistenceLayerError):
        handler(ORDER, Durable(Context("second"), 2))
    assert INPROGRESS == only(locks).status
