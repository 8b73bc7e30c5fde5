"""The result of wrapping a definition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["inline", "around"]


@dataclass(frozen=True)
class Wrapped:
    """
    A wrapped definition.

    Args:
        form: `inline`: the machine's states are in it. `around`: it starts the machine.
        definition: Amazon States Language, with placeholders for DefinitionSubstitutions.
        substitutions: The placeholder of each value that the workflow needs: `LocksTable` -> `LocksTable`, or
            `SteponceLocksTable` if the machine has a placeholder of that name.
        renamed: The new name of each state whose name the workflow has, too.
        may_retry_later: The states whose RetryLater releases the lock.
        decisions: What remains for a person to decide, a few sentences each.
    """

    form: Form
    definition: dict[str, Any]
    substitutions: dict[str, str]
    renamed: dict[str, str] = field(default_factory=dict)
    may_retry_later: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
