"""Decorated functions that call one another, in threads and tasks too, on one store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from weakref import ref

import pytest
from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyInconsistentStateError,
    IdempotencyPersistenceLayerError,
)
from aws_lambda_powertools.utilities.idempotency.serialization.custom_dict import CustomDictSerializer

from steponce import RequestFailed
from steponce.powertools.nesting import Calls
from tests.patience import turn
from tests.unit.powertools.world import config, items, key_of, ours, stock, table

ORDER = {"orderId": "1"}
Records = dict[str, tuple[str, Any]]

pytestmark = pytest.mark.usefixtures("locks")


@pytest.fixture
def locks() -> Iterator[None]:
    """The stack's lock table, empty."""
    with table():
        yield


def decorated(
    store: BasePersistenceLayer, prefix: str, work: Callable[[Any], Any], **options: Any
) -> Callable[[Any], Any]:
    """A function that Powertools decorates, on a store that it shares with others."""

    serializer = options.pop("serializer", None)

    @idempotent_function(
        data_keyword_argument="data",
        persistence_store=store,
        config=config(**options),
        key_prefix=prefix,
        output_serializer=serializer,
    )
    def function(data: Any) -> Any:
        return work(data)

    return lambda data: function(data=data)


def records() -> Records:
    """What is on record: status and result by the key's prefix."""
    found = {item["lockToken"]["S"].partition("#")[0]: item for item in items()}
    return {
        prefix: (item["status"]["S"], json.loads(item["result"]["S"]) if "result" in item else None)
        for prefix, item in found.items()
    }


def nested(store: BasePersistenceLayer) -> Records:
    """One decorated function calls another."""
    reserve = decorated(store, "reserve", lambda _data: "reserved")
    buy = decorated(store, "buy", lambda data: [reserve(data), "bought"])
    assert ["reserved", "bought"] == buy(ORDER)
    return records()


def configured_apart(store: BasePersistenceLayer) -> list[str]:
    """Two functions with keys of their own, and two refunds of one order."""
    charge = decorated(store, "charge", lambda _data: "charged", event_key_jmespath="orderId")
    refund = decorated(store, "refund", lambda data: data["refundId"], event_key_jmespath="refundId")
    charge(ORDER)
    return [refund(ORDER | {"refundId": one}) for one in ("first", "second")]


def test_nested_calls_keep_their_records_apart():
    """Each result is under its own function's key."""
    assert {"reserve": ("COMPLETED", "reserved"), "buy": ("COMPLETED", ["reserved", "bought"])} == nested(
        ours()
    )


def test_a_function_has_its_own_configuration():
    """Another payload is another call."""
    assert ["first", "second"] == configured_apart(ours())


def test_functions_without_a_prefix_are_told_apart_by_their_names():
    """Both get the same order, and neither gets the other's answer."""
    once = idempotent_function(data_keyword_argument="data", persistence_store=ours(), config=config())

    @once
    def charge(data: Any) -> str:
        return f"charged {data['orderId']}"

    @once
    def refund(data: Any) -> str:
        return f"refunded {data['orderId']}"

    assert ["charged 1", "refunded 1"] * 2 == [one(data=ORDER) for _ in range(2) for one in (charge, refund)]


def test_a_call_that_powertools_repeats_is_still_the_same_call():
    """Powertools repeats a call after this error, which a function on another store may have raised."""
    done = []

    def reserve(_data: Any) -> None:
        done.append("reserved")
        raise IdempotencyInconsistentStateError("The record of an inner call keeps changing.")

    store = ours()
    inner = decorated(store, "reserve", reserve)
    with pytest.raises(RequestFailed, match="IdempotencyInconsistentStateError"):
        decorated(store, "buy", lambda _data: inner({"orderId": "2"}))(ORDER)

    assert ["reserved"] == done
    assert {"reserve": ("FAILED", None), "buy": ("FAILED", None)} == records()


def test_powertools_own_store_mixes_both():
    """Which is why the two tests above are there; they fail with it."""
    mixed = nested(stock())
    assert {"reserve": ("COMPLETED", ["reserved", "bought"]), "buy": ("INPROGRESS", None)} == mixed
    assert ["first", "first"] == configured_apart(stock())


