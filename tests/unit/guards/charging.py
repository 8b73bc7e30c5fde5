"""A guarded call that charges, and how it fails."""

from __future__ import annotations

from typing import Any

import pytest

from steponce import (
    Guard,
)
from tests.unit.guards.world import KEY

ORDER = {"orderId": "o-12", "amount": 500}
DONE = {"chargeId": "ch_1"}


def complete(guard: Guard, key: str = KEY, payload: Any = ORDER, result: Any = DONE, **options: Any) -> Any:
    """One call that charges, unless it is a replay."""
    with guard.begin(key, payload, **options) as run:
        if not run.replayed:
            run.complete(result)
        return run.result


class CardDeclined(Exception):
    """A final answer."""


def fail_with(guard: Guard, error: BaseException, **options: Any) -> None:
    """A call whose work raises."""
    with pytest.raises(type(error)) as raised, guard.begin(KEY, ORDER, **options):
        raise error
    assert error is raised.value
