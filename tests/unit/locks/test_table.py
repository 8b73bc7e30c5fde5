"""The table of locks: how it is read, and that every write to it is fenced."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from steponce.aws import times
from steponce.errors import Unavailable
from steponce.failure import Failure
from steponce.locks.record import LETTERS, Intervention, Lock
from steponce.locks.table import KEPT_INTERVENTIONS, PLACE, Locks
from steponce.triggers.written_letters import WrittenLetters
from steponce.workflow import COMPLETED, FAILED, INPROGRESS, RELEASED
from tests.fakes.tables import create_table
from tests.unit.shared_clients import shared

NOW = "2026-01-31T12:00:00.000Z"
AFTER = "2026-01-31T12:00:00.001Z"
EXPIRES = "2026-05-01T12:00:00.000Z"
KEY = {"lockToken": {"S": "shop/order-1"}}

OPEN = KEY | {
    "status": {"S": INPROGRESS},
    "openStatus": {"S": "INPROGRESS#3"},
    "lockedBy": {"S": "arn:execution:order-1"},
    "callId": {"S": "me"},
    "executionName": {"S": "order-1"},
    "requestId": {"S": "order-1"},
    "attempt": {"N": "2"},
    "created": {"S": NOW},
    "expectedCompletion": {"S": AFTER},
    "payloadHash": {"S": "ab12"},
    "expiresAt": {"S": EXPIRES},
}
MINE = Lock.from_item(OPEN)
FAILURE = Failure("CardDeclined", "no")
LATER = times.from_text(NOW) + timedelta(hours=1)
LATER_TEXT = times.to_text(LATER)
KEPT_UNTIL = times.epoch_seconds(times.to_text(times.from_text(EXPIRES) + timedelta(days=1, hours=1)))

Write = Callable[[Locks, Lock], bool]


class Table:
    """A real table in moto."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dynamodb = shared("dynamodb")
        create_table(self.dynamodb, "LocksTable", name)
        self.locks = Locks(self.dynamodb, name)

    def put(self, **attributes: Any) -> None:
        """Write OPEN with some attributes changed."""
        self.dynamodb.put_item(TableName=self.name, Item=OPEN | attributes)

    def lock(self) -> Lock:
        """The record as it is, read."""
        return Lock.from_item(self.item())

    def item(self) -> dict[str, Any]:
        """The record as it is."""
        return self.dynamodb.get_item(TableName=self.name, Key=KEY).get("Item", {})


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one o'clock: the lock is an hour old."""
    monkeypatch.setattr(times, "now", lambda: LATER)


@pytest.fixture(scope="module")
def aws() -> Iterator[Table]:
    """One table for the module."""
    with mock_aws():
        yield Table("locks")


@pytest.fixture
def table(aws: Table) -> Table:
    """A table with an open lock."""
    aws.put()
    return aws


def test_what_is_written_can_be_read(table: Table) -> None:
    """By its key."""
    assert table.locks.get(MINE.lock_token) == MINE


def test_where_there_is_no_record_there_is_none(table: Table) -> None:
    """Not an empty one."""
    assert table.locks.get("shop/order-2") is None


