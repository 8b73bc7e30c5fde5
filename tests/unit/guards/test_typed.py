"""Results come back from their JSON as their annotations say, however these are written."""

from __future__ import annotations

import collections
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntFlag
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    ParamSpec,
    TypedDict,
    TypeVar,
    TypeVarTuple,
)
from uuid import UUID, uuid4

import pytest
import typing_extensions
from pydantic import BaseModel, computed_field
from typing_extensions import TypeAliasType

from steponce.guards.plain import plain
from steponce.guards.typed import restore

T = TypeVar("T")
S = TypeVar("S")


@dataclass
class Charge:
    """A price has no form in JSON."""

    amount: Decimal


@dataclass
class Text:
    """It may go on."""

    next: Text | Image | None


@dataclass
class Image:
    """It may go on, too."""

    next: Text | Image | None
    width: int = 0


@dataclass
class Refund:
    """Another class with a price."""

    amount: Decimal
    why: str


@dataclass
class Page(Generic[T]):
    """What it holds, its annotation says."""

    items: list[T]
    next: T | None = None


@dataclass
class Pages(Page[T], Generic[S, T]):
    """Its parameters are in another order than its base's."""

    by: dict[str, S] | None = None


@dataclass
class Charges(Page[Charge]):
    """A base says what it holds."""


@dataclass
class Settled:
    """A field that does not change."""

    amount: Final[Decimal]


class Pair(NamedTuple, Generic[T]):
    """A named tuple of anything."""

    first: T
    second: T


class Box(TypedDict, Generic[T]):
    """A typed dictionary of anything."""

    of: T


class Crate(typing_extensions.TypedDict, Generic[T]):
    """What pydantic asks for before Python 3.12."""

    of: T
    weight: typing_extensions.NotRequired[Decimal]


P = ParamSpec("P")
Ts = TypeVarTuple("Ts")


@dataclass
class Both(Generic[P, T]):
    """Its parameters are left as they are."""

    of: Any
    call: Callable[P, T] | None = None


@dataclass
class Row(Generic[*Ts]):
    """Any number of parameters."""

    of: list[Any]


@dataclass
class Reason:
    """The names of a Refund, and another type."""

    amount: Decimal
    why: date


Priced = make_dataclass("Priced", [("amount", "in cents"), ("charge", Charge)])
OrderId = NewType("OrderId", UUID)
Money = NewType("Money", Decimal)
Amount = NewType("Amount", float)


@dataclass
class Ordered:
    """A field of a type with a name of its own."""

    id: OrderId


class Rate(Enum):
    """A value that JSON has no form for."""

    LOW = Decimal("0.1")
    HIGH = Decimal("0.2")


class Day(Enum):
    """A value that is a tuple, and one that is a day."""

    PAIR = (1, 2)
    NEW_YEAR = date(2026, 1, 1)


class Level(Enum):
    """An unknown value has a default."""

    LOW = Decimal("0.1")
    UNKNOWN = Decimal("0")

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.UNKNOWN


class Tariff(Enum):
    """An unknown value is looked up elsewhere."""

    LOW = Decimal("0.1")

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return {}[value]


class May(IntFlag):
    """Members that can be joined."""

    READ = 4
    WRITE = 2


class Cat(BaseModel):
    """What is computed tells it from the other class."""

    name: str

    @computed_field
    def kind(self) -> str:
        """Computed."""
        return "cat"


class Dog(BaseModel):
    """The other class."""

    name: str

    @computed_field
    def kind(self) -> str:
        """Computed."""
        return "dog"


@dataclass
class Named(Page[Charge], Generic[T]):
    """Its own parameter has the name of its base's."""

    name: T | None = None


def _without_arguments(name: str) -> Any:
    """An old name of a collection, which has an origin and no arguments."""
    return getattr(typing, name)


ONE, TWO = Charge(Decimal("1.50")), Charge(Decimal("2"))
Answer = TypeAliasType("Answer", Charge | None)
Many = TypeAliasType("Many", list[T], type_params=(T,))
Swapped = TypeAliasType("Swapped", dict[str, tuple[S, T]], type_params=(T, S))

