"""The records that a list leaves out, because another program has damaged them."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.text import Text

from steponce.aws.dynamodb import Item
from steponce.cli.output import counted, plain
from steponce.errors import RecordUnreadable

SHOWN = 100
"""How many are shown to people. A pipe gets all."""


@dataclass
class LeftOut:
    """
    Collects unreadable records.

    Args:
        errors: Those that were found.
        most: How many are kept, so that a table that is full of them does not fill the memory. None: all.
    """

    errors: list[RecordUnreadable] = field(default_factory=list)
    most: int | None = None
    _dropped: int = 0

    @property
    def count(self) -> int:
        """How many were found."""
        return len(self.errors) + self._dropped

    def add(self, error: RecordUnreadable, _item: Item) -> None:
        """Add one. Pass this method as a list's `skip`."""
        if self.most is not None and len(self.errors) >= self.most:
            self._dropped += 1
        else:
            self.errors.append(error)

    def public(self) -> list[dict[str, str]]:
        """The records for a pipe: key, attribute and problem, and never the attribute's value."""
        return [error.public() for error in self.errors]

    def lines(self) -> list[Text]:
        """The records for people, one line each. No lines if there are none."""
        if not self.errors:
            return []
        head = f"{counted(self.count, 'record')} cannot be read; something else has written there:"
        rest = self.count - SHOWN
        more = [Text(f"  and {rest} more", "red")] if rest > 0 else []
        return [Text(head, "bold red"), *map(_line, self.errors[:SHOWN]), *more]


def _line(error: RecordUnreadable) -> Text:
    return plain(f"  {error.key}: its attribute {error.attribute} {error.problem}")
