"""One text for one value, and a refusal for what cannot be carried unchanged."""

import datetime
import json
import math
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steponce.errors import InvalidPayload, PayloadTooLarge
from steponce.request.canonical import MAX_DEPTH, MAX_SAFE_INTEGER, canonical_json, sha256

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
        ("payload", {10**5000: "a"}),
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
    """Also a list that holds itself; and one level less is taken, however deep the caller is."""
    endless: list[Any] = []
    endless.append(endless)
    deepest = nested(MAX_DEPTH)
    for value in (endless, [deepest], nested(100_000)):
        with pytest.raises(InvalidPayload, match=r"^payload is nested too deeply"):
            canonical_json(value)
    assert "[" * MAX_DEPTH + "]" * MAX_DEPTH == canonical_json(deepest)
    assert canonical_json(deepest) == called_from(200, lambda: canonical_json(deepest))


def called_from(depth: int, call: Any) -> Any:
    """What a call returns to somebody who is so many calls deep already."""
    return call() if depth == 0 else called_from(depth - 1, call)


def nested(levels: int) -> list[Any]:
    """Lists in each other."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_text_may_be_as_long_as_the_limit_and_not_a_byte_longer() -> None:
    """Bytes count, not characters."""
    value = {"é": ["é", 1, None]}
    text = canonical_json(value)
    size = len(text.encode())
    assert text == canonical_json(value, limit=size)
    with pytest.raises(PayloadTooLarge, match=f"^payload has {size} bytes; {size - 1} are allowed"):
        canonical_json(value, limit=size - 1)


@given(VALUES)
def test_no_limit_refuses_what_fits(value: Any) -> None:
    """What is counted on the way is never more than the text has."""
    text = canonical_json(value)
    assert text == canonical_json(value, limit=len(text.encode()))


def test_what_is_far_too_large_is_refused_before_its_end_is_seen() -> None:
    """The first thing that is wrong is its size."""
    with pytest.raises(PayloadTooLarge, match="more than the 1,000 bytes"):
        canonical_json({"a": ["x" * 1001, math.nan]}, limit=1000)
    with pytest.raises(PayloadTooLarge, match="more than the 1,000 bytes"):
        canonical_json([math.nan] * 501, limit=1000)


def test_a_place_is_cut_off_where_it_gets_long() -> None:
    """A key may be as long as a payload."""
    with pytest.raises(InvalidPayload) as caught:
        canonical_json({"k" * 100_000: [0, math.nan]})
    assert len(str(caught.value)) < 300


def test_a_refusal_does_not_repeat_the_value() -> None:
    """Errors end in logs; payloads must not."""
    with pytest.raises(InvalidPayload) as caught:
        canonical_json({"card": Decimal("4242424242")})
    assert "4242" not in str(caught.value)


def test_the_hash_is_sha256_of_utf8() -> None:
    """As `printf 'é' | sha256sum` has it."""
    assert "4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c" == sha256("é")


# -- The form is on record: what was hashed once must have the same hash for ever ---------------------
def first_form(value: Any, where: str = "payload") -> Any:
    """How canonical JSON was made at first, places and all."""
    if isinstance(value, dict):
        return {key: first_form(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [first_form(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidPayload(where) from None
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidPayload(where)
    elif isinstance(value, float) and value.is_integer():
        return first_form(int(value), where)
    elif isinstance(value, int) and abs(value) > MAX_SAFE_INTEGER:
        raise InvalidPayload(where)
    return value


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\ud800"),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@given(ANYTHING)
def test_the_form_is_the_first_form(value: Any) -> None:
    """The same bytes for what was taken, and a refusal at the same place for what was not."""
    place, first = first_text(value)
    if first is not None:
        assert first == canonical_json(value).encode()
        return
    with pytest.raises(InvalidPayload) as caught:
        canonical_json(value)
    assert str(caught.value).startswith(place[:200])


def first_text(value: Any) -> tuple[str, bytes | None]:
    """The text as it was made at first; or the place of what has none."""
    try:
        text = json.dumps(first_form(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except InvalidPayload as refused:
        return str(refused), None
    return "", text.encode()


def _without_minus_zero(value: Any) -> Any:
    """The value with 1.0 as 1 and -0.0 as 0, as JSON has one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _without_minus_zero(part) for key, part in value.items()}
    return [_without_minus_zero(part) for part in value] if isinstance(value, list) else value
