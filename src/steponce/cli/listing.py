"""The option of every command that lists."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

MOST = sys.maxsize
"""The most that `islice` counts to."""


def limited(default: int) -> Callable[[F], F]:
    """Add `--limit` to a command."""
    return click.option(
        "--limit", type=click.IntRange(1, MOST), default=default, show_default=True, help="How many to list."
    )
