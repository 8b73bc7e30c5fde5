"""The list of requests: what is in it, and how many calls it makes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from moto import mock_aws

from steponce.aws import times
from steponce.errors import RecordUnreadable, Unavailable
from steponce.executions import Execution
from steponce.failure import Failure
from steponce.local.moto_patches.times import aws_time
from steponce.operator import listing
from steponce.operator.erasure import find_kept
from steponce.operator.listing import Listing
from steponce.operator.requests import Request, Wanted, id_of
from steponce.request.names import name_of
from tests.unit.locks.large import bucket, kept
from tests.unit.one_machine import ARN, PAYLOAD, arn, envelope
from tests.unit.two_machines import REFUNDS, TwoMachines, at_refunds

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
TTL = 4_000_000_000
DONE: dict[str, Any] = {"status": "COMPLETED", "openStatus": None, "result": '{"a": 1}', "ttl": TTL}
FREE: dict[str, Any] = {"status": "RELEASED", "openStatus": None, "ttl": TTL}


class Counted(TwoMachines):
    """Two machines, whose calls of DynamoDB are counted as well."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.left_out: list[RecordUnreadable] = []

    def count(self, model: Any, **_: Any) -> None:
        self.calls[model.name] += 1

    def listing(self, wanted: Wanted | None = None, machine: str | None = None) -> Iterator[Request]:
        """The list for both machines, or for one."""
        machines = [self.client_of(name).machine for name in ([machine] if machine else ["m", "refunds"])]
        return iter(
            Listing(
                machines,
                wanted or Wanted(),
                only=machine is not None,
                skip=lambda error, _: self.left_out.append(error),
            )
        )

    def ids(self, machine: str | None = None, **wanted: Any) -> list[str]:
        """The ids in the list."""
        return sorted(one.request_id for one in self.listing(Wanted(**wanted), machine))

    def began(self, name: str, hours_ago: float, status: str = "RUNNING", **given: Any) -> None:
        """An execution that began so long ago."""
        own = envelope(given.pop("key", "m/unknown")) | {"requestId": name.partition("--")[0]} | given
        self.sfn.put(name, input=json.dumps(own), startDate=NOW - timedelta(hours=hours_ago))
        if status != "RUNNING":
            self.sfn.close(name, status, "Boom", "secret", NOW)


def hours_ago(hours: float) -> str:
    """The time as text."""
    return times.to_text(NOW - timedelta(hours=hours))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    """At noon."""
    monkeypatch.setattr(times, "now", lambda: NOW)
    with mock_aws():
        found = Counted()
        events = found.dynamodb.meta.events
        events.register("before-call.dynamodb", found.count)
        yield found
        events.unregister("before-call.dynamodb", found.count)


def test_a_request_that_began_at_a_whole_second_began_within_that_second(world: Counted):
    """Step Functions writes such a time without `.000`, and that text is the latest of its second."""
    world.put(created=aws_time(NOW - timedelta(hours=1)), **DONE)
    begun = [one.created for one in world.listing(Wanted(until=hours_ago(1)))]
    assert [hours_ago(1)] == begun


# -- records ---------------------------------------------------------------------------------------
def test_every_record_is_a_request(world: Counted):
    """Of either machine and of plain Python; without payloads, causes and results."""
    world.put(**DONE)
    world.held_by_refunds()
    world.put("jobs/nightly", "nightly", lockedBy="process/host/7", leaseUntil="2999-01-01T00:00:00.000Z")
    world.put(
        "m/free",
        "free",
        status="RELEASED",
        openStatus=None,
        ttl=TTL,
        failure='{"Error": "RetryLater", "Cause": "x"}',
    )

    world.calls.clear()
    found = {one.lock_token: one for one in world.listing()}

    assert {
        "m/order-1": ("order-1", "COMPLETED", ARN, arn("order-1"), None, False, "record"),
        "refunds/order-1": ("order-1", "FAILED", REFUNDS, at_refunds("order-1"), "Boom", True, None),
        "jobs/nightly": ("nightly", "RUNNING", None, None, None, False, None),
        "m/free": ("free", "RELEASED", ARN, arn("free"), "RetryLater", False, None),
    } == {
        token: (
            one.request_id,
            one.status,
            one.machine,
            one.execution_arn,
            one.error,
            one.waits_for_person,
            one.result_in,
        )
        for token, one in found.items()
    }
    assert "process/host/7" == found["jobs/nightly"].locked_by
    assert {"Scan": 1} == world.calls
    assert {} == world.sfn.calls


