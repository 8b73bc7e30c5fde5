"""
The open indexes' shards: at a thousand requests a second none of them is hot, whatever keys look like.

A partition of an index takes 1,000 writes a second. A request writes to the index twice, when it opens its
lock and when it closes it, to the same shard.
"""

import math
import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import count, islice

import pytest

from steponce.request.envelope import Envelope
from steponce.request.names import OPEN_SHARDS, shard_of
from steponce.request.settings import RequestRules
from tests.rules.documents import template

REQUESTS_PER_SECOND = 1_000
WRITES_OF_A_REQUEST = 2
PARTITION_WRITES_PER_SECOND = 1_000

Hash = Callable[[str, int], str]

_random = random.Random(1)

KEYS: dict[str, Callable[[], Iterable[str]]] = {
    "numbers": lambda: (f"shop-run-once/order-{number}" for number in count(1_000_000)),
    "round numbers": lambda: (f"shop-run-once/order-{number}00" for number in count(1)),
    "ids": lambda: (f"shop-run-once/{uuid.UUID(int=_random.getrandbits(128))}" for _ in count()),
    "times": lambda: (f"billing/2026-01-{n % 28 + 1:02}T{n % 24:02}:00:00Z/{n % 997}/{n}" for n in count()),
    "few tenants": lambda: (f"{'acme' if n % 10 else 'tiny'}/charge/o-{n}" for n in count()),
    "steps": lambda: (f"as_{_random.getrandbits(160):040x}" for _ in count()),
}


def shards_of_the_template() -> int:
    """The default of its parameter."""
    return int(template()["Parameters"]["OpenShards"]["Default"])


def loads(keys: Iterable[str], shards: int, of: Hash = shard_of, number: int = 20_000) -> list[int]:
    """How many of the keys each shard gets."""
    counted = Counter(of(key, shards) for key in islice(keys, number))
    return [counted[str(shard)] for shard in range(shards)]


def is_even(load: list[int]) -> bool:
    """Pearson's chi-square at one in a thousand; the quantile by Wilson and Hilferty."""
    mean, freedom = sum(load) / len(load), len(load) - 1
    chi_square = sum((one - mean) ** 2 / mean for one in load)
    width = 2 / (9 * freedom)
    return chi_square < freedom * (1 - width + 3.09 * math.sqrt(width)) ** 3


def busiest_second(keys: Iterable[str], shards: int, of: Hash = shard_of, seconds: int = 20) -> int:
    """Writes to the busiest shard in the worst of so many seconds."""
    keys = iter(keys)
    return max(
        WRITES_OF_A_REQUEST * max(loads(keys, shards, of, REQUESTS_PER_SECOND)) for _ in range(seconds)
    )


EVERY_KIND = pytest.mark.parametrize("kind", KEYS)


@EVERY_KIND
@pytest.mark.parametrize("shards", [2, 7, 10, 100])
def test_keys_spread_evenly(kind: str, shards: int) -> None:
    """Over any number of shards."""
    load = loads(KEYS[kind](), shards)
    assert is_even(load)
    assert max(load) / (sum(load) / shards) < 1.3


@EVERY_KIND
def test_no_partition_is_hot(kind: str) -> None:
    """With the template's default, at a thousand requests a second, and with room to spare."""
    assert busiest_second(KEYS[kind](), shards_of_the_template()) < PARTITION_WRITES_PER_SECOND / 2


@pytest.mark.parametrize(
    "bad",
    [
        lambda _key, _shards: "0",
        lambda key, shards: str(len(key) % shards),
        lambda key, shards: str(sum(key.encode()) % shards // 2),
        lambda key, shards: str(ord(key[-1]) % shards),
    ],
    ids=["constant", "length", "half-of-the-shards", "last-letter"],
)
def test_a_bad_hash_is_found_out(bad: Hash) -> None:
    """By both measures, for some kind of keys."""
    shards = shards_of_the_template()
    assert not all(is_even(loads(keys(), shards, bad)) for keys in KEYS.values())


def test_one_shard_is_hot() -> None:
    """The measure can fail: without shards the index would not take it."""
    assert busiest_second(KEYS["ids"](), 1) >= PARTITION_WRITES_PER_SECOND


def test_the_package_and_the_template_have_the_same_default() -> None:
    """A client that was told nothing writes where the monitor reads."""
    assert shards_of_the_template() == OPEN_SHARDS == RequestRules(key_prefix="shop").open_shards


def test_a_stack_s_shards_are_used() -> None:
    """The Outputs, and a function's environment, say how many there are."""
    settings = {"RetentionSeconds": "60", "KeyPrefix": "shop", "ExpectedSeconds": "60", "OpenShards": "1"}
    assert "0" == Envelope.make("order-1", {}, RequestRules.from_settings(settings)).shard
    del settings["OpenShards"]
    assert OPEN_SHARDS == RequestRules.from_settings(settings).open_shards


def test_more_shards_move_only_new_locks() -> None:
    """The shard is in the record; whoever reads all of the larger number misses none of the old ones."""
    old = {shard_of(key, 10) for key in islice(KEYS["ids"](), 1_000)}
    new = {shard_of(key, 16) for key in islice(KEYS["ids"](), 1_000)}
    assert old <= {str(shard) for shard in range(16)} == new
