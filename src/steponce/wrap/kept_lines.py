"""
Keeps the lines of a text that a program has read and written.

A program that writes YAML writes some lines in another way than they were: it indents lists and wraps text by
rules of its own. So a text is written twice, before and after its content is changed. A line that is the same
in both has not changed, and stays as it was in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher


def keep_lines(text: str, before: str, after: str) -> str:
    """
    The lines of `after`, those that have not changed as `text` has them.

    Args:
        text: As a person wrote it.
        before: The same content, as the program writes it.
        after: The changed content, as the program writes it.
    """
    new = after.splitlines()
    place = _places(before.splitlines(), new)
    lines: list[str] = []
    done = 0
    for begin, end, own in _segments(text.splitlines(), before.splitlines()):
        places = [place.get(line) for line in range(begin, end)]
        first = places[0] if places else done
        if first is None or places != list(range(first, first + len(places))):
            continue  # it has changed; what it is now comes before the next line that has not
        lines += [*new[done:first], *own]
        done = first + len(places)
    return "\n".join([*lines, *new[done:], ""])


def _places(before: Sequence[str], after: Sequence[str]) -> dict[int, int]:
    """Where the lines that have not changed are now."""
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {a + line: b + line for a, b, size in blocks for line in range(size)}


def _segments(text: Sequence[str], before: Sequence[str]) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Lines of the text with their begin and end in `before`. Lines that are alike come one by one."""
    own, written = _without_blanks(text), _without_blanks(before)
    for tag, a, b, c, d in SequenceMatcher(None, own, written, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from ((c + n, c + n + 1, [text[a + n]]) for n in range(b - a))
        else:
            yield c, d, text[a:b]


def _without_blanks(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines]
