"""Findings: the state, what is wrong with it, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["error", "warning"]
"""error: AWS refuses it, or it is certainly wrong. warning: it may lose or repeat work."""


class Complaint(NamedTuple):
    """What a rule finds: the state's name, empty for the whole machine, and one line about it."""

    state: str
    text: str


Complaints = Iterator[Complaint]


@dataclass(frozen=True, order=True)
class Finding:
    """
    A complaint of a rule.

    Attributes:
        state: The state's name; empty for the whole machine.
        rule: The rule's id.
        severity: error or warning.
        message: What is wrong, and what to do next. It names the state.
    """

    state: str
    rule: str
    severity: Severity
    message: str
