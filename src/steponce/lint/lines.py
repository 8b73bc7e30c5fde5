"""On which line of a file a state begins."""

from __future__ import annotations

import json


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
    spellings = {json.dumps(name), json.dumps(name, ensure_ascii=False), f"'{name}'", name}
    for number, line in enumerate(text.splitlines()[begin - 1 :], begin):
        if any(_is_key(line, spelling) for spelling in spellings):
            return number
    return begin


def _is_key(line: str, spelling: str) -> bool:
    before, found, after = line.partition(spelling)
    while found:
        starts = not before or before[-1] in " \t{,"
        rest = after.lstrip()
        if starts and rest.startswith(":") and rest[1:].strip()[:1] in ("", "{", "#"):
            return True
        further, found, after = after.partition(spelling)
        before += spelling + further
    return False
