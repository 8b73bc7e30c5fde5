"""The stack that the tests of the local stack's own parts share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from steponce.local import LocalStack
from steponce.local.moto_patches import pace

pace.install()  # tests that speak to moto itself are quicker by it too

SMALL_TEMPLATE = Path(__file__).parent / "local_fixture" / "template.yaml"


@pytest.fixture(scope="session")
def small_stack() -> Iterator[LocalStack]:
    """A stack, started by somebody who has an AWS account."""
    stack = LocalStack.from_template(SMALL_TEMPLATE, name="small")
    with pytest.MonkeyPatch.context() as environment:  # and only while it starts: others have no account
        environment.setenv("AWS_PROFILE", "no-such-profile")
        environment.setenv("AWS_SESSION_TOKEN", "the-callers")
        stack.start()
    yield stack
    stack.stop()