RETURNED: list[tuple[Any, Any]] = [
    (Answer, ONE),
    (Answer, None),
    (list[Answer], [ONE, None]),
    (Answer | Refund, Refund(Decimal("1"), "late")),
    (Many[Charge], [ONE]),
    (Swapped[Charge, Money], {"a": (Money(Decimal("3")), ONE)}),
    (OrderId, OrderId(UUID(int=1))),
    (Money, Money(Decimal("1.5"))),
    (Ordered, Ordered(OrderId(UUID(int=1)))),
    (Priced, Priced(150, ONE)),
    (Settled, Settled(Decimal("1.5"))),
    (Annotated[Charge, "paid"], ONE),
    (Page[Charge], Page([ONE], TWO)),
    (Page[Charge] | Page[str], Page(["a"])),
    (Pages[Money, Charge], Pages([ONE], TWO, {"a": Money(Decimal("1"))})),
    (Charges, Charges([ONE], TWO)),
    (Pair[Charge], Pair(ONE, TWO)),
    (Box[Charge], {"of": ONE}),
    (Crate[Charge], {"of": ONE, "weight": Decimal("2")}),
    (Crate[Charge] | Refund, {"of": ONE}),
    (Crate | None, {"of": "a", "weight": Decimal("2")}),
    (Iterable[Charge], [ONE]),
    (Collection[Charge], [ONE]),
    (Sequence[Charge], [ONE]),
    (Sequence[str], "text"),
    (Iterable[str], {"a": 1}),
    (Mapping[str, Charge], {"a": ONE}),
    (collections.Counter[str], {"a": 1}),
    (list[Charge] | date, date(2026, 1, 1)),
    (Sequence[Charge] | date, date(2026, 1, 1)),
    (Sequence[Charge] | Rate, Rate.LOW),
    (Sequence[str] | date, "text"),
    (Iterable[Charge] | Charge, ONE),
    (list[Charge] | dict[str, Charge], {"a": ONE}),
    (_without_arguments("List"), [1]),
    (_without_arguments("Dict"), {"a": 1}),
    (_without_arguments("Tuple"), (1, "a")),
    (_without_arguments("Tuple") | None, (1, "a")),
    (Rate, Rate.HIGH),
    (Rate | None, Rate.LOW),
    (Day, Day.PAIR),
    (Day, Day.NEW_YEAR),
    (Level, Level.LOW),
    (Level, Level.UNKNOWN),
    (Tariff, Tariff.LOW),
    (May, May.READ | May.WRITE),
    (Cat | Dog, Dog(name="Rex")),
    (Page, Page(["a"], "b")),
    (Named[Money], Named([ONE], TWO, Money(Decimal("1")))),
    (Named, Named([ONE], TWO, "name")),
    (float | None, 250.0),
    (Amount | None, 250.0),
    (int | float, 250),
    (Any | None, "a"),
    (date, date(2026, 1, 1)),
    (date | datetime, datetime(2026, 1, 1, tzinfo=UTC)),
    (date | str, "2026-01-01T05:00:00"),
    (Both[[int], Charge], Both("text")),
    (Row[int, str], Row([1])),
]


@pytest.mark.parametrize(("kind", "value"), RETURNED, ids=[str(kind) for kind, _ in RETURNED])
def test_a_result_comes_back_as_it_was(kind: Any, value: Any):
    """Value and class."""
    found = restore(plain(value), kind)

    assert value == found
    assert type(value) is type(found)


def test_a_value_that_no_member_has_is_what_its_enum_makes_of_it():
    """The member of an old record may be gone."""
    assert Level.UNKNOWN is restore("0.3", Level)
    with pytest.raises(KeyError):
        restore("0.3", Tariff)


class Alias:
    """A `type` alias of Python 3.12, which resolves its definition when that is needed."""

    def __init__(self, definition: Callable[[Any], Any]) -> None:
        self._definition = definition

    @property
    def __value__(self) -> Any:
        return self._definition(self)


Alias.__name__ = "TypeAliasType"


def _not_imported(_alias: Any) -> Any:
    raise NameError("Charge")


@pytest.mark.parametrize("definition", [_not_imported, lambda _: {}["charge"], lambda alias: alias])
def test_an_alias_that_cannot_be_resolved_changes_nothing(definition: Callable[[Any], Any]):
    """As `type Answer = Charge`, where Charge is imported for type checkers only."""
    assert {"a": 1} == restore({"a": 1}, Alias(definition))


@pytest.mark.parametrize("value", [[["a"], "b"], "text", 7, None])
def test_an_alias_may_hold_itself(value: Any):
    """`type Json = list[Json] | tuple[Json, ...] | str | int | None`, and one that is its own choice."""
    json = Alias(lambda alias: list[alias] | tuple[alias, ...] | str | int | None)
    assert value == restore(value, json)
    assert value == restore(value, Alias(lambda alias: list[Any] | alias | str | int | None))


@pytest.mark.parametrize(
    ("kind", "value"), [(list[Charge], {"a": 1}), (Page[Charge], {"items": ["no charge"]})]
)
def test_what_does_not_fit_is_refused(kind: Any, value: Any):
    """A replay gives no other class than the first call."""
    with pytest.raises((TypeError, AttributeError)):
        restore(value, kind)


def test_a_long_chain_of_two_classes_comes_back_soon():
    """Each class was tried at each level, so 20 levels took longer than a Lambda may run."""
    chain = None
    for _ in range(30):
        chain = Text(Image(chain))

    assert chain == restore(plain(chain), Text | Image)


def test_a_result_of_a_subclass_with_the_names_of_another_class_comes_back():
    """What the other class does not take goes to the annotated one, without the fields of the subclass."""
    assert ONE == restore({"amount": "1.50", "why": "late"}, Charge | Reason)


@dataclass
class Add:
    """Its last field tells it apart."""

    left: Add | Multiply | int
    op: Literal["add"] = "add"


@dataclass
class Multiply:
    """So does its."""

    left: Add | Multiply | int
    op: Literal["multiply"] = "multiply"


@dataclass
class Yes:
    """Its field may be null, too."""

    next: Yes | No | None
    sure: Literal[True] | None = True


