"""An estimate for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from steponce.cli.output import counted, fields, plain
from steponce.cost import Assumptions, Estimate, PricedPath
from steponce.cost.estimate import cents

_COLUMNS = {"transitions": "states", "writes": "writes", "reads": "reads", "lambda_calls": "Lambda"}
_OTHERS = {
    "sqs_requests": "SQS",
    "sqs_fifo_requests": "SQS FIFO",
    "sns_publishes": "SNS",
    "events": "events",
    "s3_puts": "S3 put",
    "s3_gets": "S3 get",
}


def estimate_table(
    found: Estimate, assumed: Assumptions, region: str, budget: Decimal | None, notes: Sequence[str]
) -> RenderableType:
    """The cheapest and the dearest path, the list, and what the numbers leave out."""
    title = f"{assumed.requests:,} requests in {region}, {counted(found.paths, 'path')}"
    extremes = fields({"cheapest": _way(found.cheapest), "dearest": _way(found.dearest)})
    assumptions = (
        f"Prices of {found.prices_of}; Lambda {assumed.lambda_ms} ms at {assumed.lambda_mb} MB, "
        f"items of {assumed.item_kb:g} KB, {counted(assumed.items, 'item')} in each Map."
    )
    return Group(
        Text(title, "bold"),
        extremes,
        _list(found),
        *_about_list(found),
        *_not_priced(found),
        Text(" ".join([assumptions, *notes]), "dim"),
        *_about_budget(found, budget),
    )


def _way(path: PricedPath) -> str:
    return f"{_dollars(path.dollars)}: {' → '.join(path.states)}"


def _list(found: Estimate) -> RenderableType:
    others = [_others(path) for path in found.listed]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("ends with", overflow="fold")
    for column in ("paths", *_COLUMNS.values(), "dollars"):
        table.add_column(column, justify="right", no_wrap=True)
    if any(others):
        table.add_column("other")
    for path, other in zip(found.listed, others, strict=True):
        counts = path.usage.counts()
        end = plain(path.end)
        end.stylize("red" if path.fails else "green")
        numbers = [str(path.paths), *(f"{counts[name]:g}" for name in _COLUMNS), _dollars(path.dollars)]
        table.add_row(end, *numbers, *([other] if any(others) else []))
    return table


def _others(path: PricedPath) -> str:
    counts = path.usage.counts()
    found = [f"{counts[name]} {label}" for name, label in _OTHERS.items() if counts[name]]
    return ", ".join([*found, *(["not priced"] if path.usage.not_priced else [])])


def _about_list(found: Estimate) -> Iterator[Text]:
    if found.left_out:
        yield Text(
            "There are too many paths to list: these are the cheapest and the dearest of each ending. "
            "Choose some with --through STATE, or list more with --limit N.",
            "yellow",
        )
    elif found.merged:
        yield Text(
            "Paths that end in one state and use the same are one line; --limit N lists more.", "yellow"
        )


def _not_priced(found: Estimate) -> Iterator[Text]:
    if found.not_priced:
        yield Text("Not priced:", "bold yellow")
        yield from (plain(f"  {state}: {call}") for state, call in found.not_priced)


def _about_budget(found: Estimate, budget: Decimal | None) -> Iterator[Text]:
    if budget is None:
        return
    if found.dearest.dollars > budget:
        yield Text(f"Over the budget of {_dollars(budget)}.", "bold red")
    elif not found.complete:
        yield Text("The budget cannot be checked: not everything on these paths has a price.", "bold red")
    else:
        yield Text(f"Within the budget of {_dollars(budget)}.", "bold green")


def _dollars(dollars: Decimal) -> str:
    return f"${cents(dollars):,}"
