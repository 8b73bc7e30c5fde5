"""The stack that the tests of the local stack's own parts share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steponce.local import LocalStack

TEMPLATE = Path(__file__).parent / "fixture" / "template.yaml"


@pytest.fixture(scope="session")
def small_stack() -> Iterator[LocalStack]:
    """A stack, started by somebody who has an AWS account."""
    stack = LocalStack.from_template(TEMPLATE, name="small")
    with pytest.MonkeyPatch.context() as environment:  # and only while it starts: others have no account
        environment.setenv("AWS_PROFILE", "no-such-profile")
        environment.setenv("AWS_SESSION_TOKEN", "the-callers")
        stack.start()
    yield stack
    stack.stop()
