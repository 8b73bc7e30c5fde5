"""What a list leaves out, because something else has damaged the record."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.text import Text

from steponce.aws.dynamodb import Item
from steponce.cli.answers import counted, plain
from steponce.errors import RecordUnreadable

SHOWN = 100
"""So many are shown to people; a pipe gets all."""


@dataclass
class LeftOut:
    """Collects the records that cannot be read."""

    errors: list[RecordUnreadable] = field(default_factory=list)

    def add(self, error: RecordUnreadable, _item: Item) -> None:
        """One more; a reader's `skip`."""
        self.errors.append(error)

    def public(self) -> list[dict[str, str]]:
        """The same for a pipe: key, attribute and problem, and never what the attribute holds."""
        return [error.public() for error in self.errors]

    def lines(self) -> list[Text]:
        """The same for people, each in a line; none where all could be read."""
        if not self.errors:
            return []
        head = f"{counted(len(self.errors), 'record')} cannot be read; something else has written there:"
        rest = len(self.errors) - SHOWN
        more = [Text(f"  and {rest} more", "red")] if rest > 0 else []
        return [Text(head, "bold red"), *map(_line, self.errors[:SHOWN]), *more]


def _line(error: RecordUnreadable) -> Text:
    return plain(f"  {error.key}: its attribute {error.attribute} {error.problem}")
