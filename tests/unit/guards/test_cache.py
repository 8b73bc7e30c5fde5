"""The guard's memory of finished records."""

from __future__ import annotations

import pytest

from steponce import (
    PayloadMismatch,
    RequestFailed,
)
from tests.unit.guards.charging import DONE, ORDER, CardDeclined, complete, fail_with
from tests.unit.guards.world import World


def test_a_cached_answer_needs_no_call(world: World) -> None:
    """Its payload is compared all the same, and it expires."""
    guard = world.guard(cache_size=1)
    complete(guard)
    world.calls.clear()
    assert DONE == complete(guard, result="another")
    with pytest.raises(PayloadMismatch):
        complete(guard, payload="another")
    assert [] == world.calls
    world.pass_by(91 * 86_400)
    assert "another" == complete(guard, result="another")


def test_the_cache_keeps_the_most_recently_used_final_answers_only(world: World) -> None:
    """What waits for a person may change."""
    guard = world.guard(cache_size=2, final=(CardDeclined,))
    fail_with(guard, CardDeclined())
    for key in ("a", "b"):
        complete(guard, key)
    with pytest.raises(RequestFailed):
        complete(guard)  # now kept, in the place of a
    world.calls.clear()
    complete(guard, "b")
    with pytest.raises(RequestFailed):
        complete(guard)
    assert [] == world.calls
    complete(guard, "a")
    assert ["put_item"] == world.calls

    with pytest.raises(ZeroDivisionError), guard.begin("c", ORDER):
        raise ZeroDivisionError
    for _ in range(2):
        world.calls.clear()
        with pytest.raises(RequestFailed):
            complete(guard, "c")
        assert ["put_item"] == world.calls
