"""What pydantic models are as arguments and results of a guarded function."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import (
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    RootModel,
    SecretStr,
    SerializeAsAny,
    computed_field,
    field_serializer,
    model_serializer,
)

from steponce.errors import InvalidPayload
from steponce.guards import models
from tests.unit.guards.world import NOW, World


class Colour(Enum):
    """Stored by its value."""

    RED = "red"


@dataclass
class Point:
    """A dataclass of a model."""

    x: int
    of: Decimal


class Names(RootModel[dict[str, list[int]]]):
    """A model that is one value."""


class Wide(BaseModel):
    """All that a model usually has."""

    model_config = ConfigDict(extra="allow")

    at: datetime = NOW
    takes: timedelta = timedelta(hours=1)
    key: UUID = UUID(int=1)
    price: Decimal = Decimal("1.10")
    raw: bytes = b"abc"
    colours: tuple[Colour, ...] = (Colour.RED,)
    by_number: dict[int, Point] = Field(default={1: Point(1, Decimal(2))})
    names: Names = Names({"a": [1]})
    where: AnyUrl = AnyUrl("https://example.com/a")
    path: Path = Path("a")
    ratio: float = 1.0
    none: int | None = None
    anything: Any = None
    renamed: int = Field(default=1, alias="other")
    shown: Annotated[int, PlainSerializer(lambda value: f"{value} EUR")] = 5
    left_out: str = Field(default="x", exclude=True)

    @computed_field
    def twice(self) -> float:
        """Computed."""
        return self.ratio * 2


def test_the_json_of_a_model_is_its_own() -> None:
    """So a guard has the same payload as a client that sends this JSON to a workflow."""
    wide = Wide.model_validate({"more": {"at": "b"}, "anything": {"inner": [NOW]}})
    assert wide.model_dump(mode="json") == models.as_argument(wide)


def test_a_set_has_one_order_in_every_process() -> None:
    """Each has another seed for the hashes of text."""

    class Order(BaseModel):
        tags: set[str]
        more: dict[str, frozenset[str]]

    names = [f"{number:02}" for number in range(30)]
    order = Order(tags=set(names), more={"a": frozenset(names)})
    assert {"tags": names, "more": {"a": names}} == models.as_argument(order)


class Method(BaseModel):
    """How somebody pays."""

    kind: str


class Card(Method):
    """One way."""

    number: str


def test_what_only_a_subclass_has_counts_where_the_field_says_so(world: World) -> None:
    """Pydantic leaves it out of the JSON otherwise."""

    class Pay(BaseModel):
        method: SerializeAsAny[Method]

    @world.guard().idempotent(name="pay")
    def pay(payment: Pay) -> str:
        paid.append(payment)
        return str(len(paid))

    paid: list[Pay] = []
    ann, bob = (Pay(method=Card(kind="c", number=name)) for name in ("ann", "bob"))
    assert ["1", "2", "1"] == [pay(ann), pay(bob), pay(ann)]


def test_secrets_of_every_collection_count() -> None:
    """Also if the names in the JSON are aliases."""

    class Wallet(BaseModel):
        model_config = ConfigDict(serialize_by_alias=True)
        pins: set[SecretStr]
        more: deque[SecretStr]
        by: SecretStr = Field(serialization_alias="signedBy")

    wallet = Wallet(pins={SecretStr("b"), SecretStr("a")}, more=deque([SecretStr("d")]), by=SecretStr("c"))
    assert {"pins": ["a", "b"], "more": ["d"], "signedBy": "c"} == models.as_argument(wallet)


def test_a_serializer_of_ones_own_says_what_counts() -> None:
    """Of a field, or of the whole model; and a field that is excluded does not count."""

    class Masked(BaseModel):
        pin: str
        left_out: Any = Field(default=None, exclude=True)

        @field_serializer("pin")
        def mask(self, _pin: str) -> str:
            return "***"

    class Whole(BaseModel):
        amount: int

        @model_serializer
        def write(self) -> str:
            return f"{self.amount} EUR"

    assert {"pin": "***"} == models.as_argument(Masked(pin="1", left_out=object()))
    assert "5 EUR" == models.as_argument(Whole(amount=5))


def test_what_a_serializer_leaves_out_does_not_count() -> None:
    """Of a field, of a model, and of a secret that is another one in each delivery."""

    class Trace(BaseModel):
        id: str
        seen: str

    class Order(BaseModel):
        trace: Trace
        pin: SecretStr | None = Field(default=None, exclude_if=lambda pin: pin is None)
        token: SecretStr

        @field_serializer("trace")
        def short(self, trace: Trace) -> dict[str, str]:
            return {"id": trace.id}

        @field_serializer("token")
        def none(self, _token: SecretStr) -> str:
            return "-"

    class Short(Trace):
        @model_serializer(mode="wrap")
        def short(self, handler: Any) -> Any:
            return {key: value for key, value in handler(self).items() if key != "seen"}

    order = Order(trace=Trace(id="a", seen="now"), pin=SecretStr("1"), token=SecretStr("x"))
    assert {"trace": {"id": "a"}, "pin": "1", "token": "-"} == models.as_argument(order)
    assert {"id": "a"} == models.as_argument(Short(id="a", seen="now"))


def test_an_iterator_is_no_payload(world: World) -> None:
    """The work would find it empty."""

    class Rows(BaseModel):
        items: Iterable[int]

    @world.guard().idempotent(name="total")
    def total(rows: Rows) -> int:
        return sum(rows.items)

    with pytest.raises(InvalidPayload, match="Give it a list"):
        total(Rows(items=[1, 2, 3]))


def test_no_warning_quotes_a_value(recwarn: pytest.WarningsRecorder) -> None:
    """It would be in Lambda's log."""
    card = Card.model_construct(kind=5, number=4111)
    assert models.as_argument(card) == models.as_result(card) == {"kind": 5, "number": 4111}
    assert [] == list(recwarn)