def test_the_list_can_be_cut_by_status_time_machine_and_prefix(world: Counted):
    """And by all of them at once."""
    world.put("acme/1", "one", **DONE, created=hours_ago(5))
    world.put("acme/2", "two", **DONE | {"status": "FAILED"}, created=hours_ago(3))
    world.put("other/3", "three", **DONE, created=hours_ago(1), lockedBy=at_refunds("three"))
    world.put("acme/4", "four", **DONE, created=hours_ago(1), lockedBy="process/host/7")
    cuts: dict[str, dict[str, Any]] = {
        "one two": {"machine": "m"},
        "three": {"machine": "refunds"},
        "four one two": {"under": "acme/"},
        "two": {"status": "FAILED"},
        "four one three": {"status": "COMPLETED"},
        "four three two": {"since": hours_ago(3)},
        "one two ": {"until": hours_ago(2)},
        "one": {"until": hours_ago(2), "status": "COMPLETED", "under": "acme/", "machine": "m"},
    }
    assert {tuple(ids.split()): cut for ids, cut in cuts.items()} == {
        tuple(world.ids(**cut)): cut for cut in cuts.values()
    }


def test_running_requests_come_from_the_open_index(world: Counted):
    """The earliest expected first, a guard's as well, and nobody scans."""
    world.put(**DONE)
    world.put("m/late", "late", expectedCompletion=hours_ago(2))
    world.put("jobs/1", "job", expectedCompletion=hours_ago(3), lockedBy="process/host/7")
    world.put("acme/2", "two", openStatus="INPROGRESS#1", expectedCompletion=hours_ago(1))
    world.calls.clear()
    assert ["job", "late", "two"] == [one.request_id for one in world.listing(Wanted("RUNNING"))]
    assert 0 == world.calls["Scan"]
    assert ["two"] == world.ids(status="RUNNING", under="acme/")


def test_powertools_own_records_and_expired_ones_are_listed(world: Counted):
    """Nobody knows when the first began, so no time leaves it out. The monitor's item is no record."""
    record = {"status": {"S": "COMPLETED"}, "data": {"S": "1"}, "result": {"S": "1"}, "ttl": {"N": str(TTL)}}
    world.dynamodb.put_item(TableName="locks", Item={"lockToken": {"S": "fn#1"}} | record)
    world.dynamodb.put_item(TableName="locks", Item={"lockToken": {"S": " "}, ARN: {"S": hours_ago(1)}})
    world.put("m/old", "old", **DONE, expiresAt=hours_ago(1), created=hours_ago(2))
    found = {one.request_id: one for one in world.listing(Wanted(since=hours_ago(2)))}
    assert {"fn#1": (None, False), "old": (ARN, True)} == {
        name: (one.machine, one.expired) for name, one in found.items()
    }
    assert [] == world.left_out


def test_a_damaged_record_is_named_and_the_list_goes_on(world: Counted):
    """With what is damaged. One under another prefix is nobody's here."""
    world.put("acme/1", "1", **DONE)
    for damaged in ("acme/2", "other/1"):
        world.damage(damaged)
    assert ["1"] == world.ids(under="acme/")
    assert ["1"] == world.ids(under="acme/", since="2020-01-01T00:00:00.000Z")
    assert [("acme/2", "created")] * 2 == [(error.key, error.attribute) for error in world.left_out]


def test_a_list_under_a_prefix_is_what_erase_would_delete(world: Counted):
    """Both read the table in one way; where a large result is, is said."""
    world.machine.results = results = bucket()
    reference = kept(results, '"x"', lock_token="acme/1")
    world.put("acme/1", "one", **DONE | {"result": reference.to_json()})
    world.put("acme/2", "two", **DONE)
    world.put("acme2/3", "three", **DONE)
    world.outputs["ResultBucket"] = reference.bucket
    listed = {one.lock_token: one.result_in for one in world.listing(Wanted(under="acme/"))}
    assert {"acme/1": "bucket", "acme/2": "record"} == listed
    assert list(listed) == [lock.lock_token for lock in find_kept(world.machine, world.steps, "acme/").locks]


