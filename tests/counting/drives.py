"""A machine, and what it takes to drive it along its paths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from steponce.cost import Usage
from tests.counting.answers import Answer


@dataclass(frozen=True)
class Drive:
    """
    One way to run a machine.

    Args:
        text: Its definition, with placeholders; or what makes it, when it is wanted.
        values: What is in the place of a placeholder; the others get their own name.
        inputs: Of the executions.
        answers: What its tasks are answered; see `answers_of`.
        items: How many items each of its Maps gets.
        may_fail: Whether tasks are answered with the errors that the definition catches.
        says_why: Whether each of these errors has a name and a cause. AWS does not document what a Parallel
            passes on for a missing one. The embedded engine passes on an empty text. Without `says_why` a
            missing cause is null, and a missing name is `no_name`.
        no_name: What stands for a missing name without `says_why`.
        rounds: How often a run returns to the beginning of a loop. A path of cost returns once; the rounds
            between the first and the last are taken out.
    """

    text: str | Callable[[], str]
    values: Mapping[str, str] = field(default_factory=dict)
    inputs: Sequence[Any] = ({},)
    answers: Mapping[str, Sequence[Answer]] = field(default_factory=dict)
    items: int = 1
    may_fail: bool = True
    says_why: bool = True
    no_name: str | None = None
    rounds: int = 1

    @cached_property
    def definition(self) -> dict[str, Any]:
        """
        The machine without Retry, which `cost` does not count.

        A retry repeats a call and a transition; it never changes where the machine goes then.
        """
        values = {"Partition": "aws", "AWS::Partition": "aws", **self.values}
        text = self.text if isinstance(self.text, str) else self.text()
        text = re.sub(r"\$\{([\w:]+)\}", lambda found: values.get(found[1], found[1]), text)
        machine: dict[str, Any] = json.loads(text)
        _drop_retries(machine)
        return machine


@dataclass(frozen=True)
class Driven:
    """
    What one run did.

    Attributes:
        states: The states in the order in which they were entered.
        usage: What AWS would bill.
        fails: Whether it failed.
        error: The name of its error; None also if that has none.
    """

    states: tuple[str, ...]
    usage: Usage
    fails: bool
    error: str | None


@dataclass(frozen=True)
class Subject:
    """
    A machine whose paths are driven.

    Args:
        name: What machine it is.
        drives: Of one machine; its placeholders may have several values.
        begins: The states that the paths begin with that this is about.
        usual: Whether `make test` drives it, in part if it has many paths.
        is_small: Whether `make test` drives it along every path.
        is_partial: Only what is driven is compared.
        ends_like: The subject that drives each way on from where the paths of both meet. Here each step is
            made, on some of its paths.
    """

    name: str
    drives: Sequence[Drive]
    begins: tuple[str, ...] = ()
    usual: bool = True
    is_small: bool = True
    is_partial: bool = False
    ends_like: str | None = None


def _drop_retries(value: Any) -> None:
    if isinstance(value, dict):
        if "Type" in value:
            value.pop("Retry", None)
        for part in value.values():
            _drop_retries(part)
    elif isinstance(value, list):
        for part in value:
            _drop_retries(part)
