"""Every definition that a template can give a state machine: its parameters' values in each combination."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from steponce.local.template.scalars import as_text

Rendered = TypeVar("Rendered")
Values = Mapping[str, str]

MOST = 64
"""Beyond this number of combinations, each value is tried with the defaults of the other parameters."""


@dataclass(frozen=True)
class Rendering:
    """
    One definition of a state machine.

    Attributes:
        machine: The machine's logical id.
        file: The file of its DefinitionUri; None if the template has the text.
        text: The definition, its substitutions made.
        kind: STANDARD or EXPRESS.
        values: The parameters that do not have their usual values, with the values that they have.
    """

    machine: str
    file: Path | None
    text: str
    kind: str
    values: Values


def choices(declared: Mapping[str, Any]) -> dict[str, list[str]]:
    """The values of each parameter that has AllowedValues."""
    return {
        name: [as_text(choice) for choice in item["AllowedValues"]]
        for name, item in declared.items()
        if "AllowedValues" in item
    }


def that_matter(
    render: Callable[[Values], Rendered], tried: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """
    The parameters that change what is rendered.

    Args:
        render: What comes of some values beside the usual ones of the others.
        tried: The values of each parameter to try.
    """
    usual = render({})
    return {
        name: list(values)
        for name, values in tried.items()
        if any(render({name: value}) != usual for value in values)
    }


def combinations(values: Mapping[str, Sequence[str]], most: int | None = None) -> Iterator[dict[str, str]]:
    """Every combination; if there are more than `most`, each value with the other defaults."""
    everything = itertools.product(*values.values())
    if most is None or len(list(itertools.islice(everything, most + 1))) <= most:
        yield from (dict(zip(values, some, strict=True)) for some in itertools.product(*values.values()))
        return
    yield {}
    yield from ({name: value} for name, some in values.items() for value in some)


def stand_ins(declared: Mapping[str, Any]) -> dict[str, str]:
    """A made-up value for each parameter without a default, for a template that is only read."""
    return {name: _stand_in(name, item) for name, item in declared.items() if "Default" not in item}


def _stand_in(name: str, item: Mapping[str, Any]) -> str:
    if item.get("AllowedValues"):
        return as_text(item["AllowedValues"][0])
    if item.get("Type") == "Number":
        return str(item.get("MinValue", item.get("MaxValue", 1)))
    return name