def test_a_record_is_read_consistently(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older copy might name an owner that has lost the lock."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(table.dynamodb, "get_item", lambda **options: asked.update(options) or {})
    table.locks.get(MINE.lock_token)
    assert True is asked["ConsistentRead"]


WRITES: dict[str, Write] = {
    "completed": lambda locks, lock: locks.complete(lock, '"late"', by="ann", why="asked the bank"),
    "failed": lambda locks, lock: locks.fail(lock, FAILURE, by="ann", why="asked the bank"),
    "released": lambda locks, lock: locks.release(lock, FAILURE, by="ann", why="asked the bank"),
    "held": lambda locks, lock: locks.hold(lock, FAILURE, by="ann", why="asked the bank"),
}
WITHOUT_INTERVENTION: dict[str, Write] = {
    "fenced": lambda locks, lock: locks.change_fence(lock, LATER_TEXT),
    "erased": lambda locks, lock: locks.erase(lock),
}
EVERY_WRITE = pytest.mark.parametrize(
    "write", [*WRITES.values(), *WITHOUT_INTERVENTION.values()], ids=[*WRITES, *WITHOUT_INTERVENTION]
)


def test_completing_writes_the_result_and_closes_the_record(table: Table) -> None:
    """Off the open index, with a ttl from now on."""
    assert table.locks.complete(MINE, '{"chargeId":"ch_1"}', by="ann", why="asked the bank") is True
    item = table.item()
    assert ({"S": COMPLETED}, {"S": '{"chargeId":"ch_1"}'}) == (item["status"], item["result"])
    assert (KEPT_UNTIL, "openStatus" in item) == (Lock.from_item(item).ttl, False)
    assert {"S": LATER_TEXT} == item["actualCompletion"]


def test_a_person_may_complete_what_had_failed(table: Table) -> None:
    """The failure is gone from the record then; the intervention tells of it."""
    table.put(status={"S": FAILED}, failure={"S": FAILURE.to_json()}, openStatus={"S": "FAILED#3"})
    assert table.locks.complete(table.lock(), "1", by="ann", why="asked the bank") is True
    assert (COMPLETED, None, None) == (table.lock().status, table.lock().failure, table.lock().open_status)


@pytest.mark.parametrize(("what", "status"), [("failed", FAILED), ("released", RELEASED)])
def test_a_final_failure_and_a_release_close_the_record(table: Table, what: str, status: str) -> None:
    """They say how it ended, are off the open index, and expire."""
    assert WRITES[what](table.locks, MINE) is True
    lock = table.lock()
    assert (status, FAILURE, None, KEPT_UNTIL) == (lock.status, lock.failure, lock.open_status, lock.ttl)


def test_any_other_failure_stays_open(table: Table) -> None:
    """On its shard of the open index, without a ttl: DynamoDB must not delete what is not settled."""
    table.put(ttl={"N": "1"})
    assert WRITES["held"](table.locks, MINE) is True
    lock = table.lock()
    assert (FAILED, FAILURE, "FAILED#3", None) == (lock.status, lock.failure, lock.open_status, lock.ttl)


def test_what_never_expires_is_kept_for_ever(table: Table) -> None:
    """Also when somebody else settles it."""
    table.put(expiresAt={"S": times.NEVER})
    WRITES["completed"](table.locks, replace(MINE, expires_at=times.NEVER))
    assert times.NEVER == table.lock().expires_at


def test_a_lock_that_was_settled_late_answers_as_long_as_any_other(table: Table) -> None:
    """Its time counts from now: it had no answer before."""
    WRITES["completed"](table.locks, MINE)
    assert (
        times.to_text(times.from_text(EXPIRES) + (LATER - times.from_text(NOW)))
    ) == table.lock().expires_at


@pytest.mark.parametrize(("what", "write"), WRITES.items(), ids=WRITES)
def test_every_write_says_who_did_it_and_why(table: Table, what: str, write: Write) -> None:
    """In the record, after what was there."""
    first = Intervention(NOW, "find_overdue", "held", "its outcome is unknown")
    write(table.locks, replace(MINE, interventions=(first,)))
    assert (first, Intervention(LATER_TEXT, "ann", what, "asked the bank")) == table.lock().interventions


def test_a_record_keeps_its_newest_interventions(table: Table) -> None:
    """It must not grow for ever."""
    many = tuple(Intervention(NOW, "ann", "held", f"{number}") for number in range(KEPT_INTERVENTIONS))
    WRITES["held"](table.locks, replace(MINE, interventions=many))
    kept = table.lock().interventions
    assert (KEPT_INTERVENTIONS, "1", "asked the bank") == (len(kept), kept[0].why, kept[-1].why)


def test_erasing_leaves_nothing(table: Table) -> None:
    """Not even a tombstone."""
    assert table.locks.erase(MINE) is True
    assert {} == table.item()


@pytest.mark.parametrize(
    "change",
    [
        {"callId": {"S": "another"}},
        {"lockedBy": {"S": "arn:execution:order-1--2"}},
        {"attempt": {"N": "3"}},
        {"status": {"S": COMPLETED}},
        {"status": {"S": FAILED}},
        {"status": {"S": RELEASED}},
    ],
    ids=["another-call", "another-execution", "redriven", "completed", "failed", "released"],
)
@EVERY_WRITE
def test_a_late_writer_changes_nothing(table: Table, write: Write, change: dict[str, Any]) -> None:
    """Once the record says anything else of its owner, no write on its behalf takes effect."""
    table.put(**change)
    assert write(table.locks, MINE) is False
    assert OPEN | change == table.item()


class SentTwice:
    """A client whose writes get no answer at first. boto3 sends them again, and `between` happens before."""

    def __init__(self, dynamodb: Any, between: Callable[[], object] = lambda: None) -> None:
        self._dynamodb, self._between = dynamodb, between

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._dynamodb, name)
        return method if name == "get_item" else lambda **arguments: self._twice(method, arguments)

    def _twice(self, method: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        method(**arguments)
        self._between()
        try:
            return method(**arguments)
        except ClientError as error:
            error.response["ResponseMetadata"]["RetryAttempts"] = 1
            raise


@EVERY_WRITE
def test_a_write_that_boto3_has_sent_twice_took_effect(table: Table, write: Write) -> None:
    """The second send meets what the first one wrote, and is refused. It was no other writer."""
    assert write(Locks(SentTwice(table.dynamodb), table.name), MINE) is True


@EVERY_WRITE
def test_a_write_that_was_followed_by_another_is_not_taken_for_its_own(table: Table, write: Write) -> None:
    """Whoever reads the record sees which came last."""

    def change() -> None:
        table.put(callId={"S": "another"})

    assert write(Locks(SentTwice(table.dynamodb, change), table.name), MINE) is False


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_that_somebody_else_has_made_as_well_is_not_this_one(table: Table, write: Write) -> None:
    """With the same status, and another reason."""

    def change() -> None:
        others = [asdict(Intervention(LATER_TEXT, "bob", "settled", "asked nobody"))]
        table.put(status=table.item()["status"], interventions={"S": json.dumps(others)})

    assert write(Locks(SentTwice(table.dynamodb, change), table.name), MINE) is False


def test_a_record_of_powertools_own_that_boto3_has_deleted_twice_is_erased(table: Table) -> None:
    """Its fence is another one."""
    theirs = KEY | {"status": {"S": COMPLETED}, "ttl": {"N": "1"}, "result": {"S": "null"}}
    table.dynamodb.put_item(TableName=table.name, Item=theirs)
    assert Locks(SentTwice(table.dynamodb), table.name).erase(table.lock()) is True


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_to_a_record_that_was_erased_is_not_there(table: Table, write: Write) -> None:
    """Between its two sends, by a person."""

    def erase() -> None:
        table.dynamodb.delete_item(TableName=table.name, Key=KEY)

    assert write(Locks(SentTwice(table.dynamodb, erase), table.name), MINE) is False


@EVERY_WRITE
def test_a_record_that_is_gone_is_not_made_anew(table: Table, write: Write) -> None:
    """An update without its condition would write half a record."""
    table.dynamodb.delete_item(TableName="locks", Key=KEY)
    assert write(table.locks, MINE) is False
    assert {} == table.item()


def test_a_record_that_is_gone_has_changed_since_it_was_read(table: Table) -> None:
    """Another operator may have erased it. Whoever looks again goes on without it."""
    table.dynamodb.delete_item(TableName="locks", Key=KEY)
    assert None is table.locks.reread(MINE)
    assert not table.locks.is_unchanged(OPEN)


def test_a_lock_that_is_on_no_shard_is_held_on_the_first(table: Table) -> None:
    """Another program has taken it off the open index. On it, the monitor counts the lock for a person."""
    table.dynamodb.put_item(TableName="locks", Item={k: v for k, v in OPEN.items() if k != "openStatus"})
    assert WRITES["held"](table.locks, replace(MINE, open_status=None)) is True
    assert "FAILED#0" == table.lock().open_status


CANCELLED = replace(MINE, status=FAILED, failure=FAILURE, locked_by="arn:execution:order-2", ttl=KEPT_UNTIL)


def test_a_request_that_took_a_lock_without_a_record_meanwhile_is_not_cancelled(table: Table) -> None:
    """There was no record when the operator's command looked. Its work runs: the lock must stay its own."""
    assert table.locks.cancel(None, CANCELLED, by="ann", why="by mistake") is False
    assert OPEN == table.item()


def test_a_cancellation_that_boto3_has_sent_twice_took_effect(table: Table) -> None:
    """With a free record, and without one."""
    locks = Locks(SentTwice(table.dynamodb), table.name)
    table.put(status={"S": RELEASED})
    assert locks.cancel(table.lock(), CANCELLED, by="ann", why="asked the bank") is True
    table.dynamodb.delete_item(TableName="locks", Key=KEY)
    assert locks.cancel(None, CANCELLED, by="ann", why="asked the bank") is True


def test_a_cancelled_request_leaves_nothing_of_the_free_record(table: Table) -> None:
    """It is no open lock, and has neither a result nor a time-out of work that did not run."""
    left = {"result": {"S": "1"}, "workTimeoutSeconds": {"N": "60"}, "openStatus": {"S": "RELEASED#3"}}
    table.put(status={"S": RELEASED}, **left)
    assert table.locks.cancel(table.lock(), CANCELLED, by="ann", why="by mistake") is True
    assert set() == set(left) & set(table.item())


POWERTOOLS_OWN = KEY | {"status": {"S": COMPLETED}, "ttl": {"N": "1790000000"}, "result": {"S": "1"}}


@pytest.mark.parametrize(
    "change",
    [{"callId": {"S": "me"}}, {"status": {"S": INPROGRESS}}, {"ttl": {"N": "1790000001"}}],
    ids=["taken by an owner of ours", "in progress again", "completed anew"],
)
def test_each_part_of_the_fence_of_a_record_of_powertools_own_keeps_it(
    table: Table, change: dict[str, Any]
) -> None:
    """It has no owner to compare. One that has changed since is of another run, which needs it."""
    read = Lock.from_item(POWERTOOLS_OWN)
    table.dynamodb.put_item(TableName="locks", Item=POWERTOOLS_OWN | change)
    assert table.locks.erase(read) is False
    table.dynamodb.put_item(TableName="locks", Item=POWERTOOLS_OWN)
    assert table.locks.erase(read) is True
    assert {} == table.item()


def test_of_two_writers_one_wins(table: Table) -> None:
    """The second sees that it is not in progress any more."""
    assert [True, False] == [WRITES["failed"](table.locks, MINE), WRITES["completed"](table.locks, MINE)]
    assert FAILED == table.lock().status


# -- The open index ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd(aws: Table) -> Table:
    """A table that is only read: shard 7 has 250 open locks, ten minutes apart, and one that failed."""
    table = Table("crowd")
    table.put()
    items = [_one_of_the_crowd(number) for number in range(251)]
    for first in range(0, len(items), 25):
        requests = [{"PutRequest": {"Item": item}} for item in items[first : first + 25]]
        assert not aws.dynamodb.batch_write_item(RequestItems={"crowd": requests})["UnprocessedItems"]
    return table


def _one_of_the_crowd(number: int) -> dict[str, Any]:
    due = times.to_text(LATER + timedelta(minutes=10 * number))
    status = FAILED if number == 250 else INPROGRESS
    return OPEN | {
        "lockToken": {"S": f"crowd/{number}"},
        "status": {"S": status},
        "openStatus": {"S": f"{status}#7"},
        "created": {"S": due},
        "expectedCompletion": {"S": due},
    }


def test_the_open_locks_of_a_shard_come_in_the_order_of_their_time(crowd: Table) -> None:
    """All pages, the longest overdue first, and nothing of another shard or status."""
    assert [f"crowd/{number}" for number in range(250)] == [
        lock.lock_token for lock in crowd.locks.open(INPROGRESS, 7)
    ]
    assert ["crowd/250"] == [lock.lock_token for lock in crowd.locks.open(FAILED, 7)]
    assert ["shop/order-1"] == [lock.lock_token for lock in crowd.locks.open(INPROGRESS, 3)]


def test_open_locks_can_be_asked_for_by_time(crowd: Table) -> None:
    """Both ends are part of it."""
    since, until = (times.to_text(LATER + timedelta(minutes=minutes)) for minutes in (20, 40))
    found = crowd.locks.open(INPROGRESS, 7, expected_from=since, expected_until=until)
    assert ["crowd/2", "crowd/3", "crowd/4"] == [lock.lock_token for lock in found]


def test_the_index_holds_what_the_owner_is_asked_by(crowd: Table) -> None:
    """Status, owner, call, attempt and times, so that a list of locks needs no further read."""
    (lock,) = crowd.locks.open(INPROGRESS, 3)
    read = ("status", "locked_by", "call_id", "request_id", "attempt", "created", "expected_completion")
    assert [getattr(MINE, name) for name in read] == [getattr(lock, name) for name in read]


def test_open_locks_are_counted(crowd: Table) -> None:
    """Those of a status, and of them those of an age."""
    before = times.to_text(LATER + timedelta(minutes=30))
    assert (250, 1, 3, 0) == (
        crowd.locks.count_open(INPROGRESS, 7),
        crowd.locks.count_open(FAILED, 7),
        crowd.locks.count_open(INPROGRESS, 7, created_before=before),
        crowd.locks.count_open(FAILED, 3),
    )


def test_a_page_of_open_locks_is_small(crowd: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever goes through them keeps one page in memory, however many there are."""
    pages = []
    read = crowd.locks._open_pages
    monkeypatch.setattr(
        crowd.locks, "_open_pages", lambda *a, **o: (pages.append(p) or p for p in read(*a, **o))
    )
    next(crowd.locks.open(INPROGRESS, 7))
    assert [100] == [page["Count"] for page in pages]


def test_everything_under_a_prefix_is_found(crowd: Table) -> None:
    """Whatever its status, and nothing else."""
    assert 251 == len(list(crowd.locks.under("crowd/")))
    assert ["shop/order-1"] == [lock.lock_token for lock in crowd.locks.under("shop/")]


@pytest.mark.parametrize(("prefix", "found"), [("", 252), ("s", 1), ("steponce:", 0)])
def test_what_is_no_lock_record_is_not_found(crowd: Table, prefix: str, found: int) -> None:
    """The mark of a dead letter has no attribute of a lock."""
    WrittenLetters(crowd.dynamodb, crowd.name).add("arn/0")
    assert found == len(list(crowd.locks.under(prefix)))


def test_a_key_of_an_item_that_is_no_lock_record_has_none(crowd: Table) -> None:
    """It is not a record that another program has damaged."""
    WrittenLetters(crowd.dynamodb, crowd.name).add("arn/0")
    crowd.dynamodb.put_item(TableName=crowd.name, Item={"lockToken": {"S": PLACE}, "until": {"S": "2026"}})
    keys = [item["lockToken"]["S"] for item in crowd.dynamodb.scan(TableName=crowd.name)["Items"]]
    others = [key for key in keys if key == PLACE or key.startswith(LETTERS)]

    assert [None, None] == [crowd.locks.get(key) for key in others]


class Refusing:
    """DynamoDB that says no."""

    def __init__(self, code: str) -> None:
        self.error = ClientError({"Error": {"Code": code, "Message": "no"}}, "UpdateItem")

    def update_item(self, **_: Any) -> None:
        raise self.error

    def get_item(self, **_: Any) -> None:
        raise self.error


def test_a_throttled_table_is_unavailable() -> None:
    """Not a lost lock."""
    locks = Locks(Refusing("ThrottlingException"), "locks")
    with pytest.raises(Unavailable):
        locks.complete(MINE, "null", by="ann", why="asked")
    with pytest.raises(Unavailable):
        locks.get(MINE.lock_token)


def test_a_missing_permission_is_not_taken_for_a_lost_lock() -> None:
    """It is raised as it is."""
    locks = Locks(Refusing("AccessDeniedException"), "locks")
    with pytest.raises(ClientError, match="AccessDenied"):
        locks.fail(MINE, FAILURE, by="ann", why="asked")
