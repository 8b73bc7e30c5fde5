"""Empty tables for each test, at noon."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.updates.world import World, empty_world


@pytest.fixture
def world() -> Iterator[World]:
    """Empty tables, a clock at noon, and no time lost in pauses."""
    with empty_world() as found:
        yield found


@pytest.fixture(scope="module")
def one_world() -> Iterator[World]:
    """The same for all examples of a module's properties, which begin `anew` each."""
    with empty_world() as found:
        yield found
