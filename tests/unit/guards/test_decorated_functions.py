"""Functions, methods and coroutines under a guard: keys, types, hooks, nesting."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import inspect
import runpy
import sqlite3
import sys
import traceback
import warnings
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ForwardRef, Literal, NamedTuple, TypedDict, cast
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr

from steponce import (
    Guard,
    NotRecorded,
    PayloadMismatch,
    RequestFailed,
    Unsettled,
)
from steponce.errors import (
    InvalidLockToken,
    InvalidPayload,
    InvalidSetting,
    MissingKey,
    RecordUnreadable,
)
from steponce.locks.record import Lock
from steponce.request.settings import RequestRules
from steponce.workflow import COMPLETED, OUTCOME_UNKNOWN
from tests import covering
from tests.patience import PATIENCE_SECONDS, turn
from tests.unit.guards.charging import DONE, ORDER, CardDeclined, complete, fail_with
from tests.unit.guards.world import KEY, NOW, Session, World

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@dataclass
class Order:
    """What is bought."""

    orderId: str
    amount: int


class Colour(Enum):
    """Of a receipt."""

    RED = "red"


@dataclass
class Charge:
    """What a provider answers, with all that JSON has no form for."""

    charge_id: UUID
    at: datetime
    amount: Decimal
    colours: list[Colour]
    order: Order | None = None
    pair: tuple[int, str] = (1, "a")


class Receipt(TypedDict):
    """A typed dictionary."""

    order: Order


class Model(BaseModel):
    """One of pydantic's."""

    at: datetime
    order: Order


class StrictModel(BaseModel):
    """A model that takes no text for a time from Python, and whose field has another name outside."""

    model_config = ConfigDict(strict=True)

    charged_at: datetime = Field(alias="chargedAt")


class Card(BaseModel):
    """A model whose JSON masks a field."""

    token: SecretStr
    amount: int


class Period(NamedTuple):
    """A named tuple."""

    start: datetime
    days: int


@dataclass
class Invocation:
    """A field's type is known to type checkers only."""

    at: datetime
    context: LambdaContext | None = None


@dataclass
class Declined:
    """One of two answers, whose fields need not be given."""

    reason: str = ""


@dataclass
class Accepted:
    """The other answer."""

    charge_id: str


@dataclass
class Debit:
    """A field says which of two classes with the same fields it is."""

    amount: int
    kind: Literal["debit"] = "debit"


@dataclass
class Credit:
    """The other class."""

    amount: int
    kind: Literal["credit"] = "credit"


class Short(BaseModel):
    """A model that ignores fields which it does not know."""

    order: str


class Long(BaseModel):
    """A model with one more field."""

    order: str
    note: str


class Rate(NamedTuple):
    """A named tuple with a number."""

    rate: Decimal


class Due(TypedDict):
    """A typed dictionary with a time."""

    due: datetime


CHARGE = Charge(UUID(int=1), NOW, Decimal("1.50"), [Colour.RED], Order("o-1", 1))


def test_a_function_runs_once_per_key(world: World) -> None:
    """By its arguments' names, however they are given."""
    guard, calls = world.guard(key_prefix="billing"), []

    @guard.idempotent(lock_token="order.orderId", payload="order", name="charge")
    def charge(order: Order, note: str = "") -> Charge:
        """Charge."""
        calls.append(note)
        return CHARGE

    assert CHARGE == charge(Order("o-1", 1), "a") == charge(order=Order("o-1", 1), note="b")
    assert ["a"] == calls
    assert ("charge", "Charge.") == (charge.__name__, charge.__doc__)
    assert "charge/o-1" == world.lock("billing/charge/o-1").request_id
    with pytest.raises(PayloadMismatch):
        charge(Order("o-1", 2))


RETURNED = [
    (Charge, CHARGE),
    (Receipt, {"order": Order("o-1", 1)}),
    (Model, Model(at=NOW, order=Order("o-1", 1))),
    (StrictModel, StrictModel(chargedAt=NOW)),
    (Period, Period(NOW, 1)),
    (Invocation, Invocation(NOW)),
    (list[Charge], [CHARGE]),
    (Declined | Accepted, Accepted("ch-1")),
    (Declined | Accepted, Declined("no money")),
    (Debit | Credit, Credit(5)),
    (Short | Long, Long(order="o-1", note="n")),
    (Receipt | Due, {"due": NOW}),
    (Rate | list[str], ["no number"]),
    (Literal["yes"] | None, "yes"),
    (Literal[Colour.RED], Colour.RED),
    (dict[str, Order], {"a": Order("o-1", 1)}),
    (Order | None, None),
    (str | Order, Order("o-1", 1)),
    (tuple[Order, ...], (Order("o-1", 1),)),
    (Any, {"plain": [1, None]}),
]


