"""The option of every command that lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

MOST = 1_000_000
"""The longest list: more than a terminal keeps, and a number that every library can count to."""


def limited(default: int) -> Callable[[F], F]:
    """Add `--limit` to a command."""
    return click.option(
        "--limit", type=click.IntRange(1, MOST), default=default, show_default=True, help="How many to list."
    )