def test_an_override_is_dumped_as_its_author_says() -> None:
    """It need not take other options than those that it was always called with."""

    class Own(BaseModel):
        name: str
        token: SecretStr

        def model_dump(self, **options: Any) -> Any:
            return super().model_dump(by_alias=True, warnings=True, **options)

    own = Own(name="a", token=SecretStr("t"))
    assert {"name": "a", "token": "t"} == models.as_argument(own)
    assert models.as_result(own) == models.as_kept(own) == {"name": "a", "token": "**********"}


@pytest.mark.parametrize(
    "config",
    [
        ConfigDict(extra="forbid"),
        ConfigDict(extra="allow"),
        ConfigDict(extra="ignore"),
        ConfigDict(serialize_by_alias=True),
    ],
    ids=["forbid", "allow", "ignore", "alias"],
)
def test_a_result_comes_back_as_it_was(world: World, config: ConfigDict) -> None:
    """With a computed field, and a field that has another name in JSON."""

    class Charge(BaseModel):
        model_config = config
        amount: int = Field(default=0, serialization_alias="sum")

        @computed_field
        def twice(self) -> int:
            return self.amount * 2

    def charge(order: str) -> Any:
        return [Charge(amount=5)]

    charge.__annotations__["return"] = list[Charge]
    guarded = world.guard().idempotent(name="charge", lock_token="order")(charge)
    assert [Charge(amount=5)] == guarded("o-1") == guarded("o-1")


def test_a_result_without_a_model_to_restore_keeps_its_json(world: World) -> None:
    """Its readers know it so."""

    class Charge(BaseModel):
        model_config = ConfigDict(extra="forbid", serialize_by_alias=True)
        amount: int = Field(serialization_alias="sum")

        @computed_field
        def twice(self) -> int:
            return self.amount * 2

    @world.guard().idempotent(name="charge", lock_token="order")
    def charge(order: str) -> Any:
        return Charge(amount=5)

    assert {"sum": 5, "twice": 10} == charge("o-1") == charge("o-1")


def test_a_serializer_that_counts_on_the_aliases_is_recorded(world: World) -> None:
    """Its work is done."""

    class Charge(BaseModel):
        model_config = ConfigDict(serialize_by_alias=True)
        amount: int = Field(serialization_alias="sum")

        @model_serializer(mode="wrap")
        def doubled(self, handler: Any) -> Any:
            return {"sum": handler(self)["sum"] * 2}

    @world.guard().idempotent(name="charge", lock_token="order")
    def charge(order: str) -> Any:
        return Charge(amount=5)

    assert {"sum": 10} == charge("o-1") == charge("o-1")
