"""The stacks that tests share. Each is started once, when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steponce.local import LocalStack

TEMPLATE = Path(__file__).parents[1] / "template.yaml"


@pytest.fixture(scope="session")
def stack() -> Iterator[LocalStack]:
    """The template as it is, on the embedded parts unless the environment names others."""
    with LocalStack.from_template(TEMPLATE) as running:
        yield running
