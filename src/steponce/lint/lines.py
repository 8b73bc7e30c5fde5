"""On which line of a file a state begins."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

_QUOTED = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|\'[^\']*+(?:\'|\Z)', re.DOTALL)
_BARE = re.compile(r"(?:^|(?<=[{,]))[^{},:'\"]++(?=:)")
_OF_OBJECT = re.compile(r"\s*:\s*(?:[{#]|\Z)")
_BEFORE_KEY = " \t{,"


def line_of(text: str, name: str, begin: int = 1) -> int:
    """
    The line on which a name stands as a key whose value is an object.

    Args:
        text: JSON, YAML, or a template in either with a definition in it.
        name: A state's name, or a resource's.
        begin: The first line to look at, from 1 on.

    Returns:
        The line, from 1 on; `begin` if the name is not found.
    """
    lines = _lines_by_key(text).get(name, ())
    place = bisect_left(lines, begin)
    return lines[place] if place < len(lines) else begin


@lru_cache(4)
def _lines_by_key(text: str) -> Mapping[str, list[int]]:
    """The lines of each key whose value is an object. A file is read once for all its findings."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(text.splitlines(), 1):
        for key in _keys_in(line):
            found[key].append(number)
    return dict(found)


def _keys_in(line: str) -> Iterator[str]:
    """The keys in a line whose values are objects, with quotes and without."""
    for match in _QUOTED.finditer(line):
        is_key = match.start() == 0 or line[match.start() - 1] in _BEFORE_KEY
        if is_key and _OF_OBJECT.match(line, match.end()):
            yield _unquoted(match[0])
    for match in _BARE.finditer(line):
        if _OF_OBJECT.match(line, match.end()):
            yield match[0].strip().removeprefix("- ").strip()


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # in single quotes, or with an escape that only YAML has
        return text[1:-1]