# -- how many calls --------------------------------------------------------------------------------
def test_a_list_reads_no_further_than_it_is_asked(world: Counted):
    """A table of many pages is read page by page, whoever stops."""
    for number in range(6):
        world.put(f"m/{number}", str(number), **DONE | {"result": json.dumps("x" * 390_000)})
    world.calls.clear()
    found = world.listing()
    next(found)
    assert {"Scan": 1} == world.calls
    assert 5 == len(list(found))
    assert 3 <= world.calls["Scan"] <= 4  # 2.3 MB, and 1 MB a page


def test_an_execution_with_a_listed_record_costs_no_call(world: Counted):
    """However many they are, the list of executions is one page of each machine."""
    for number in range(12):
        world.put(f"acme/{number}", str(number), **DONE, created=hours_ago(1))
        world.began(str(number), 1, "SUCCEEDED", key=f"acme/{number}")
    world.calls.clear()
    assert 12 == len(world.ids(since=hours_ago(2)))
    assert {"Scan": 1} == world.calls
    assert {"list_executions": 2} == world.sfn.calls
    assert [] == world.ids(since=hours_ago(2), under="other/") + world.ids(
        since=hours_ago(2), status="FAILED"
    )
    assert 0 == world.sfn.calls["describe_execution"]


def test_beyond_what_is_remembered_an_execution_is_described(world: Counted, monkeypatch: pytest.MonkeyPatch):
    """More calls, and the same requests; those in the list already may come twice."""
    monkeypatch.setattr(listing, "REMEMBERED", 2)
    for number in range(4):
        world.put(f"acme/{number}", str(number), **DONE, created=hours_ago(1))
        world.began(str(number), 1, "SUCCEEDED", key=f"acme/{number}")
    found = world.ids(since=hours_ago(2))
    assert ({"0", "1", "2", "3"}, 4) == (set(found), world.sfn.calls["describe_execution"])


def test_what_an_execution_by_hand_has_in_place_of_an_id_is_not_listed():
    """It may be a whole payload."""
    execution = Execution("FAILED", 0, None, {"requestId": {"card": "4111"}}, Failure(None, None))
    assert "order-1" == id_of(f"{ARN}:order-1", execution)


# -- executions without a record -------------------------------------------------------------------
def test_a_request_without_a_record_is_found_by_its_execution(world: Counted):
    """It was refused, has not got its lock yet, or its record has expired; with its id, and not its name."""
    world.began("refused", 1, "FAILED", key="acme/1", requestId="refused/1")
    world.began(at_refunds("forgotten"), 2, "SUCCEEDED", key="acme/2")
    world.began("waits", 3, key="acme/3")
    world.began("by-hand", 3, callId=None, requestId=None, lockToken="acme/4")

    found = {one.request_id: one for one in world.listing(Wanted(since=hours_ago(4)))}

    assert {
        "refused/1": ("FAILED", "acme/1", ARN, "Boom"),
        "at-refunds": ("COMPLETED", "acme/2", REFUNDS, "Boom"),
        "waits": ("RUNNING", "acme/3", ARN, None),
        "by-hand": ("RUNNING", "acme/4", ARN, None),
    } == {
        name if not name.startswith("arn:") else "at-refunds": (
            one.status,
            one.lock_token,
            one.machine,
            one.error,
        )
        for name, one in found.items()
    }
    assert {None} == {one.locked_by for one in found.values()}
    assert hours_ago(1) == found["refused/1"].created


def test_a_lock_token_that_cannot_be_one_is_not_looked_for(world: Counted):
    """DynamoDB refuses such a key, which would end the list. The execution's machine has refused it, too."""
    for number, token in enumerate(["", " ", "x" * 2_049, "\ud800", 7, None]):
        world.began(str(number), 1, "FAILED", key=token, callId=None, requestId=None)
    world.calls.clear()

    found = [(one.request_id, one.lock_token) for one in world.listing(Wanted(since=hours_ago(2)))]

    assert {(str(number), None) for number in range(6)} == set(found)
    assert 0 == world.calls["GetItem"]


@pytest.mark.parametrize("value", ["[" * 9_999 + "]" * 9_999, "1" * 9_999], ids=["deep", "long"])
def test_an_input_that_cannot_be_read_does_not_end_the_list(world: Counted, value: str):
    """Somebody has started the execution by hand, and its machine has refused it."""
    world.began("odd", 1, "FAILED")
    world.sfn.executions[arn("odd")]["input"] = f'{{"payload": {value}}}'

    assert ["odd"] == world.ids(since=hours_ago(2))


