"""Functions of one name under one guard, which gives them the same keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from steponce.guards.arguments import code_of, wrapped_by


@dataclass(frozen=True)
class _Seen:
    """
    A function that a guard has met.

    Args:
        module: Its module's name.
        loaded: Its module's spec, which a reload makes anew. None of a program or a notebook.
        code: Its code. None if it has none, as a class.
        around: The name of the function that it is around, as a decorator's wrapper is.
    """

    module: str
    loaded: object
    code: CodeType | None
    around: str | None

    def is_edited(self, other: _Seen) -> bool:
        """Whether the other one may be the same function, in its file as it was before."""
        files = {one.code.co_filename for one in (self, other) if one.code is not None}
        return self.loaded is not other.loaded or len(files) > 1


class Namesakes:
    """The functions that one guard has decorated, by their qualified names."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def meet(self, function: Callable[..., Any]) -> str | None:
        """
        Remember a function that has no `name` of its own.

        Returns:
            What to warn of: another function of the name. None if there is none, or if this is the same one,
            decorated or loaded again.

        Raises:
            ValueError: another module has a function of the name.
        """
        called, module = function.__qualname__, function.__module__
        loaded = getattr(function, "__globals__", {}).get("__spec__")
        new = _Seen(module, loaded, code_of(function), wrapped_by(function))
        first = self._seen.setdefault(called, new)
        if first.module != module:
            raise ValueError(
                f"{first.module} and {module} both have a function {called}, and this guard would give them "
                "the same keys. Give one of them a name."
            )
        shared = f"Two functions are called {called}, and this guard gives them the same keys"
        if None not in (first.around, new.around) and first.around != new.around:
            return (
                f"{shared}: one is around {first.around}, the other around {new.around}. Give one of them a "
                "name, or let their decorator use functools.wraps."
            )
        if None in (first.code, new.code) or first.code == new.code:
            return None
        if first.is_edited(new):
            self._seen[called] = new
            return None
        return (
            f"{shared}: both are in {module}. Each may get the other's results. Give the one a name whose "
            "earlier calls may run again, since a name makes new keys."
        )
