"""What the paths of one definition cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal

from steponce.cost.definition import Machine
from steponce.cost.errors import CannotPrice
from steponce.cost.path import Path, by_outcome, each
from steponce.cost.paths import Walker, own_usage
from steponce.cost.prices import DATE, SOURCES, Prices
from steponce.cost.usage import Usage
from steponce.errors import shown
from steponce.lint.asl import states
from steponce.lint.definitions import refusals_before_substitution

LIMIT = 100
"""How many paths are listed."""


_RANGES = {
    "requests": (1, 10**12),
    "items": (0, 100_000_000),
    "item_kb": (0, 400),
    "lambda_ms": (1, 900_000),
    "lambda_mb": (128, 10_240),
}
"""The least and the most of each assumption. These are AWS's limits; AWS has none for requests."""

_LONG = Context(prec=100)
"""For the items of items of Maps."""


@dataclass(frozen=True)
class Assumptions:
    """
    What a definition does not say.

    Attributes:
        requests: How many executions there are.
        items: How many items each Map gets.
        item_kb: The size of each item of DynamoDB in KB.
        lambda_ms: How long each invocation of a function lasts, in milliseconds.
        lambda_mb: The memory of each function, in MB.
    """

    requests: int = 1_000_000
    items: int = 1
    item_kb: float = 1.0
    lambda_ms: int = 100
    lambda_mb: int = 128

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            if not least <= (given := getattr(self, name)) <= most:
                raise CannotPrice(f"{name} must be from {least:,} to {most:,}, and is {shown(given)}.")


@dataclass(frozen=True)
class PricedPath:
    """
    One path, or several that end in one state and use the same, with the price of all requests.

    Attributes:
        end: The state that ends it.
        fails: Whether this is a Fail.
        states: The states in the order in which they are entered, of several paths those of one.
        paths: How many paths this is; at least, if the estimate has left some out.
        usage: What one request uses.
        dollars: The price of all requests, without what is in the usage's `not_priced`.
    """

    end: str
    fails: bool
    states: tuple[str, ...]
    paths: int
    usage: Usage
    dollars: Decimal


@dataclass(frozen=True)
class Estimate:
    """
    The paths of a definition and their prices.

    Attributes:
        cheapest: The cheapest path.
        dearest: The dearest path.
        listed: The paths by price; see `merged`.
        paths: How many paths there are.
        merged: Paths that end in one state and use the same are listed as one.
        left_out: There were still too many, and only the cheapest and the dearest of each ending are listed.
        complete: Everything on these paths has a price.
        not_priced: State and call of everything in the definition that has no price here.
        prices_of: The day on which the prices were looked up.
        sources: The pages that list them.
    """

    cheapest: PricedPath
    dearest: PricedPath
    listed: tuple[PricedPath, ...]
    paths: int
    merged: bool
    left_out: bool
    complete: bool
    not_priced: tuple[tuple[str, str], ...]
    prices_of: str = DATE
    sources: tuple[str, ...] = SOURCES


def estimate(
    definition: Machine,
    *,
    region: str = "us-east-1",
    assumptions: Assumptions | None = None,
    through: Iterable[str] = (),
    limit: int = LIMIT,
) -> Estimate:
    """
    Price every path through a definition of a Standard workflow.

    Args:
        definition: In Amazon States Language, as an object.
        region: One of REGIONS.
        assumptions: What the definition does not say.
        through: Only paths through all of these states.
        limit: How many paths are listed one by one. If there are more, see `merged` and `left_out`.

    Raises:
        CannotPrice: AWS would refuse the definition, the region or a state of `through` is unknown, or no
            path goes through these states.
    """
    _expect_well_formed(definition)
    assumed = assumptions or Assumptions()
    prices = Prices(region, assumed.lambda_ms, assumed.lambda_mb)
    wanted = frozenset(through)
    if unknown := sorted(wanted - {name for name, _ in states(definition)}):
        raise CannotPrice(f"The definition has no state {', '.join(unknown)}.")
    walker = Walker(assumed.item_kb, assumed.items, prices.dollars, wanted)

    def found(walker: Walker) -> list[Path]:
        return [path for path in walker.paths(definition) if path.through == wanted]

    outcomes = found(replace(walker, alike=by_outcome))
    count = sum(path.count for path in outcomes)
    if not count:
        raise CannotPrice(f"No path goes through {' and '.join(sorted(wanted))}.")
    merged = count > limit
    paths = found(walker if merged else replace(walker, alike=each))
    priced = _priced(paths, prices, assumed.requests)
    all_kept = sum(path.paths for path in priced) == count
    listed = priced if all_kept and len(priced) <= limit else _extremes(priced)
    return Estimate(
        priced[0],
        priced[-1],
        tuple(listed),
        count,
        merged,
        left_out=sum(path.paths for path in listed) < count,
        complete=not any(path.usage.not_priced for path in outcomes),
        not_priced=_not_priced(definition),
    )


def _priced(paths: Iterable[Path], prices: Prices, requests: int) -> list[PricedPath]:
    """The paths with what this many requests cost on each, the cheapest first."""
    priced = [
        PricedPath(
            path.end,
            path.fails,
            path.states,
            path.count,
            path.usage,
            prices.dollars(path.usage) * requests,
        )
        for path in paths
    ]
    return sorted(priced, key=lambda path: (path.dollars, len(path.states), path.states))


def _expect_well_formed(definition: Machine) -> None:
    """Refuse a definition with a field that AWS would refuse. Placeholders are accepted."""
    for refused in refusals_before_substitution(definition):
        if refused.kind == "invalid-definition":
            where = refused.state or "The state machine"
            raise CannotPrice(f"AWS would refuse this definition. {where}: {refused.text}")


def _not_priced(definition: Machine) -> tuple[tuple[str, str], ...]:
    found = (own_usage(name, state, item_kb=1).not_priced for name, state in states(definition))
    return tuple(sorted({one for some in found for one in some}))


def _extremes(priced: list[PricedPath]) -> list[PricedPath]:
    """The cheapest and the dearest of each ending, from a list by price."""
    firsts = {path.end: path for path in reversed(priced)}
    lasts = {path.end: path for path in priced}
    kept = {*map(id, firsts.values()), *map(id, lasts.values())}
    return [path for path in priced if id(path) in kept]


def cents(dollars: Decimal) -> Decimal:
    """Dollars rounded to cents, half a cent up, as in a table."""
    return dollars.quantize(Decimal("0.01"), ROUND_HALF_UP, _LONG)