@pytest.mark.parametrize(("kind", "value"), RETURNED, ids=[str(kind) for kind, _ in RETURNED])
def test_a_replayed_result_has_the_annotated_type(world: World, kind: Any, value: Any) -> None:
    """Whoever gets it cannot tell that it is a replay."""

    def work(key: str) -> Any:
        return value

    work.__annotations__["return"] = kind
    guarded = world.guard().idempotent(lock_token="key")(work)
    assert value == guarded("o-1") == guarded("o-1")


class _Till:
    currency: str = "EUR"

    def __call__(self, key: str) -> Decimal:
        return Decimal(key)


def _charged(key: str) -> Decimal:
    return Decimal(key)


class _AsyncTill:
    async def __call__(self, key: str) -> Decimal:
        return Decimal(key)


@pytest.mark.parametrize("function", [_Till(), functools.partial(_Till()), functools.partial(_charged)])
def test_an_object_and_a_partial_have_annotations_too(world: World, function: Any) -> None:
    """Their replays had JSON's types."""
    charge = world.guard().idempotent(name="charge", lock_token="key")(function)
    assert [Decimal("1.5")] * 2 == [charge(key="1.5"), charge(key="1.5")]


def test_an_object_whose_call_is_async_has_an_annotation_too(world: World) -> None:
    """Its replay was a text."""
    charge = world.guard().idempotent(name="charge", lock_token="key")(_AsyncTill())
    assert [Decimal("1.5")] * 2 == [asyncio.run(charge("1.5")), asyncio.run(charge("1.5"))]


def test_equal_calls_have_equal_keys(world: World) -> None:
    """Also by functions that see the order of keys, and how a number is written."""
    done = []

    @world.guard().idempotent(lock_token="to_string(order)", name="charge")
    def charge(order: Any) -> str:
        done.append(order)
        return "charged"

    assert "charged" == charge({"id": "1", "amount": 5}) == charge({"amount": 5.0, "id": "1"})
    assert 1 == len(done)


def test_a_replay_does_not_guess_between_two_classes(world: World) -> None:
    """Their fields have the same names, and nothing says which of the two the result was."""

    @dataclass
    class Failed:
        reason: str = ""

    def work(key: str) -> Any:
        return Failed("no answer")

    work.__annotations__["return"] = Declined | Failed
    guarded = world.guard().idempotent(lock_token="key", name="work")(work)
    guarded("o-1")
    with pytest.raises(RecordUnreadable, match="type"):
        guarded("o-1")


@pytest.mark.parametrize("wrapped", [lambda card: card, lambda card: [{"card": card}]])
def test_two_calls_that_differ_in_a_secret_are_two_requests(world: World, wrapped: Any) -> None:
    """The model's own JSON is the same for both."""

    @world.guard().idempotent(name="charge")
    def charge(card: Any) -> str:
        charged.append(card)
        return str(len(charged))

    charged: list[Any] = []
    alice, bob = (wrapped(Card(token=SecretStr(name), amount=5)) for name in ("alice", "bob"))
    assert ["1", "2", "1"] == [charge(alice), charge(bob), charge(alice)]


@dataclass
class Signed:
    """A dataclass of a model, with a secret."""

    by: SecretStr


def test_a_secret_deep_in_a_model_tells_calls_apart(world: World) -> None:
    """Of a model in a list, of a dataclass, and of a dictionary whose keys are no text."""

    class Cards(RootModel[list[Card]]):
        pass

    class Wallet(BaseModel):
        cards: Cards
        at: datetime
        signed: Signed
        pins: dict[int, SecretStr]

    @world.guard().idempotent(name="charge")
    def charge(wallet: Wallet) -> str:
        charged.append(wallet)
        return str(len(charged))

    charged: list[Wallet] = []
    wallets = [
        Wallet(
            cards=Cards([Card(token=SecretStr(token), amount=5)]),
            at=NOW,
            signed=Signed(SecretStr(by)),
            pins={1: SecretStr(pin)},
        )
        for token, by, pin in ("aaa", "baa", "aba", "aab", "aaa")
    ]
    assert ["1", "2", "3", "4", "1"] == [charge(wallet) for wallet in wallets]


def test_a_replay_gives_no_mask_for_a_secret(world: World) -> None:
    """The record does not have the secret of the first call's result."""

    @world.guard().idempotent(lock_token="key")
    def work(key: str) -> Card:
        return Card(token=SecretStr("alice"), amount=5)

    assert "alice" == work("o-1").token.get_secret_value()
    assert "alice" not in str(world.lock("test_a_replay_gives_no_mask_for_a_secret.<locals>.work/o-1").result)
    with pytest.raises(RecordUnreadable, match=r"type.*Do not delete it"):
        work("o-1")


