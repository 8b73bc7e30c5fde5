"""
What the paths of a state machine cost.

    errors      why a definition cannot be priced
    definition  the parts of a definition that paths lead through
    usage       what one path uses, as counts
    calls       what the call of one Task uses, by its Resource
    loops       which loops a state belongs to
    knowledge   what is known of an execution's data on a path
    choosing    where a state leads with what is known
    copies      the states without circles: copied for the second time in a loop, and for what is known
    path        one path, and which paths are alike
    paths       every path through a definition, with its usage
    prices      dollars by region, from prices.json
    estimate    all of it for one definition
"""

from __future__ import annotations

from steponce.cost.errors import CannotPrice
from steponce.cost.estimate import Assumptions, Estimate, PricedPath, estimate
from steponce.cost.prices import REGIONS, Prices
from steponce.cost.usage import Usage

__all__ = [
    "REGIONS",
    "Assumptions",
    "CannotPrice",
    "Estimate",
    "PricedPath",
    "Prices",
    "Usage",
    "estimate",
]