def test_an_execution_by_hand_has_the_lock_token_that_its_machine_makes(world: Counted):
    """A name that no client gives to an execution is the id of its request, and is not in its lock token."""
    for name in ("order.1", "order-1"):
        world.sfn.put(name, input=json.dumps({"payload": PAYLOAD}), startDate=NOW - timedelta(hours=1))
    found = {one.request_id: one.lock_token for one in world.listing(Wanted(status="RUNNING"))}
    assert {"order.1": f"m/{name_of('order.1')}", "order-1": "m/order-1"} == found


@pytest.mark.parametrize("record", [None, DONE, FREE], ids=["no record", "answered", "released"])
def test_an_execution_by_hand_and_the_client_s_are_one_request(world: Counted, record: dict[str, Any] | None):
    """The client writes the name of the first otherwise, and takes its lock token."""
    name, key = name_of("order.1"), f"m/{name_of('order.1')}"
    world.sfn.put("order.1", input=json.dumps({"payload": PAYLOAD}), startDate=NOW - timedelta(hours=3))
    world.sfn.close("order.1", "FAILED", "Boom", "secret", NOW - timedelta(hours=2.5))
    if record:
        world.put(key, "order.1", created=hours_ago(3), **record)
    world.began(name, 2, "FAILED", key=key, requestId="order.1")
    (found,) = world.listing(Wanted(since=hours_ago(4)))
    assert ("order.1", "COMPLETED" if record is DONE else "FAILED") == (found.request_id, found.status)


@pytest.mark.parametrize("record", [None, DONE, FREE], ids=["no record", "answered", "released"])
def test_an_execution_by_hand_with_a_key_of_its_own_is_another_request(
    world: Counted, record: dict[str, Any] | None
):
    """One id, and two lock tokens: neither answers for the other."""
    given = {"payload": PAYLOAD, "lockToken": "acme/1"}
    world.sfn.put("order.1", input=json.dumps(given), startDate=NOW - timedelta(hours=2))
    if record:
        world.put("acme/1", "order.1", created=hours_ago(2), **record)
    world.began(name_of("order.1"), 3, key=f"m/{name_of('order.1')}", requestId="order.1")
    found = {one.lock_token: one.request_id for one in world.listing(Wanted(since=hours_ago(4)))}
    assert {"acme/1": "order.1", f"m/{name_of('order.1')}": "order.1"} == found


@pytest.mark.parametrize("name", [" ", "x" * 3_000])
def test_a_record_with_no_execution_s_name_is_listed(world: Counted, name: str):
    """Nothing of the workflow's writes such a record, which has a place in the list all the same."""
    world.put(executionName=name, created=hours_ago(1), **DONE)
    assert ["order-1"] == world.ids(since=hours_ago(2))


def test_executions_are_asked_for_only_where_they_have_an_end(world: Counted):
    """By a time, or as those that run."""
    world.began("waits", 3, key="acme/3")
    world.began("ended", 1, "FAILED", key="acme/4")
    assert ([], ["waits"]) == (world.ids(), world.ids(status="RUNNING"))
    assert ["ended"] == world.ids(since=hours_ago(2))
    assert ["waits"] == world.ids(since=hours_ago(4), until=hours_ago(2))
    assert ["ended"] == world.ids(since=hours_ago(4), under="acme/4")
    assert ["ended"] == world.ids(since=hours_ago(4), status="FAILED")
    assert [] == world.ids(since=hours_ago(4), status="RELEASED")
    assert [] == world.ids(since=hours_ago(4), machine="refunds")


def test_a_list_of_executions_ends_at_the_first_that_is_too_old(
    world: Counted, monkeypatch: pytest.MonkeyPatch
):
    """They come the newest first; the older ones are neither described nor listed."""
    monkeypatch.setattr(listing, "_PAGE", 4)
    for number in range(12):
        world.began(f"n-{number}", number, "FAILED", key=f"acme/{number}")
    assert 3 == len(world.ids(since=hours_ago(2)))
    assert {"list_executions": 2, "describe_execution": 3} == world.sfn.calls


def test_of_a_request_s_attempts_the_newest_counts(world: Counted):
    """None of them has a record; it is one request."""
    world.began("order-1", 3, "FAILED", key="acme/1")
    world.began("order-1--2", 2, "FAILED", key="acme/1")
    (found,) = world.listing(Wanted(since=hours_ago(4)))
    assert ("order-1", arn("order-1--2")) == (found.request_id, found.execution_arn)


