"""The prices, and what the documents say about them."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from steponce.cost import REGIONS, Assumptions, CannotPrice, Estimate, PricedPath, Prices, Usage, estimate
from steponce.cost.estimate import cents
from steponce.cost.prices import DATE, SOURCES
from tests.rules.documents import ROOT, load_json
from tests.rules.prose import read

from .definitions import run_once

MILLION = 1_000_000
LIMITS = read(ROOT / "docs" / "limits-and-costs.md")
COST = read(ROOT / "docs" / "cost.md")
EXAMPLES = sorted((ROOT / "examples").rglob("statemachines/*.asl.json"))


def test_each_region_has_a_price_for_everything():
    """Or a count would have none."""
    every = Usage(*range(1, len(Usage().counts()) + 1))

    assert {"eu-central-1", "eu-west-1", "us-east-1", "us-west-2"} <= set(REGIONS)
    assert all(Prices(region).dollars(every) > 0 for region in REGIONS)
    assert all(
        Prices(region).dollars(Usage(**{name: 1})) > 0 for region in REGIONS for name in Usage().counts()
    )


def test_an_unknown_region_is_refused_with_those_that_are_known():
    """A person sees what to give."""
    with pytest.raises(CannotPrice, match=r"'mars-1'.*eu-central-1, eu-west-1, us-east-1, us-west-2"):
        Prices("mars-1")


def test_the_duration_of_functions_is_paid_by_memory_and_time():
    """By GB-second, beside the request."""
    short, long = Prices("us-east-1", 100, 128), Prices("us-east-1", 1000, 1024)

    assert Decimal("0.2") + Decimal("0.0125") * Decimal("16.6667") == short.dollars(
        Usage(lambda_calls=MILLION)
    )
    assert Decimal("16.8667") == long.dollars(Usage(lambda_calls=MILLION))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("requests", 0),
        ("requests", 10**13),
        ("items", -1),
        ("items", 10**9),
        ("items", 10**400),
        ("item_kb", float("nan")),
        ("item_kb", 1e300),
        ("lambda_ms", 0),
        ("lambda_ms", 900_001),
        ("lambda_mb", 64),
        ("lambda_mb", 10_241),
    ],
)
def test_an_assumption_that_cannot_be_is_refused(name: str, value: Any):
    """Each has a least value, and AWS's largest."""
    with pytest.raises(CannotPrice, match=f"{name} must be"):
        Assumptions(**{name: value})


def test_dollars_of_any_size_are_rounded_to_cents():
    """Items of items of Maps are many."""
    assert Decimal(f"1{'0' * 40}.01") == cents(Decimal(f"1{'0' * 40}.005"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_everything_in_the_examples_has_a_price(path: Path):
    """No state is left out."""
    found = estimate(load_json(path))

    assert (True, ()) == (found.complete, found.not_priced)


@pytest.mark.parametrize("limit", ["0", "100"])
def test_everything_in_the_workflow_has_a_price(limit: str):
    """With a rate limit and without."""
    found = estimate(run_once(RateLimit=limit))

    assert (True, ()) == (found.complete, found.not_priced)


def test_a_guarded_update_in_the_place_of_the_work_has_a_price():
    """Two writes for each item of its transaction, beside the lock and the outcome."""
    found = with_work("update_if_mine")

    assert found.complete
    assert 6 == found.cheapest.usage.writes


def test_a_state_machine_in_the_place_of_the_work_is_named_as_not_priced():
    """Its executions are billed by its own definition, which is another file."""
    assert (("DoWork", "states:startExecution.sync:2"),) == with_work("start_machine").not_priced


def with_work(example: str) -> Estimate:
    """The workflow with an example's state in the place of the work."""
    whole = run_once()
    states = whole["States"] | load_json(ROOT / "examples" / "states" / f"{example}.asl.json")
    del states["IsConfirmationWanted"], states["AwaitConfirmation"], states["RecordFinalError"]
    return estimate({**whole, "States": states}, through=["CompleteRequest"])


def path_through(*states: str, **values: str) -> PricedPath:
    return estimate(run_once(**values), through=states).cheapest


def row(what: str) -> list[str]:
    """Transitions, DynamoDB and dollars of a path, as the document has them."""
    (found,) = re.findall(rf"^\| {what} \| (.*) \|$", LIMITS.text, re.MULTILINE)
    return found.split(" | ")


def dollars(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))


@pytest.mark.parametrize(
    ("what", "limit", "through"),
    [("fresh", "0", ()), ("fresh, with `RateLimit`", "100", ("CountRequest",))],
    ids=str,
)
def test_a_fresh_request_costs_what_the_document_says(what: str, limit: str, through: tuple[str, ...]):
    """Its work is of one state there, its Lambda is left out, and the index and the fence come on top."""
    transitions, dynamodb, price = row(what)
    fresh = path_through("CompleteRequest", "IsConfirmationWanted", *through, RateLimit=limit).usage

    writes, index, reads = map(int, re.findall(r"\d+", dynamodb))

    assert (fresh.transitions - 1, fresh.writes) == (int(transitions), writes)
    usage = Usage(transitions=int(transitions), writes=writes + index, reads=reads)
    assert dollars(price) == cents(Prices("us-east-1").dollars(usage) * MILLION)


def test_a_replay_costs_what_the_document_says():
    """The refused write is billed, too."""
    transitions, dynamodb, price = row("replay by key")
    replay = path_through("ReplayResult")

    assert (int(transitions), 1, 1) == (replay.usage.transitions, replay.usage.writes, replay.usage.reads)
    assert "1 refused write, 1 read" == dynamodb
    assert dollars(price) == cents(replay.dollars)


def test_a_duplicate_costs_what_the_document_says():
    """It is one read."""
    transitions, _, price = row("duplicate by id")

    assert ("0", dollars(price)) == (transitions, cents(Prices("us-east-1").dollars(Usage(reads=MILLION))))


def test_the_prices_of_the_bucket_are_those_of_the_table():
    """And of the sample's one more state."""
    prices = Prices("us-east-1")
    put, get = (prices.dollars(Usage(**{name: MILLION})) for name in ("s3_puts", "s3_gets"))

    assert f"cost ${put:.0f} to write and ${get:.2f} to read" in LIMITS.text
    assert f"one more, ${prices.dollars(Usage(transitions=MILLION)):.0f})" in LIMITS.text


def test_the_document_names_the_day_the_pages_and_the_regions():
    """Of the table in the package."""
    assert DATE in COST.text
    assert [] == [page for page in SOURCES if page not in COST.text]
    assert [] == [region for region in REGIONS if f"`{region}`" not in COST.text]
