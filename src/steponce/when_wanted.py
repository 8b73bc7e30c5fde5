"""Names of a package that are imported when they are wanted, so that a function starts without the others."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def imported_when_wanted(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """
    Make the `__getattr__` and the `__dir__` of a package.

    Hide them from type checkers, which would take any name for one that is there.

    Args:
        package: The package's `__name__`.
        names: The module of each name.
    """

    def get(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(names[name]), name)

    def listed() -> list[str]:
        return sorted(vars(sys.modules[package]).keys() | names.keys())

    return get, listed