STATUSES = ["RUNNING", "COMPLETED", "FAILED", "RELEASED"]


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("FAILED", "RUNNING", "RUNNING"),
        ("FAILED", "SUCCEEDED", "COMPLETED"),
        ("SUCCEEDED", "FAILED", "FAILED"),
        ("FAILED", "ABORTED", "FAILED"),
        ("FAILED", "TIMED_OUT", "FAILED"),
        ("ABORTED", "FAILED", "FAILED"),
    ],
)
def test_a_request_is_in_the_list_of_one_status(world: Counted, first: str, second: str, status: str):
    """Its newest attempt decides, as in the list of all. The older one that the filter finds does not."""
    world.began("order-1", 3, first, key="acme/1")
    world.began("order-1--2", 2, second, key="acme/1")
    listed = {
        wanted: [one.execution_arn for one in world.listing(Wanted(wanted, since=hours_ago(4)))]
        for wanted in STATUSES
    }
    assert {wanted: [arn("order-1--2")] if wanted == status else [] for wanted in STATUSES} == listed


@pytest.mark.parametrize("span", [{"since": hours_ago(3)}, {"until": hours_ago(2), "since": hours_ago(4)}])
@pytest.mark.parametrize("status", [None, "FAILED"])
def test_an_older_attempt_is_not_listed_for_a_newer_one_at_another_time(
    world: Counted, span: dict[str, str], status: Any
):
    """The request began when its newest attempt did."""
    world.began("order-1", 3, "FAILED", key="acme/1")
    world.began("order-1--2", 1, "FAILED", key="acme/1")
    found = [one.execution_arn for one in world.listing(Wanted(status, **span))]
    assert ([] if "until" in span else [arn("order-1--2")]) == found


def test_a_list_of_one_status_describes_no_other(world: Counted):
    """What the list of executions says is enough to leave the others out."""
    for number in range(6):
        world.began(f"n-{number}", 1, "FAILED" if number else "SUCCEEDED", key=f"acme/{number}")
        world.began(f"n-{number}--2", 0.5, key=f"acme/{number}")
    world.began("m-1", 1, "ABORTED", key="acme/m")
    world.sfn.calls.clear()
    assert ["m-1"] == world.ids(since=hours_ago(2), status="FAILED")
    assert {"list_executions": 2, "describe_execution": 1} == world.sfn.calls


def test_beyond_what_is_remembered_the_newest_attempt_counts(world: Counted, monkeypatch: pytest.MonkeyPatch):
    """Whether there is a next one is looked up."""
    monkeypatch.setattr(listing, "REMEMBERED", 0)
    world.began("order-1", 3, "FAILED", key="acme/1")
    world.began("order-1--2", 2, key="acme/1")
    assert [] == world.ids(since=hours_ago(4), status="FAILED")
    assert ["order-1"] == world.ids(since=hours_ago(4))


def test_an_older_attempt_that_was_redriven_is_not_the_request(world: Counted):
    """The newest attempt has ended, so it is not in the list of executions that run."""
    world.began("order-1", 3, key="acme/1")
    world.sfn.executions[arn("order-1")]["redriveCount"] = 1
    world.began("order-1--2", 2, "SUCCEEDED", key="acme/1")
    assert [] == world.ids(status="RUNNING") + world.ids(since=hours_ago(4), status="RUNNING")
    assert ["order-1"] == world.ids(since=hours_ago(4), status="COMPLETED") == world.ids(since=hours_ago(4))


@pytest.mark.parametrize("record", [FREE, DONE | {"expiresAt": hours_ago(2)}], ids=["released", "expired"])
def test_a_free_record_whose_next_attempt_runs_is_a_running_request(world: Counted, record: dict[str, Any]):
    """It waits for its rate limit, as one that was sent again does before it gets the lock."""
    world.put(created=hours_ago(3), **record)
    world.began("order-1", 3, "FAILED", key="m/order-1")
    world.began("order-1--2", 1, key="m/order-1")
    listed = {wanted: world.ids(since=hours_ago(4), status=wanted) for wanted in [None, *STATUSES]}
    assert {
        None: ["order-1"],
        "RUNNING": ["order-1"],
        "COMPLETED": [],
        "FAILED": [],
        "RELEASED": [],
    } == listed
    (one,) = world.listing(Wanted(since=hours_ago(4)))
    assert ("RUNNING", arn("order-1--2"), hours_ago(1)) == (one.status, one.execution_arn, one.created)


