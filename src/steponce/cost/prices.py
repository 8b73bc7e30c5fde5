"""
Dollars by region, from prices.json.

The first tier of on-demand prices, without free tiers, discounts and taxes. The file has the day on which the
prices were looked up, and the pages of AWS that list them. Lambda's duration is that of x86.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from steponce.cost.errors import CannotPrice
from steponce.cost.usage import Usage

_FILE: dict[str, Any] = json.loads(
    Path(__file__).with_name("prices.json").read_text(encoding="utf-8"),
    parse_float=Decimal,
    parse_int=Decimal,
)

_PER: Decimal = _FILE["per"]

REGIONS: tuple[str, ...] = tuple(sorted(_FILE["regions"]))
"""The regions that have prices here."""

DATE: str = _FILE["date"]
"""The day on which the prices were looked up."""

SOURCES: tuple[str, ...] = tuple(_FILE["sources"])
"""The pages that list them."""


@dataclass(frozen=True)
class Prices:
    """
    What usage costs in one region.

    Args:
        region: One of REGIONS.
        lambda_ms: How long each invocation of a function lasts, in milliseconds.
        lambda_mb: The memory of each function, in MB.

    Raises:
        CannotPrice: the region has no prices here.
    """

    region: str
    lambda_ms: int = 100
    lambda_mb: int = 128

    def __post_init__(self) -> None:
        if self.region not in REGIONS:
            raise CannotPrice(
                f"There are no prices for the region {self.region!r}. Known are: {', '.join(REGIONS)}."
            )

    def dollars(self, usage: Usage) -> Decimal:
        """The exact price of this usage, without what is in its `not_priced`."""
        prices: dict[str, Decimal] = _FILE["regions"][self.region]
        counts = usage.counts()
        seconds = Decimal(counts["lambda_calls"]) * self.lambda_ms / 1000
        counts["lambda_gb_seconds"] = seconds * self.lambda_mb / 1024
        total = sum((prices[name] * Decimal(count) for name, count in counts.items()), Decimal(0))
        return total / _PER