def test_a_result_that_cannot_be_converted_is_not_quoted(world: World) -> None:
    """The conversion's own error may have it. The caller gets the result as an attribute of the error."""

    def to_json(result: Any) -> Any:
        raise ValueError(f"{result} has no form")

    @world.guard().idempotent(lock_token="key", serialize=to_json)
    def work(key: str) -> str:
        return "4111-1111"

    with pytest.raises(NotRecorded, match="conversion to JSON raised ValueError") as raised:
        work("o-1")
    assert "4111-1111" == raised.value.result
    assert "4111" not in "".join(traceback.format_exception(raised.value))


def test_a_replay_that_does_not_fit_quotes_no_result(world: World) -> None:
    """The type's own error has it, as after a deployment that has changed the type."""

    def before(key: str) -> str:
        return "4111-1111"

    def now(key: str) -> datetime:
        raise AssertionError

    idempotent = world.guard().idempotent(lock_token="key", name="charge")
    idempotent(before)("o-1")
    with pytest.raises(RecordUnreadable) as raised:
        idempotent(now)("o-1")
    assert "4111" not in "".join(traceback.format_exception(raised.value))


@dataclass
class Stamped:
    """It keeps more than its fields have as JSON."""

    amount: float
    note: str = field(default="none", init=False)


@pytest.mark.parametrize(("kind", "same"), [(Stamped, "none"), (Any, None)])
def test_the_first_call_gets_what_replays_get(world: World, kind: Any, same: str | None) -> None:
    """What JSON cannot keep shows at once, and not when a message comes twice."""

    def work(key: str) -> Any:
        stamped = Stamped(250.0)
        stamped.note = "by work"
        return stamped

    work.__annotations__["return"] = kind
    guarded = world.guard().idempotent(lock_token="key")(work)
    first = guarded("o-1")
    assert first == guarded("o-1")
    assert same == getattr(first, "note", None)


def test_a_block_gets_what_replays_get(world: World) -> None:
    """Of a tuple, JSON makes a list."""
    with world.guard().begin("o-1", {}) as run:
        run.complete({"pages": (1, 2.0)})
        assert {"pages": [1, 2]} == run.result