@pytest.mark.parametrize("since", [hours_ago(4), hours_ago(2)], ids=["record in time", "record too old"])
@pytest.mark.parametrize("record", [FREE, DONE | {"expiresAt": hours_ago(2)}], ids=["released", "expired"])
def test_a_free_record_whose_next_attempt_got_no_lock_is_a_failed_request(
    world: Counted, record: dict[str, Any], since: str
):
    """The rate limit has refused it, as `status` says, however old the record of the attempt before is."""
    world.put(created=hours_ago(3), **record)
    world.began("order-1", 3, "FAILED", key="m/order-1")
    world.began("order-1--2", 1, "FAILED", key="m/order-1")
    listed = {wanted: world.ids(since=since, status=wanted) for wanted in [None, *STATUSES]}
    assert {
        None: ["order-1"],
        "RUNNING": [],
        "COMPLETED": [],
        "FAILED": ["order-1"],
        "RELEASED": [],
    } == listed
    (one,) = world.listing(Wanted(since=since))
    assert (arn("order-1--2"), None, hours_ago(1)) == (one.execution_arn, one.locked_by, one.created)


@pytest.mark.parametrize(
    ("status", "record"),
    [("RELEASED", FREE), ("COMPLETED", DONE | {"expiresAt": hours_ago(0.5)})],
    ids=["released", "expired"],
)
def test_a_free_record_that_was_settled_after_the_newest_attempt_tells_the_status(
    world: Counted, status: str, record: dict[str, Any]
):
    """The attempt ended because a dead owner held the lock. The owner was settled later."""
    world.put(created=hours_ago(3), actualCompletion=hours_ago(1), **record)
    world.began("order-1", 3, "ABORTED", key="m/order-1")
    world.began("order-1--2", 2, key="m/order-1")
    world.sfn.close("order-1--2", "FAILED", "AlreadyInProgress", "", NOW - timedelta(hours=1.5))
    (one,) = world.listing(Wanted(since=hours_ago(4)))
    assert (status, arn("order-1")) == (one.status, one.locked_by)
    assert ["order-1"] == world.ids(since=hours_ago(4), status=status)
    assert [] == world.ids(since=hours_ago(4), status="FAILED")
    assert [] == world.ids(since=hours_ago(2.5))


def test_a_free_record_does_not_tell_of_a_later_execution_of_its_name(world: Counted):
    """Step Functions has forgotten the one that made it, and the record is kept for ever."""
    world.put(created=hours_ago(24 * 100), **FREE)
    world.began("order-1", 1, "FAILED", key="m/order-1", callId="call-2")
    for since in (24 * 101, 2):
        assert ["FAILED"] == [one.status for one in world.listing(Wanted(since=hours_ago(since)))]


def test_a_free_record_that_a_later_attempt_takes_meanwhile_is_that_attempt_s(world: Counted):
    """The table was read before."""
    world.put(created=hours_ago(3), **FREE)
    world.began("order-1--2", 1, key="m/order-1")
    found = world.listing(Wanted(since=hours_ago(4)))
    world.sfn.before_call = lambda operation, _: (
        operation == "list_executions"
        and world.put(lockedBy=arn("order-1--2"), created=hours_ago(0), attempt=2)
    )
    assert [("RUNNING", 2)] == [(one.status, one.attempt) for one in found]


def test_a_free_record_is_told_by_its_own_attempt_without_a_call(world: Counted):
    """Also if an earlier attempt got no lock, or Step Functions has forgotten all of them."""
    world.put(created=hours_ago(1), lockedBy=arn("order-1--2"), **FREE)
    world.began("order-1", 3, "FAILED", key="m/order-1")
    world.began("order-1--2", 2, "FAILED", key="m/order-1")
    world.put("m/forgotten", "forgotten", created=hours_ago(1), **FREE)
    world.put("m/theirs", "theirs", created=hours_ago(1), lockedBy=at_refunds("theirs"), **FREE)
    for status in (None, "RELEASED"):
        assert ["forgotten", "order-1"] == world.ids("m", since=hours_ago(4), status=status)
    assert [] == world.ids("m", since=hours_ago(4), status="FAILED")
    assert ["forgotten", "order-1", "theirs"] == world.ids(since=hours_ago(4))
    assert 0 == world.sfn.calls["describe_execution"]


