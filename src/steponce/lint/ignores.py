"""
What a definition says about rules that it breaks on purpose.

In the Comment of a state, or of the machine for all of its states:

    lint: ignore task-timeout because a person may take a year

Several ids have commas between them. The reason ends with the line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

_MARK = "lint: ignore"
_BECAUSE = "because"


@dataclass(frozen=True)
class Ignore:
    """The ignored rules, and the reason, which may be empty."""

    rules: tuple[str, ...]
    reason: str


def ignores_in(comment: str) -> Iterator[Ignore]:
    """What a Comment ignores."""
    for line in comment.splitlines():
        for part in line.split(_MARK)[1:]:
            names, _, reason = part.partition(_BECAUSE)
            found = names.replace(",", " ").split()
            yield Ignore(tuple(name.strip(".;:") for name in found), reason.strip(" .:"))


def ignored_rules(comments: Collection[str]) -> set[str]:
    """The rules that comments ignore with a reason."""
    return {
        name
        for comment in comments
        for ignore in ignores_in(comment)
        if ignore.reason
        for name in ignore.rules
    }
