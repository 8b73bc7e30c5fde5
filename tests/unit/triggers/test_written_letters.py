"""The marks of dead letters in the lock table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from moto import mock_aws

from steponce.aws import times
from steponce.errors import Unavailable
from steponce.triggers.written_letters import KEPT, WrittenLetters, end_of
from tests.fakes.errors import client_error
from tests.fakes.tables import create_table
from tests.unit.one_owner import NOW
from tests.unit.shared_clients import shared

ARN = "arn:aws:states:us-east-1:123456789012:execution:m:order-1"
END, NEXT = end_of(ARN, "call", 0), end_of(ARN, "call", 1)


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> Iterator[WrittenLetters]:
    """An empty table; it is twelve."""
    monkeypatch.setattr(times, "now", lambda: NOW)
    with mock_aws():
        create_table(shared("dynamodb"), "LocksTable", "locks")
        yield WrittenLetters(shared("dynamodb"), "locks")


def items() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shared("dynamodb").scan(TableName="locks")["Items"]
    return found


def test_an_end_is_marked_once(letters: WrittenLetters) -> None:
    """And no other one is."""
    assert not letters.has(END)
    letters.add(END)
    letters.add(END)
    assert (True, False, 1) == (letters.has(END), letters.has(NEXT), len(items()))


def test_a_mark_names_nobody(letters: WrittenLetters) -> None:
    """An execution's name is often an order or a person."""
    letters.add(END)
    assert "order-1" not in f"{END} {items()}"


@pytest.mark.parametrize("call_id", ["\ud800", "\0", "x" * 200_000, None, {"a": [1]}, 1.5])
def test_an_end_has_a_name_whatever_its_call_id_is(letters: WrittenLetters, call_id: object) -> None:
    """An execution by hand may have any. Half a character stopped the search for lost messages."""
    end = end_of(ARN, call_id, 0)
    assert 64 == len(end)
    letters.add(end)
    assert (True, False) == (letters.has(end), letters.has(end_of(ARN, call_id, 1)))


def test_a_mark_ends_before_its_name_may_be_anothers(
    letters: WrittenLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if DynamoDB takes its time to delete it."""
    letters.add(END)
    (item,) = items()
    assert int((NOW + KEPT).timestamp()) == int(item["ttl"]["N"])
    for passed, has in [(KEPT - timedelta(seconds=1), True), (KEPT, False)]:
        now = NOW + passed
        monkeypatch.setattr(times, "now", lambda now=now: now)
        assert has == letters.has(END)


@pytest.mark.parametrize("damage", [{}, {"expiresAt": {"N": "9999"}}])
def test_a_damaged_mark_is_none(letters: WrittenLetters, damage: dict[str, Any]) -> None:
    """A second letter does no harm. A letter too few would lose the request."""
    letters.add(END)
    (item,) = items()
    shared("dynamodb").put_item(TableName="locks", Item={"lockToken": item["lockToken"]} | damage)
    assert not letters.has(END)


def test_a_mark_is_read_consistently(letters: WrittenLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event and the search may come to the same end within a second. The second would write a letter."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(shared("dynamodb"), "get_item", lambda **options: asked.update(options) or {})
    letters.has(END)
    assert True is asked["ConsistentRead"]


def test_a_throttled_table_is_unavailable() -> None:
    """The end is examined again."""

    class Busy:
        def get_item(self, **_: Any) -> None:
            raise client_error("ThrottlingException")

        put_item = get_item

    busy: Any = Busy()
    with pytest.raises(Unavailable):
        WrittenLetters(busy, "locks").has(END)
    with pytest.raises(Unavailable):
        WrittenLetters(busy, "locks").add(END)
