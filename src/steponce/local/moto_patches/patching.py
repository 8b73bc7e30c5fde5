"""Replacing a function of moto wherever it has been imported by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def replace_everywhere(original: Callable[..., Any], replacement: Callable[..., Any]) -> None:
    """
    Put `replacement` in the place of `original` in every module of moto that has imported it.

    Raises:
        RuntimeError: no module has it, so this moto is not the one that the patch was made for.
    """
    name = original.__name__
    holders = [
        module
        for key, module in list(sys.modules.items())
        if key.startswith("moto.") and getattr(module, name, None) is original
    ]
    if not holders:
        raise RuntimeError(f"moto has no {name} to replace. Install the moto that pyproject.toml asks for.")
    for module in holders:
        setattr(module, name, replacement)
