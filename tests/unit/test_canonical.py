"""One text for one value, and a refusal for what cannot be carried unchanged."""

import datetime
import json
import math
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steponce.canonical import MAX_SAFE_INTEGER, canonical_json, sha256
from steponce.errors import InvalidPayload

settings.register_profile("steady", deadline=None)  # a busy machine is no failure
settings.load_profile("steady")

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
    | TEXTS
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=10)


class Colour(StrEnum):
    """Text of a subclass."""

    RED = "red"


class Size(IntEnum):
    """A number of a subclass."""

    SMALL = 1


@given(VALUES)
def test_what_is_written_reads_as_the_same_value(value: Any) -> None:
    """Nothing is lost or added on the way."""
    assert value == json.loads(canonical_json(value))


@given(VALUES)
def test_writing_again_changes_nothing(value: Any) -> None:
    """The canonical text of what was read is the text itself."""
    text = canonical_json(value)
    assert text == canonical_json(json.loads(text))


@given(VALUES)
def test_spacing_and_escapes_of_the_sender_make_no_difference(value: Any) -> None:
    """However a value was sent, it has one text."""
    sent = json.dumps(value, indent=3, ensure_ascii=True)
    assert canonical_json(value) == canonical_json(json.loads(sent))


@given(st.dictionaries(TEXTS, SCALARS), st.randoms())
def test_key_order_makes_no_difference(value: dict[str, Any], random: Any) -> None:
    """Keys are sorted."""
    items = list(value.items())
    random.shuffle(items)
    assert canonical_json(value) == canonical_json(dict(items))


@given(VALUES, VALUES)
def test_different_values_have_different_texts(one: Any, other: Any) -> None:
    """Equal texts mean equal values, and no boolean is a number."""
    same = json.dumps(_without_minus_zero(one), sort_keys=True) == json.dumps(
        _without_minus_zero(other), sort_keys=True
    )
    assert same == (canonical_json(one) == canonical_json(other))


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ('{"a":1,"b":[true,null]}', {"b": (True, None), "a": 1.0}),
        ("1", 1.0),
        ("-1", -1.0),
        ("0", -0.0),
        ("0.1", 0.1),
        ("9007199254740991", MAX_SAFE_INTEGER),
        ("9007199254740991", float(MAX_SAFE_INTEGER)),
        ("-9007199254740991", -MAX_SAFE_INTEGER),
        ('"é😀"', "é😀"),
        ('"\\"\\\\\\n"', '"\\\n'),
        ('{"B":1,"a":2,"é":3}', {"é": 3, "a": 2, "B": 1}),
        ('{"":{}}', {"": {}}),
        ('["red",1]', [Colour.RED, Size.SMALL]),
        ('{"a":1}', MappingProxyType({"a": 1})),
    ],
)
def test_a_value_has_this_text(expected: str, value: Any) -> None:
    """The form, by example."""
    assert expected == canonical_json(value)


def test_text_is_not_normalised() -> None:
    """One code point and two that look the same are different values."""
    assert canonical_json("\u00e9") != canonical_json("e\u0301")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("payload.amount", {"amount": math.nan}),
        ("payload.amount", {"amount": math.inf}),
        ("payload.amount", {"amount": -math.inf}),
        ("payload.items[1]", {"items": [1, 2**53]}),
        ("payload.items[0].id", {"items": [{"id": -(2**53)}]}),
        ("payload.id", {"id": 10**5000}),
        ("payload.name", {"name": "\ud800"}),
        ("payload", {"\udfff": 1}),
        ("payload.in", {"in": {1: "a"}}),
        ("payload", {None: "a"}),
        ("payload.price", {"price": Decimal("1.10")}),
        ("payload.at", {"at": datetime.date(2026, 1, 31)}),
        ("payload.raw", {"raw": b"bytes"}),
        ("payload.tags", {"tags": {"a"}}),
    ],
)
def test_what_cannot_be_carried_is_refused_with_its_place(place: str, value: Any) -> None:
    """The message says where, so that somebody can mend it."""
    with pytest.raises(InvalidPayload) as caught:
        canonical_json(value)
    assert place == str(caught.value).partition(" ")[0]


@pytest.mark.parametrize("value", [1e16, -1e300, float(2**53)])
def test_a_whole_number_beyond_the_range_is_refused_as_a_float_too(value: float) -> None:
    """10000000000000000 and 1e16 are one number in JSON."""
    with pytest.raises(InvalidPayload):
        canonical_json(value)


def test_what_is_nested_too_deeply_is_refused() -> None:
    """Also a list that holds itself."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidPayload, match="nested too deeply"):
        canonical_json(endless)


def test_a_refusal_does_not_repeat_the_value() -> None:
    """Errors end in logs; payloads must not."""
    with pytest.raises(InvalidPayload) as caught:
        canonical_json({"card": Decimal("4242424242")})
    assert "4242" not in str(caught.value)


def test_the_hash_is_sha256_of_utf8() -> None:
    """As `printf 'é' | sha256sum` has it."""
    assert "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c" == sha256("é")


def _without_minus_zero(value: Any) -> Any:
    """The value with 1.0 as 1 and -0.0 as 0, as JSON has one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _without_minus_zero(part) for key, part in value.items()}
    return [_without_minus_zero(part) for part in value] if isinstance(value, list) else value