@dataclass
class No:
    """1 is not True in JSON."""

    next: Yes | No | None
    sure: Literal[1] | None = 1


class Left(TypedDict):
    """Its names tell it apart."""

    inner: Left | Right | None
    left: int


class Right(TypedDict):
    """So do its."""

    inner: Left | Right | None
    right: int


class Up(NamedTuple):
    """As `Add`."""

    inner: Up | Down | None
    way: Literal["up"] = "up"


class Down(NamedTuple):
    """As `Multiply`."""

    inner: Up | Down | None
    way: Literal["down"] = "down"


@pytest.mark.parametrize(
    ("kind", "grow", "value"),
    [
        (Add | Multiply, (Add, Multiply), 1),
        (
            Left | Right,
            (lambda inner: {"inner": inner, "left": 1}, lambda inner: {"inner": inner, "right": 1}),
            None,
        ),
        (Up | Down, (Up, Down), None),
        (Yes | No, (Yes, No), None),
    ],
    ids=["Literal", "TypedDict", "NamedTuple", "optional Literal"],
)
def test_each_level_of_what_is_told_apart_is_restored_once(kind: Any, grow: Any, value: Any):
    """Twice as often with each level, forty levels never end."""
    for level in range(40):
        value = grow[level % 2](value)
    assert value == restore(plain(value), kind)


class Accepted(TypedDict):
    """Its note may be missing."""

    id: str
    note: NotRequired[str]


@dataclass
class Declined:
    """It has the other name alone."""

    id: str


def test_a_typed_dict_without_an_optional_name_is_not_another_class():
    """Nothing tells which of the two it was."""
    with pytest.raises(TypeError):
        restore({"id": "1"}, Accepted | Declined)
    assert {"id": "1", "note": "n"} == restore({"id": "1", "note": "n"}, Accepted | Declined)


class Name(NamedTuple):
    """A text is a sequence, too."""

    next: Name | Nickname | None


class Nickname(NamedTuple):
    """So each of the two took it."""

    next: Name | Nickname | None


class Point(NamedTuple):
    """A dict has keys, which are a sequence."""

    x: str


@pytest.mark.parametrize(("value", "kind"), [("a", Name | Nickname), ({"x": "1"}, Point)])
def test_only_a_list_is_a_tuple(value: Any, kind: Any):
    """Each character of a text was one, without an end."""
    with pytest.raises(TypeError):
        restore(value, kind)


@pytest.mark.parametrize(("stored", "kind", "value"), [(1, Literal[True], True), (1, Literal[True, 1], 1)])
def test_a_literal_is_the_nearest_value(stored: Any, kind: Any, value: Any):
    """A database has 1 for True."""
    found = restore(stored, kind)
    assert (value, type(value)) == (found, type(found))


class OfferIsOver(Exception):
    """What a class says of a value that it does not take any more."""


@dataclass
class Offer:
    """An offer, which cannot be made once it is over."""

    price: int

    def __post_init__(self) -> None:
        """Look whether it is over."""
        if self.price < 0:
            raise OfferIsOver


@dataclass
class Debt:
    """What takes any price."""

    price: int


def test_what_a_class_says_of_a_value_is_no_error_of_the_work() -> None:
    """The value is not of its type. Another class of a union is tried."""
    with pytest.raises(ValueError, match="OfferIsOver"):
        restore({"price": -1}, Offer)
    assert Debt(-1) == restore({"price": -1}, Offer | Debt)


@pytest.mark.parametrize(
    ("kind", "result", "restored"),
    [
        (int, Decimal(500), 500),
        (float, Decimal("19.99"), 19.99),
        (int | None, Decimal("1E+3"), 1000),
        (dict[str, float], {"price": Decimal("0.1")}, {"price": 0.1}),
        (int | float, Decimal(20), 20),
        (int | float, Decimal("19.99"), 19.99),
        (int | float | str, "20", "20"),
        (int | str, "5", "5"),
        (float | Decimal, Decimal("0.1"), Decimal("0.1")),
        (int, Decimal("1.5"), "1.5"),
        (int, "007", "007"),
        (float, Decimal("Infinity"), "Infinity"),
        (int, Decimal("1E+126"), "1E+126"),
    ],
)
def test_a_number_that_dynamodb_s_resource_has_read_has_the_annotated_type(
    kind: Any, result: Any, restored: Any
):
    """All of its numbers are Decimals, whose JSON is text. Text that is no such number stays text."""
    found = restore(plain(result), kind)
    assert (restored, type(restored)) == (found, type(found))


@dataclass(frozen=True)
class Order:
    """It makes its id and its list itself."""

    amount: int
    id: str = field(init=False, default_factory=lambda: uuid4().hex)
    failed: list[UUID] = field(init=False, default_factory=list)
    url: str = field(init=False)
    state: str = field(init=False, default="new")

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", f"/orders/{self.id}")


def test_what_a_class_makes_anew_each_time_comes_from_the_record():
    """Else each caller would have another id, and none would have the one that the work has used."""
    made = Order(5)
    made.failed.append(UUID(int=7))

    assert made == restore(plain(made), Order)
