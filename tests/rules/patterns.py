"""Every regular expression of the source tree and of the template, with the way it is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from tests.unit.growth import is_linear

METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")
LARGEST = 4_096


@dataclass(frozen=True)
class Use:
    """One pattern, and a method that it is used with."""

    place: str
    pattern: re.Pattern[str]
    method: str

    def run(self, text: str) -> object:
        """The call."""
        if self.method == "sub":
            return self.pattern.sub("", text)
        found = getattr(self.pattern, self.method)(text)
        return list(found) if self.method == "finditer" else found


def uses_in(path: Path, text: str) -> Iterator[Use | str]:
    """The patterns of one module; a text for what cannot be read."""
    tree = ast.parse(text)
    known = _constants(tree)
    for node in ast.walk(tree):
        if not (_is_of_re(node) and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        place = f"{path.name}:{node.lineno}"
        try:
            pattern = re.compile(*_values([node.args[0], *_flags(node)], known))
        except NameError as unknown:
            yield f"{place}: {unknown}"
            continue
        if node.func.attr == "compile":
            for method in _methods_of(tree, node):
                yield Use(place, pattern, method)
        elif node.func.attr in METHODS:
            yield Use(place, pattern, node.func.attr)


def attacks(pattern: str) -> Iterator[Callable[[int], str]]:
    """Inputs of any size: two characters of the pattern again and again, and an end that does not fit."""
    letters = sorted({*re.sub(r"[\w]", "", pattern), *"a0 -", *re.findall(r"\w", pattern)[:2]})
    for part in {"".join(pair) for pair in product(letters, repeat=2)} | {*letters}:
        for end in ("", "\0", "\n"):
            yield lambda size, part=part, end=end: (part * size)[:size] + end


def complaints(use: Use) -> list[str]:
    """The first input found for which the time of a pattern grows faster than the input does."""
    for make in attacks(use.pattern.pattern):
        if not is_linear(use.run, make, LARGEST):
            return [f"{use.place}: {use.method} of {use.pattern.pattern!r} is not linear on {make(12)!r}"]
    return []


def _is_of_re(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return False
    return called.value.id == "re" and called.attr in ("compile", *METHODS)


def _flags(call: ast.Call) -> list[ast.expr]:
    """`re.compile` has its flags second; the others by name."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    by_place = [arg for arg in call.args if isinstance(arg, ast.Attribute | ast.BinOp) and _of_re(arg)]
    return [*named, *by_place][:1]


def _of_re(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "re" for one in ast.walk(node))


def _methods_of(tree: ast.Module, compiled: ast.Call) -> set[str]:
    """What a compiled pattern is used for in its module; for searching, if it is not known."""
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.value is compiled
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    called = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names
    }
    return called & {*METHODS} or {"search"}


def _constants(tree: ast.Module) -> dict[str, Any]:
    """The module's own texts and numbers."""
    known: dict[str, Any] = {"re": re}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            with suppress(NameError):  # made of something else, so it is no part of a pattern
                known |= dict.fromkeys(names, *_values([node.value], known))
    return known


def _values(nodes: list[ast.expr], known: dict[str, Any]) -> list[Any]:
    """Texts, and texts with the module's constants in them; nothing else has a value here."""
    allowed = {"__builtins__": {}} | known
    return [eval(compile(ast.Expression(node), "a pattern", "eval"), allowed) for node in nodes]  # noqa: S307 - ours
