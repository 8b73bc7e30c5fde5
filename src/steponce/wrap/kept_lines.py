"""
Keeps the lines of a text that a program has read and written.

A program that writes YAML writes some lines in another way than they were: it indents lists and wraps text by
rules of its own. So a text is written twice, before and after its content is changed. A line that is the same
in both has not changed, and stays as it was in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_END = re.compile(r"(\r\n|\r|\n)")


def keep_lines(text: str, before: str, after: str) -> str:
    """
    The lines of `after`, those that have not changed as `text` has them.

    Args:
        text: As a person wrote it.
        before: The same content, as the program writes it.
        after: The changed content, as the program writes it.
    """
    old, new = _lines(before), _lines(after)
    place = dict(_matches(old, new))
    lines: list[str] = []
    done = 0
    for begin, end, own in _segments(_lines(text), old):
        places = [place.get(line) for line in range(begin, end)]
        first = places[0] if places else done
        if first is None or places != list(range(first, first + len(places))):
            continue  # it has changed; what it is now comes before the next line that has not
        lines += [*new[done:first], *own]
        done = first + len(places)
    return "\n".join([*lines, *new[done:], ""])


def keep_ends(raw: str, text: str) -> str:
    """
    A text whose lines end as they did: each that stays as it did itself, and new ones as most of them.

    Args:
        raw: The text as its file had it, with ends of any kind.
        text: What it is now, with Unix ends.
    """
    parts = _END.split(raw)
    lines, ends = parts[::2], parts[1::2]
    usual = Counter(ends).most_common(1)[0][0] if ends else "\n"
    if len(set(ends)) < 2:
        return text.replace("\n", usual)
    new = text.split("\n")
    own = {place: line for line, place in _matches(lines, new) if line < len(ends)}
    found = (ends[own[place]] if place in own else usual for place in range(len(new) - 1))
    return "".join(line + end for line, end in zip(new, [*found, ""], strict=True))


def _lines(text: str) -> list[str]:
    """The lines as YAML's writer ends them. Python's `splitlines` knows more ends, which a text may hold."""
    return text.removesuffix("\n").split("\n")


def _segments(text: Sequence[str], before: Sequence[str]) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Lines of the text with their begin and end in `before`. Lines that are alike come one by one."""
    own, written = _without_blanks(text), _without_blanks(before)
    a = b = 0
    for line, place in [*_matches(own, written), (len(own), len(written))]:
        if (a, b) != (line, place):
            yield b, place, text[a:line]
        if line < len(own):
            yield place, place + 1, [text[line]]
        a, b = line + 1, place + 1


def _without_blanks(lines: Sequence[str]) -> list[str]:
    return ["".join(line.split()) for line in lines]


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """
    The numbers of lines that are the same in both, in order.

    `SequenceMatcher` takes quadratic time where many lines are alike, as in templates. So it compares only
    what lies between two lines of which there is one in each text.
    """
    a = b = 0
    for line, place in [*_landmarks(old, new), (len(old), len(new))]:
        between = SequenceMatcher(None, old[a:line], new[b:place], autojunk=False)
        for block in between.get_matching_blocks():
            yield from ((a + block.a + number, b + block.b + number) for number in range(block.size))
        if line < len(old):
            yield line, place
        a, b = line + 1, place + 1


def _landmarks(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Lines of which there is one in each text, as far as they stand in the same order."""
    many_old, many_new = Counter(old), Counter(new)
    place = {line: number for number, line in enumerate(new) if many_new[line] == 1}
    last = -1
    for number, line in enumerate(old):
        if many_old[line] == 1 and place.get(line, -1) > last:
            last = place[line]
            yield number, last