def test_a_result_that_no_replay_can_convert_reaches_its_caller(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The work is done. The log says whose answer is lost to others, and not what it is."""

    @world.guard().idempotent(lock_token="key", name="work")
    def work(key: str) -> int | Charge:
        return cast(Charge, "a text")

    assert "a text" == work("o-1")
    assert "No other call can replay 'work/o-1'" in caplog.text
    assert "a text" not in caplog.text


def test_an_argument_of_an_unknown_type_does_not_change_the_type_of_a_replay(world: World) -> None:
    """The module imports the argument's type for type checkers only."""

    @world.guard().idempotent(lock_token="key")
    def work(key: str, context: LambdaContext | None = None) -> Charge:
        return CHARGE

    assert CHARGE == work("o-1") == work("o-1")


@dataclass
class Entered:
    """A field's type is known to type checkers only, as Python 3.14 has it."""

    at: datetime
    order: Any = None


class Parts(TypedDict, total=False):
    """A typed dictionary with such a field."""

    due: datetime
    order: Any


def test_names_of_type_checkers_are_no_error_where_annotations_are_evaluated_late(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.14 raises a NameError when they are read, unless it is asked for ForwardRefs."""

    def entered(order: Any) -> Entered:
        return Entered(NOW)

    def parts(order: Any) -> Parts | Entered:
        return {"due": NOW}

    late = (entered, parts, Entered, Parts)
    for owner in late:
        owner.__annotations__["order"] = ForwardRef("NotImported")

    def as_in_python_3_14(read: Callable[..., Any]) -> Callable[..., Any]:
        def evaluated(owner: Any, **options: Any) -> Any:
            if owner in late and not options:
                raise NameError("NotImported")
            return read(owner, **{name: option for name, option in options.items() if option != "forward"})

        return evaluated

    library = SimpleNamespace(Format=SimpleNamespace(FORWARDREF="forward"))
    monkeypatch.setitem(sys.modules, "annotationlib", library)
    for name in ("signature", "get_annotations"):
        monkeypatch.setattr(inspect, name, as_in_python_3_14(getattr(inspect, name)))
    for function in (entered, parts):
        guarded = world.guard().idempotent()(function)
        assert function("o-1") == guarded("o-1") == guarded("o-1")


def test_your_own_pair_of_functions_goes_first(world: World) -> None:
    """In the place of annotations."""
    own = {
        "serialize": lambda charge: {"id": str(charge.charge_id)},
        "deserialize": lambda given: given["id"],
    }

    @world.guard().idempotent(lock_token="key", **own)
    def work(key: str) -> Charge:
        return CHARGE

    work("o-1")
    assert str(UUID(int=1)) == work("o-1")


def test_a_result_that_does_not_fit_any_more_is_unreadable(world: World) -> None:
    """The function has another type by now."""
    guard = world.guard()

    @guard.idempotent(lock_token="key", name="work")
    def before(key: str) -> str:
        return "text"

    @guard.idempotent(lock_token="key", name="work")
    def now(key: str) -> Charge:
        return CHARGE

    before("o-1")
    with pytest.raises(RecordUnreadable, match="type"):
        now("o-1")


def test_a_hook_hears_of_replays_and_may_change_them(world: World) -> None:
    """It gets the result and the record, and nothing else calls it."""
    heard: list[Lock] = []

    def hook(result: Any, record: Lock) -> Any:
        heard.append(record)
        return result | {"replayed": True}

    guard = world.guard(on_replay=hook)
    assert DONE == complete(guard)
    assert [] == heard
    assert DONE | {"replayed": True} == complete(guard)
    assert COMPLETED == heard[0].status


def test_methods_are_guarded_by_their_arguments(world: World) -> None:
    """Not by self; class methods and static methods too."""
    guard, calls = world.guard(), []

    class Till:
        @guard.idempotent(lock_token="key")
        def charge(self, key: str) -> str:
            calls.append(self)
            return key

        @classmethod
        @guard.idempotent(lock_token="key")
        def of_class(cls, key: str) -> str:
            calls.append(cls)
            return cls.__name__

        @guard.idempotent(lock_token="key")
        @staticmethod
        def static(key: str) -> str:
            calls.append(key)
            return key

    assert ["a"] * 2 == [Till().charge("a"), Till().charge("a")]
    assert ["Till"] * 2 == [Till.of_class("a"), Till.of_class("a")]
    assert ["a"] * 2 == [Till.static("a"), Till().static("a")]
    assert 3 == len(calls)


def test_functions_on_one_guard_do_not_answer_for_each_other(world: World) -> None:
    """Their names are part of their keys, and each has its own terms."""
    guard = world.guard()

    @guard.idempotent(lock_token="key", final=(CardDeclined,))
    def charge(key: str) -> str:
        raise CardDeclined

    @guard.idempotent(lock_token="key")
    def refund(key: str) -> str:
        return "refunded"

    with pytest.raises(CardDeclined):
        charge("o-1")
    assert "refunded" == refund("o-1")
    with pytest.raises(RequestFailed):
        charge("o-1")


def test_nested_functions_keep_their_records_apart(world: World) -> None:
    """The inner one is complete before the outer one, which may fail."""
    guard = world.guard()

    @guard.idempotent(lock_token="key", name="inner")
    def inner(key: str) -> str:
        return f"inner {key}"

    @guard.idempotent(lock_token="key", name="outer")
    def outer(key: str) -> str:
        return f"outer {inner(key)} {inner(key + '2')}"

    assert "outer inner o inner o2" == outer("o") == outer("o")
    results = {key: world.lock(key).result for key in ("outer/o", "inner/o", "inner/o2")}
    assert {
        "outer/o": '"outer inner o inner o2"',
        "inner/o": '"inner o"',
        "inner/o2": '"inner o2"',
    } == results


def test_a_key_must_be_there(world: World) -> None:
    """Nothing ran."""
    calls = []

    @world.guard().idempotent(lock_token="order.orderId")
    def charge(order: dict[str, Any]) -> None:
        calls.append(order)

    for nothing in ({}, {"orderId": None}, {"orderId": " "}, {"orderId": [None, {"id": " "}]}):
        with pytest.raises(MissingKey, match="nothing at"):
            charge(nothing)
    with pytest.raises(InvalidLockToken):
        charge({"orderId": "x" * 2048})
    assert [] == calls


@pytest.mark.parametrize(
    "options",
    [
        {"lock_token": "{tenant: order.tenant, id: order.orderid}"},
        {"payload": "[order.orderid, order.amuont]"},
        {"payload": "{id: order.orderid}"},
    ],
    ids=str,
)
def test_an_expression_that_finds_nulls_alone_finds_nothing(world: World, options: dict[str, str]) -> None:
    """Misspelt, it was one key for all orders: the second one got the first one's answer, and did not run."""
    calls = []

    @world.guard().idempotent(**options)
    def charge(order: Order, key: str = "k") -> None:
        calls.append(order)

    with pytest.raises(MissingKey, match="nothing at"):
        charge(Order("o-1", 1))
    assert [] == calls


@pytest.mark.parametrize(
    "options",
    [
        {"payload": "filters"},
        {"payload": "filters.city || filters"},
        {"payload": "[filters.city, filters.since]", "lock_token": "'all'"},
    ],
    ids=str,
)
def test_a_payload_whose_values_are_null_is_one(world: World, options: dict[str, str]) -> None:
    """It is there, or it is not what tells requests apart."""

    @world.guard().idempotent(**options)
    def find(filters: dict[str, Any]) -> str:
        return "found"

    assert "found" == find({"city": None, "since": None}) == find({"city": None, "since": None})


def test_a_parameter_that_is_added_counts_unless_the_payload_names_the_others(world: World) -> None:
    """As the page says: a call from before a deployment is the same request after it by its payload."""
    runs: list[str] = []

    def before(order_id: str, amount: int) -> str:
        runs.append("before")
        return order_id

    def after(order_id: str, amount: int, dry_run: bool = False) -> str:
        runs.append("after")
        return order_id

    guard = world.guard()
    named = "{order_id: order_id, amount: amount}"
    for options in ({}, {"lock_token": "order_id"}):
        name = f"send-{len(options)}"
        assert "o-1" == guard.idempotent(name=name, **options)(before)("o-1", 5)
        assert "o-1" == guard.idempotent(name=name, payload=named, **options)(after)("o-1", 5)
    assert ["before", "before"] == runs
    assert "o-1" == guard.idempotent(name="send-0")(after)("o-1", 5)
    assert ["before", "before", "after"] == runs
    with pytest.raises(PayloadMismatch):
        guard.idempotent(name="send-1", lock_token="order_id")(after)("o-1", 5)


def test_what_two_sends_share_is_no_key(world: World) -> None:
    """Two orders of one amount were one request, on a stack that compares the amount only."""
    guard = Guard("locks", session=Session(world), rules=RequestRules("", payload_hash_path="amount"))

    def charge(order: Order) -> str:
        return order.orderId

    with pytest.raises(InvalidSetting, match="Give a lock_token"):
        guard.idempotent(payload="order")(charge)(Order("o-1", 5))
    for options in ({"payload": "order.orderId"}, {"lock_token": "order.orderId", "payload": "order"}):
        guarded = guard.idempotent(**options)(charge)
        assert ["o-1", "o-2", "o-1"] == [guarded(Order(order_id, 5)) for order_id in ("o-1", "o-2", "o-1")]


MESSAGE = {
    "messageId": "m-1",
    "receiptHandle": "first",
    "body": '{"orderId": "o-1"}',
    "eventSource": "aws:sqs",
}


FROM_BOTO3 = {"MessageId": "m-1", "ReceiptHandle": "first", "Body": "hi", "MD5OfBody": "0"}


@pytest.mark.parametrize(
    "event",
    [MESSAGE, {"Records": [MESSAGE]}, [MESSAGE], FROM_BOTO3, {"Messages": [FROM_BOTO3]}],
    ids=["message", "event", "batch", "boto3's", "boto3's answer"],
)
def test_a_whole_message_of_a_queue_is_no_payload(world: World, event: Any) -> None:
    """Each delivery has another receipt handle, so that the work ran again, or was another payload's."""

    def work(event: Any) -> str:
        return "done"

    whole = ({}, {"lock_token": "event"}, {"payload": "event"}, {"lock_token": "'k'", "payload": "[event]"})
    for options in whole:
        with pytest.raises(InvalidSetting, match="receiptHandle"):
            world.guard().idempotent(**options)(work)(event)
    for payload in (event, {"record": event}):
        with pytest.raises(InvalidSetting, match=r"receiptHandle.* begin\(f"):
            world.guard().begin(KEY, payload)
    world.guard(rules=RequestRules(key_prefix="", payload_hash_path="body")).begin(KEY, {"body": event})
    guarded = world.guard().idempotent(lock_token="event.messageId", payload="event.body")(work)
    assert "done" == guarded(MESSAGE) == guarded(MESSAGE | {"receiptHandle": "second"})
    assert "done" == world.guard().idempotent()(work)({"receiptHandle": "of a job", "body": None})


def test_a_function_without_arguments_is_one_request_and_warned_of(world: World) -> None:
    """The second order would never be charged. Who means that gives a name or a lock token."""

    class Command:
        def execute(self) -> str:
            return "done"

        def with_order(self, order: str) -> str:
            return order

    guard = world.guard()
    for work in (Command.execute, _nightly):
        with pytest.warns(RuntimeWarning, match="all its calls are one request") as warned:
            guard.idempotent()(work)
        assert [__file__] == [one.filename for one in warned]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "done" == guard.idempotent(name="_nightly")(_nightly)()
        assert "done" == guard.idempotent(lock_token="'nightly'")(_nightly)()
        guard.idempotent()(Command.with_order)


def _nightly() -> str:
    return "done"


def test_two_functions_in_one_wrapper_are_two_functions(world: World) -> None:
    """The wrapper has its own name, without functools.wraps."""

    def logged(function: Callable[[str], str]) -> Callable[[str], str]:
        def wrapper(order: str) -> str:
            return function(order)

        return wrapper

    def charge(order: str) -> str:
        return f"charged {order}"

    def refund(order: str) -> str:
        return f"refunded {order}"

    guard = world.guard()
    assert "charged o-1" == guard.idempotent()(logged(charge))("o-1")
    assert "charged o-1" == guard.idempotent()(logged(charge))("o-1")
    with pytest.warns(RuntimeWarning, match=r"charge, the other around .*refund") as warned:
        guard.idempotent()(logged(refund))
    assert [__file__] == [one.filename for one in warned]
    assert "refunded o-1" == guard.idempotent(name="refund")(logged(refund))("o-1")


@dataclass
class Shipped:
    """What is on its way."""

    orderId: str
    amount: int


def test_two_functions_of_one_name_in_one_module_are_warned_of(world: World) -> None:
    """The second one's caller gets the first one's answer."""
    guard = world.guard()

    @functools.singledispatch
    def handle(order: object) -> str:
        raise NotImplementedError

    @handle.register
    @guard.idempotent(lock_token="order.orderId")
    def _(order: Order) -> str:
        return "charged"

    with pytest.warns(RuntimeWarning, match=rf"called .*_, .* both are in {__name__}\. ") as warned:

        @handle.register
        @guard.idempotent(lock_token="order.orderId")
        def _(order: Shipped) -> str:
            return "invoiced"

    assert [__file__] == [one.filename for one in warned]
    assert "charged" == handle(Order("o-1", 5)) == handle(Shipped("o-1", 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @handle.register
        @guard.idempotent(lock_token="order.orderId", name="shipped")
        def _(order: Shipped) -> str:
            return "invoiced"

    assert "invoiced" == handle(Shipped("o-1", 5))


def test_one_function_that_is_made_again_is_not_warned_of(world: World, tmp_path: Path) -> None:
    """By a call, by a reload, or in a decorator that says what it wraps."""
    guard = world.guard()
    module = tmp_path / "work.py"
    module.write_text("def work(order):\n    return order\n")

    def decorate() -> None:
        @guard.idempotent()
        def local(order: str) -> str:
            return order

        assert "o-1" == local("o-1")
        reloaded = runpy.run_path(str(module))["work"]
        guard.idempotent()(reloaded)
        guard.idempotent()(functools.wraps(reloaded)(lambda order: reloaded(order)))
        guard.idempotent()(Shipped)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decorate()
        decorate()


def test_an_edited_function_that_is_loaded_again_is_not_warned_of(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one below it, which has moved by a line. A notebook's cell is another file after an edit."""
    guard = world.guard()
    file = tmp_path / "edited_work.py"
    file.write_text("def work(order):\n    return order\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.import_module("edited_work")
    cells = [tmp_path / "cell-1.py", tmp_path / "cell-2.py"]
    cells[0].write_text("def work(order):\n    return order\n")
    cells[1].write_text("# a comment\ndef work(order):\n    return 2 * order\n")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guard.idempotent()(module.work)
        file.write_text("# a comment\ndef work(order):\n    return order\n")
        guard.idempotent()(importlib.reload(module).work)
        in_notebook = world.guard()
        for cell in cells:
            in_notebook.idempotent()(runpy.run_path(str(cell), run_name="notebook")["work"])


def test_a_hook_makes_no_other_function(world: World) -> None:
    """Nor does a decorator that says what it wraps. The function and its key are the same."""
    guard = world.guard()

    def made(notify: Callable[[str], str] | None) -> Any:
        @guard.idempotent(lock_token="order")
        def run(order: str) -> str:
            return (notify or str)(order)

        return run

    def work(order: str) -> str:
        return order

    @functools.wraps(work)
    def retried(order: str) -> str:
        return work(order)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "o-1" == made(None)("o-1") == made(lambda _order: "told")("o-1")
        assert "o-2" == guard.idempotent()(work)("o-2") == guard.idempotent()(retried)("o-2")


def test_a_function_that_calls_itself_is_guarded(world: World) -> None:
    """It is in its own closure."""

    @world.guard().idempotent()
    def countdown(number: int) -> int:
        return countdown(number - 1) if number else 0

    assert 0 == countdown(3)


def test_an_argument_called_cls_counts(world: World) -> None:
    """Of a function that is no method."""

    @world.guard().idempotent()
    def book(cls: str, seat: int) -> str:
        return cls

    assert ["first", "second"] == [book("first", 1), book("second", 1)]


@dataclass
class Course:
    """What a function calls `cls`."""

    name: str


def enrol(cls: Course, student: str) -> str:
    """Is no method."""
    return f"{student}: {cls.name}"


def test_an_object_called_cls_counts(world: World) -> None:
    """Of a function of a module."""
    guarded = world.guard().idempotent()(enrol)
    assert ["ann: maths", "ann: latin"] == [guarded(Course("maths"), "ann"), guarded(Course("latin"), "ann")]


class Task:
    """A framework's own, which it binds to a function of a module."""


def charge_as_a_task(self: Task, order: str) -> str:
    """Becomes a method."""
    return order


def test_a_task_that_a_framework_binds_is_left_out(world: World) -> None:
    """JSON has no form for it."""
    assert "o-1" == world.guard().idempotent(lock_token="order")(charge_as_a_task)(Task(), "o-1")


def test_an_object_that_is_a_dict_is_left_out_as_well(world: World) -> None:
    """What a method changes in it makes no other request."""

    class Basket(dict[str, int]):
        @world.guard().idempotent(name="add")
        def add(self, item: str) -> int:
            self[item] = len(self) + 1
            return len(self)

    basket = Basket()
    assert [1, 1, 2] == [basket.add("a"), basket.add("a"), basket.add("b")]


def test_a_part_of_a_message_may_be_what_two_deliveries_share(world: World) -> None:
    """The stack leaves the receipt handle out."""
    guard = Guard("locks", session=Session(world), rules=RequestRules("", payload_hash_path="record.body"))

    @guard.idempotent(lock_token="record.messageId")
    def work(record: dict[str, Any]) -> str:
        return str(record["receiptHandle"])

    assert "first" == work(MESSAGE) == work(MESSAGE | {"receiptHandle": "second"})


def test_a_method_that_its_class_got_later_leaves_out_its_object(world: World) -> None:
    """Its name does not say that it is one."""

    @dataclass
    class Mailer:
        sent: int = 0

    def send(self: Any, text: str) -> str:
        self.sent += 1
        return text

    kind: Any = Mailer
    kind.send = world.guard().idempotent()(send)
    mailer = kind()
    assert ["hi", "hi", 1] == [mailer.send("hi"), mailer.send("hi"), mailer.sent]


def test_what_json_cannot_carry_is_no_payload(world: World) -> None:
    """Unless the payload's expression leaves it out."""
    guard = world.guard()

    def work(key: str, client: Any) -> str:
        return key

    with pytest.raises(InvalidPayload):
        guard.idempotent(lock_token="key")(work)("o-1", object())
    assert "o-1" == guard.idempotent(lock_token="key", payload="key")(work)("o-1", object())


def test_without_a_key_the_payload_is_the_key(world: World) -> None:
    """Its hash."""
    calls = []

    @world.guard().idempotent()
    def charge(order: Order) -> None:
        calls.append(order)

    for amount in (1, 2, 1):
        charge(Order("o-1", amount))
    assert [1, 2] == [order.amount for order in calls]


def test_a_generator_has_no_result_to_keep(world: World) -> None:
    """It is refused where it is decorated."""
    with pytest.raises(TypeError, match="yields"):

        @world.guard().idempotent(lock_token="key")
        def stream(key: str) -> Iterator[str]:
            yield key


async def _charge_later(key: str) -> dict[str, Any]:
    return DONE


def _each(key: str) -> Iterator[str]:
    yield key


async def _each_later(key: str) -> AsyncIterator[str]:
    yield key


@pytest.mark.parametrize("work", [_charge_later, _each, _each_later])
@covering.first(1, "options", [{}, {"serialize": str}, {"releases": (Exception,)}])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_work_that_returns_a_coroutine_is_not_done(
    world: World, work: Callable[[str], Any], options: dict[str, Any], is_async: bool
) -> None:
    """The record said that it was done, or had a text as its result. The wrapper may have had an effect."""

    def wrapper(key: str) -> Any:
        return work(key)

    async def async_wrapper(key: str) -> Any:
        return work(key)

    guard = world.guard(when_outcome_unknown="take-over", **options)
    decorate = guard.idempotent(name="", lock_token="key")
    charge = decorate(async_wrapper if is_async else wrapper)
    with pytest.raises(Unsettled, match="and not its result"):
        asyncio.run(charge(KEY)) if is_async else charge(KEY)
    failure = world.lock().failure
    assert failure is not None
    assert (OUTCOME_UNKNOWN, False) == (failure.error, "is done" in str(failure.cause))
    with pytest.raises(RequestFailed, match="waits for a person"):
        charge(KEY) if not is_async else asyncio.run(charge(KEY))
    gc.collect()  # Python says here, and in no later test, that the coroutine was never awaited


class _Request:
    """As a client's that sends it where it is awaited."""

    def __await__(self) -> Generator[None, None, dict[str, Any]]:
        return _charge_later(KEY).__await__()


@pytest.mark.parametrize("lazy", [lambda: map(_charge_later, [KEY]), lambda: chain([KEY]), _Request])
def test_work_that_returns_what_is_lazy_is_not_done(world: World, lazy: Callable[[], Any]) -> None:
    """Nothing of it has run. The record asked a person to complete the lock."""

    @world.guard().idempotent(name="", lock_token="key")
    def charge(key: str) -> Any:
        return lazy()

    with pytest.raises(Unsettled, match="and not its result"):
        charge(KEY)


def test_an_iterator_of_work_that_is_done_is_not_lost(world: World) -> None:
    """As a database's cursor. The record cannot hold it."""

    @world.guard().idempotent(name="", lock_token="key")
    def insert(key: str) -> Any:
        return sqlite3.connect(":memory:").execute("SELECT 1")

    with pytest.raises(NotRecorded) as raised:
        insert(KEY)
    assert [(1,)] == list(raised.value.result)


def _charge_all(key: str) -> Any:
    return [_charge_later(key), _charge_later(key)]


def _charge_by_name(key: str) -> Any:
    return {key: _charge_later(key)}


def _charge_in_a_thread(key: str) -> Any:
    return Future()


@pytest.mark.parametrize("work", [_charge_all, _charge_by_name, _charge_in_a_thread])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_work_that_awaits_nothing_of_what_it_starts_is_not_done(
    world: World, work: Callable[[str], Any]
) -> None:
    """The record said that it was done, and told to complete it by hand."""
    with pytest.raises(Unsettled, match="and not its result"):
        world.guard().idempotent(name="", lock_token="key")(work)(KEY)
    failure = world.lock().failure
    assert failure is not None
    assert OUTCOME_UNKNOWN == failure.error
    gc.collect()  # Python says here, and in no later test, that the coroutine was never awaited


def test_a_result_beside_a_generator_is_not_lost(world: World) -> None:
    """No record can hold it, and the error has it."""
    result = [_each("o-1"), "ch-1"]
    with pytest.raises(NotRecorded, match="is done") as raised:
        complete(world.guard(), result=result)
    assert result is raised.value.result


def test_a_generator_that_serialize_runs_is_a_result(world: World) -> None:
    """As in a block, which needs no result for itself."""
    complete(world.guard(serialize=list), result=_each("o-1"))
    assert ["o-1"] == complete(world.guard())
    with pytest.raises(NotRecorded, match="is done"):
        complete(world.guard(serialize=list), "another", result=_each("x" * 262_145))


def test_an_async_generator_that_serialize_runs_is_a_result(world: World) -> None:
    """A loop of its own runs it."""

    async def listed(of: AsyncIterator[str]) -> list[str]:
        return [one async for one in of]

    complete(world.guard(serialize=lambda of: asyncio.run(listed(of))), result=_each_later("o-1"))
    assert ["o-1"] == complete(world.guard())


def test_the_guard_can_be_switched_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests: no call to the table, and the work runs each time."""
    monkeypatch.setenv("STEPONCE_DISABLED", "true")
    assert ["a", "b"] == [complete(world.guard(), result=result) for result in "ab"]
    with world.guard().begin(KEY, ORDER) as run:
        run.extend()
        run.check()
        run.complete(DONE)
    fail_with(world.guard(), ZeroDivisionError())
    assert [] == world.calls


def test_on_lambda_the_guard_cannot_be_switched_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It warns, and guards."""
    monkeypatch.setenv("STEPONCE_DISABLED", "true")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "charge")
    with pytest.warns(RuntimeWarning, match="STEPONCE_DISABLED"):
        complete(world.guard())
    assert COMPLETED == world.lock().status


def test_coroutines_are_guarded(world: World) -> None:
    """Many tasks on one loop, more than it has threads; one of them does the work."""
    guard, calls = world.guard(), []

    @guard.idempotent(lock_token="order.orderId", wait_seconds=PATIENCE_SECONDS)
    async def charge(order: Order) -> Charge:
        calls.append(order)
        await turn()
        return CHARGE

    async def race() -> list[Charge]:
        return await asyncio.gather(*(charge(Order("o-1", 1)) for _ in range(50)))

    assert [CHARGE] * 50 == asyncio.run(race())
    assert 1 == len(calls)
