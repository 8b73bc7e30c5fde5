"""`steponce cost`: what each path through a state machine costs."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from steponce.camelcase import json_object
from steponce.cli.cost_tables import estimate_table
from steponce.cli.definition_file import read_definition
from steponce.cli.keys import expecting
from steponce.cli.output import DONE, FAILED, say
from steponce.cli.parameters import template_parameters
from steponce.cost import REGIONS, Assumptions, CannotPrice, PricedPath, estimate
from steponce.cost.estimate import LIMIT, Estimate
from steponce.cost.paths import MOST

NOTES = (
    "Without retries, free tiers, logs and traces.",
    "A loop is taken once at most. All items of a Map go the same way.",
    "If a branch or an item fails, AWS stops the rest. Here all of it is counted.",
    "What a function does itself, and copies of writes in indexes and replicas, are not in the definition.",
)
"""What the numbers leave out, in every answer."""

_LARGEST_BUDGET = 10**15


def _requests(_context: click.Context, _option: click.Parameter, value: float) -> int:
    if not (math.isfinite(value) and value == int(value)):
        raise click.BadParameter("give a whole number, like 1000000 or 1e6.")
    return int(value)


def _dollars(_context: click.Context, _option: click.Parameter, value: str | None) -> Decimal | None:
    try:
        found = None if value is None else Decimal(value)
    except InvalidOperation:
        found = Decimal(-1)
    if found is not None and not (found.is_finite() and 0 <= found <= _LARGEST_BUDGET):
        raise click.BadParameter(f"give dollars, from 0 to {_LARGEST_BUDGET:,}, like 150 or 0.5.")
    return found


@click.command()
@click.argument("file")
@click.option(
    "--requests",
    type=float,
    default=1e6,
    callback=_requests,
    metavar="N",
    help="How many executions.  [default: 1e6]",
)
@click.option(
    "--region",
    default="us-east-1",
    show_default=True,
    callback=expecting(f"Give one of {', '.join(REGIONS)}."),
    help=f"One of {', '.join(REGIONS)}.",
)
@click.option("--machine", metavar="NAME", help="Which state machine of a template that has several.")
@template_parameters
@click.option(
    "--through",
    multiple=True,
    metavar="STATE",
    help="Only paths through this state; may be given more than once.",
)
@click.option("--items", type=int, default=1, show_default=True, help="How many items each Map gets.")
@click.option(
    "--item-kb", type=float, default=1.0, show_default=True, help="The size of each item of DynamoDB."
)
@click.option(
    "--lambda-ms",
    type=int,
    default=100,
    show_default=True,
    help="How long each function runs.",
)
@click.option(
    "--lambda-mb",
    type=int,
    default=128,
    show_default=True,
    help="The memory of each function.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    default=LIMIT,
    show_default=True,
    help="How many paths to list.",
)
@click.option(
    "--budget",
    callback=_dollars,
    metavar="DOLLARS",
    help="Exit with 1 if the dearest of these paths costs more.",
)
def cost(
    file: str,
    requests: int,
    region: str,
    machine: str | None,
    parameters: dict[str, str],
    through: tuple[str, ...],
    items: int,
    item_kb: float,
    lambda_ms: int,
    lambda_mb: int,
    limit: int,
    budget: Decimal | None,
) -> int:
    """
    Price every path through a state machine.

    FILE is a definition in Amazon States Language, or a SAM or CloudFormation template; JSON or YAML. The
    type of the workflow is Standard. What has no price here is listed as not priced. With --budget, this
    counts as over the budget, and the exit code is 1.
    """
    definition = read_definition(file, machine, parameters, region)
    try:
        assumed = Assumptions(requests, items, item_kb, lambda_ms, lambda_mb)
        found = estimate(definition.content, region=region, assumptions=assumed, through=through, limit=limit)
    except CannotPrice as error:
        raise click.UsageError(str(error)) from None
    within = None if budget is None else found.complete and found.dearest.dollars <= budget
    answer = {
        "machine": definition.machine,
        "region": region,
        "assumptions": json_object(assumed),
        **_estimate(found),
        "budget": None if budget is None else float(budget),
        "withinBudget": within,
        "notes": NOTES,
    }
    say(answer, estimate_table(found, assumed, region, budget, NOTES))
    return FAILED if within is False else DONE


def _estimate(found: Estimate) -> dict[str, Any]:
    return {
        "paths": found.paths,
        "cheapest": _path(found.cheapest),
        "dearest": _path(found.dearest),
        "listed": [_path(path) for path in found.listed],
        "merged": found.merged,
        "leftOut": found.left_out,
        "complete": found.complete,
        "notPriced": _calls(found.not_priced),
        "pricesOf": found.prices_of,
        "sources": found.sources,
    }


def _path(path: PricedPath) -> dict[str, Any]:
    usage = json_object(path.usage)
    usage["notPriced"] = _calls(path.usage.not_priced)
    return {
        "end": path.end,
        "fails": path.fails,
        "paths": path.paths,
        "dollars": round(float(path.dollars), 6),
        **usage,
        "states": path.states,
    }


def _calls(not_priced: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"state": state, "call": call} for state, call in not_priced]
