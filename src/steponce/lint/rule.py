"""The rules by their ids. A rule is a function; its docstring is its page."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from steponce.lint.findings import Complaints, Severity
from steponce.lint.machine import Machine

Check = Callable[[Machine], Complaints]
Family = Literal["general", "run-once"]


@dataclass(frozen=True)
class Rule:
    """
    One rule.

    Attributes:
        id: Its name, in kebab-case.
        severity: error or warning.
        family: general for every state machine; run-once for one that takes the lock of this package.
        reads_paths: It reads paths and templates of JSONPath, and skips states in JSONata.
        check: What it does.
    """

    id: str
    severity: Severity
    family: Family
    reads_paths: bool
    check: Check

    @property
    def explanation(self) -> str:
        """What it finds, why, and what to do: Markdown."""
        return inspect.getdoc(self.check) or ""


class Rules:
    """A family of rules, filled by a decorator."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.listed: list[Rule] = []

    def rule(self, name: str, severity: Severity, *, reads_paths: bool = False) -> Callable[[Check], Check]:
        """Make a rule of a function."""

        def add(check: Check) -> Check:
            self.listed.append(Rule(name, severity, self.family, reads_paths, check))
            return check

        return add