@pytest.mark.filterwarnings("ignore:No idempotency key value found")
@pytest.mark.parametrize("inner_data", [ORDER, "1", None])
def test_an_inner_error_is_the_inner_call_s(inner_data: Any):
    """The outer one goes on, also where both have the same payload."""
    store = ours()

    def fail(_data: Any) -> Any:
        raise KeyError("inner")

    inner = decorated(store, "inner", fail)

    def work(_data: Any) -> Any:
        with pytest.raises(KeyError):
            inner(inner_data)
        return "outer"

    assert "outer" == decorated(store, "outer", work)(ORDER)
    found = records()
    assert ("COMPLETED", "outer") == found["outer"]
    assert found.get("inner", ("FAILED", None)) == ("FAILED", None)


def exits(_data: Any) -> Any:
    raise SystemExit


@pytest.mark.parametrize("left", ["exit", "serializer", "refused"])
def test_a_call_that_powertools_does_not_end_is_not_taken_for_another(left: str):
    """Both have the same payload, which is one object: nothing but the stack tells them apart."""

    def no_dict(_result: Any) -> Any:
        raise OSError("no dict")

    store = ours()
    serializer = CustomDictSerializer(no_dict, dict) if left == "serializer" else None
    inner = decorated(store, "inner", exits if left == "exit" else str, serializer=serializer)
    if left == "refused":
        inner("one")

    def work(data: Any) -> Any:
        for _ in range(3):
            try:
                inner(data)
            except (SystemExit, IdempotencyPersistenceLayerError):
                break
        return "outer"

    assert "outer" == decorated(store, "outer", work)("one")
    found = records()
    assert ("COMPLETED", "outer") == found["outer"]
    assert (("COMPLETED", "one") if left == "refused" else ("INPROGRESS", None)) == found["inner"]


def test_the_first_calls_of_a_new_context_find_their_own():
    """A task inherits what its maker has begun, and ends nothing of it."""
    store = ours()
    inner = decorated(store, "inner", lambda data: f"inner {data}")

    async def many() -> list[Any]:
        return list(await asyncio.gather(*(asyncio.to_thread(inner, one) for one in range(8))))

    async def tasks() -> list[Any]:
        async def one(data: int) -> Any:
            await turn()
            return inner(data)

        return list(await asyncio.gather(*(one(data) for data in range(8, 16))))

    def work(_data: Any) -> Any:
        return asyncio.run(many()) + asyncio.run(tasks())

    outer = decorated(store, "outer", work)
    assert [f"inner {one}" for one in range(16)] == outer(ORDER)
    assert 17 == len(items())
    assert {"COMPLETED"} == {item["status"]["S"] for item in items()}


def test_calls_in_threads_share_nothing():
    """Each is in its work while the others begin."""
    store, together = ours(), Barrier(6)

    def work(data: Any) -> Any:
        together.wait(30)
        return data

    functions = [decorated(store, f"f{n}", work) for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda n: functions[n](n), range(6)))
    assert list(range(6)) == answers
    assert {key_of(f"f{n}", n): str(n) for n in range(6)} == {
        item["lockToken"]["S"]: item["result"]["S"] for item in items()
    }


def test_a_call_that_is_over_is_not_kept():
    """A replay has no end, and a Lambda that stays warm has thousands of them."""

    class Begun:
        """A call."""

    calls: Calls[Begun] = Calls("test")
    first = Begun()
    seen = ref(first)
    calls.begin(first)
    del first
    last = Begun()
    calls.begin(last)
    assert None is seen()
    seen = ref(last)
    assert calls.end() is last
    del last
    assert None is seen()


def test_an_end_without_a_begin_is_said():
    """Somebody calls the store, who is not Powertools."""
    with pytest.raises(RuntimeError, match="No call has begun here"):
        ours().save_success({}, {})


def test_the_store_may_be_driven_by_hand():
    """As Powertools does."""
    store = ours()
    store.configure(config(), "f", "by-hand")
    store.save_inprogress(ORDER, 1_000)
    found = store.get_record(ORDER)
    assert found is not None
    assert "INPROGRESS" == found.status
    store.save_success(ORDER, {"done": True})
    assert {"by-hand": ("COMPLETED", {"done": True})} == records()
