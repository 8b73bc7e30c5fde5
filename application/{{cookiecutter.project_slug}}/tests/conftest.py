"""The application on this machine: no account, no Docker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from steponce.local import LocalStack

TEMPLATE = Path(__file__).parents[1] / "template.yaml"


@pytest.fixture(scope="session")
def stack() -> Iterator[LocalStack]:
    """A stack that is deployed from the template itself."""
    with LocalStack.from_template(TEMPLATE) as running:
        yield running
