"""Writes an answer whose list may be long while it is read: tables for people, one JSON object for a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from rich.console import RenderableType

from steponce.cli.output import Screen, for_people

Row = TypeVar("Row")

AT_ONCE = 200
"""How many rows one table for people has."""


class Stream:
    """
    One answer with lists in it. No more of a list is in memory than one table of it, and in a pipe one row.

    Attributes:
        has_begun: Whether a pipe has got a part of the object already. What happens then belongs into it.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self._in_list = False

    def rows(
        self,
        name: str,
        rows: Iterable[Row],
        describe: Callable[[Row], Any],
        table: Callable[[Sequence[Row]], RenderableType],
    ) -> int:
        """
        Write one list of the answer.

        Args:
            name: Its name in the object.
            rows: What it lists, read as it is written.
            describe: A row as JSON.
            table: Some rows for people.

        Returns:
            How many rows there were.
        """
        left, count = iter(rows), 0
        while some := list(islice(left, AT_ONCE if for_people() else 1)):
            if for_people():
                Screen().print(table(some))
            else:
                self._add(name, [describe(row) for row in some], first=not count)
            count += len(some)
        if not for_people():
            self._add(name, [], first=not count)
            self._write("]")
            self._in_list = False
        return count

    def end(self, rest: dict[str, Any], shown: RenderableType = "") -> None:
        """Write the rest of the answer. A list that an error has cut short is closed first."""
        if for_people():
            if shown:
                Screen().print(shown)
            return
        list_end = "]" if self._in_list else ""
        begin = ", " if self.has_begun else "{"
        self._write(f"{list_end}{begin}{json.dumps(rest)[1:]}\n")
        sys.stdout.flush()

    def _add(self, name: str, described: list[Any], *, first: bool) -> None:
        if first:
            self._write(f"{', ' if self.has_begun else '{'}{json.dumps(name)}: [")
            self._in_list = True
        text = json.dumps(described)[1:-1]
        self._write(f"{'' if first or not text else ', '}{text}")

    def _write(self, text: str) -> None:
        self.has_begun = True
        sys.stdout.write(text)