def test_free_records_beyond_what_is_remembered_are_listed_as_they_are(
    world: Counted, monkeypatch: pytest.MonkeyPatch
):
    """Each of them once."""
    monkeypatch.setattr(listing, "REMEMBERED", 2)
    for number in range(3):
        world.put(f"m/{number}", str(number), **FREE, created=hours_ago(3))
        world.began(f"{number}--2", 1, "FAILED", key=f"m/{number}")
    found = sorted(one.status for one in world.listing(Wanted(since=hours_ago(4))))
    assert ["FAILED", "FAILED", "RELEASED"] == found


@pytest.mark.parametrize(
    "given", [{"requestId": None}, {"key": "m/other"}, {"requestId": "order-2"}], ids=["hand", "key", "id"]
)
def test_an_execution_that_is_no_attempt_of_it_hides_no_free_record(world: Counted, given: dict[str, Any]):
    """Somebody has started it by hand under the name of an attempt."""
    world.put(created=hours_ago(3), **FREE)
    world.began("order-1--2", 1, **{"key": "m/order-1"} | given)
    assert ["RUNNING", "RELEASED"] == [one.status for one in world.listing(Wanted(since=hours_ago(4)))]


def test_free_records_cost_a_list_of_executions_only_where_there_is_none_already(world: Counted):
    """Of the requests that were released there is none otherwise."""
    calls: dict[Any, int] = {}
    for number in range(5):
        world.put(f"m/{number}", str(number), **FREE, created=hours_ago(1))
    for status in (None, "FAILED", "RELEASED"):
        world.sfn.calls.clear()
        assert (0 if status == "FAILED" else 5) == len(world.ids(since=hours_ago(2), status=status))
        calls[status] = world.sfn.calls["list_executions"]
    assert {None: 2, "FAILED": 2, "RELEASED": 1} == calls
    assert 5 == len(world.ids())
    assert {"list_executions": 1} == world.sfn.calls


def test_an_attempt_that_runs_beside_an_answer_on_record_is_that_answer(world: Counted):
    """It gets that answer as well, so the request is not RUNNING."""
    world.put(created=hours_ago(3), **DONE)
    world.began("order-1--2", 1, key="m/order-1")
    listed = {wanted: world.ids(since=hours_ago(4), status=wanted) for wanted in STATUSES}
    assert {wanted: ["order-1"] if wanted == "COMPLETED" else [] for wanted in STATUSES} == listed


def test_a_record_that_is_written_meanwhile_is_the_request_s(world: Counted):
    """The table was read before it came, and the execution is listed after."""
    world.began("order-1", 1, key="m/order-1")
    found = world.listing(Wanted("RUNNING"))
    world.sfn.before_call = lambda operation, _: (
        operation == "list_executions" and world.put(requestId="order-1", created=hours_ago(1))
    )
    (one,) = found
    assert (arn("order-1"), 1) == (one.locked_by, one.attempt)


def test_a_next_attempt_that_runs_before_its_lock_is_a_running_request(world: Counted):
    """Its record is still that of the attempt before, which was released."""
    world.began("order-1--2", 1, key="m/order-1")
    world.put(status="RELEASED", openStatus=None, ttl=TTL, failure='{"Error": "RetryLater", "Cause": null}')
    assert ["order-1"] == world.ids(status="RUNNING")


def test_a_request_under_another_s_key_is_a_request_of_its_own(world: Counted):
    """It got the other one's answer, and has no record."""
    world.put("acme/1", "first", **DONE, created=hours_ago(2))
    world.began("second", 1, "SUCCEEDED", key="acme/1")
    assert ["first", "second"] == world.ids(since=hours_ago(3))


def test_a_request_under_the_key_of_a_guard_s_is_a_request_of_its_own(world: Counted):
    """Both have one id. The guard's was listed twice."""
    world.put(lockedBy="process/host/1", **DONE, created=hours_ago(2))
    world.began("order-1", 1, "SUCCEEDED")
    found = [(one.request_id, one.machine) for one in world.listing(Wanted(since=hours_ago(3)))]
    assert [("order-1", None), ("order-1", ARN)] == found


def test_throttling_is_said_so(world: Counted):
    """And is safe to repeat."""
    world.sfn.refuse("list_executions", "ThrottlingException")
    with pytest.raises(Unavailable):
        world.ids(since=hours_ago(1))
