"""A flow that halted goes on, another is turned away, and all stages are let go of at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steponce import InvalidRequest, Unavailable, updates
from tests.unit.limits.world import dies_after, lost_and_repeated
from tests.unit.updates.world import KEY, TABLE, World


def hold(world: World, stage: str, holder: str) -> bool:
    """Hold a stage of the customer's."""
    return updates.hold_stage(TABLE, KEY, stage, holder, dynamodb=world.dynamodb)


def let_go(world: World, **holders: str) -> bool:
    """Let go of stages."""
    return updates.let_go_of_stages(TABLE, KEY, holders, dynamodb=world.dynamodb)


def test_the_same_id_goes_on_and_another_is_turned_away(world: World) -> None:
    """After a halt, and for as long as the flow is not over."""
    world.put(name={"S": "Ann"})
    assert hold(world, "charge", "run-1")
    assert not hold(world, "charge", "run-2")
    assert hold(world, "charge", "run-1")
    assert hold(world, "ship", "run-1/ship")
    assert not hold(world, "ship", "run-2/ship")
    assert let_go(world, charge="run-1", ship="run-1/ship")
    assert {"customerId": "7", "name": "Ann"} == world.read()
    assert hold(world, "charge", "run-2")


def test_no_stage_is_let_go_of_by_another(world: World) -> None:
    """All of them, or none."""
    hold(world, "charge", "run-1")
    hold(world, "ship", "run-2")
    assert not let_go(world, charge="run-1", ship="run-1")
    assert not hold(world, "charge", "run-3")


def test_letting_go_can_be_repeated(world: World) -> None:
    """Its answer was lost; and a record that is gone holds nothing."""
    assert let_go(world, charge="run-1")
    assert None is world.item()
    world.faults = [lost_and_repeated]
    assert hold(world, "charge", "run-1")
    world.faults = [dies_after]
    with pytest.raises(Unavailable):
        let_go(world, charge="run-1")
    assert let_go(world, charge="run-1")
    assert {"customerId": "7"} == world.read()


def test_letting_go_can_be_repeated_after_another_flow_has_begun(world: World) -> None:
    """It has waited for that. What it holds stays its own."""
    hold(world, "charge", "run-1")
    hold(world, "ship", "run-1")
    assert let_go(world, charge="run-1", ship="run-1")
    assert hold(world, "charge", "run-2")
    assert let_go(world, charge="run-1", ship="run-1")
    assert {"customerId": "7", "chargeHeldBy": "run-2"} == world.read()


@pytest.mark.parametrize(("stage", "holder"), [("", "x"), ("x", ""), ("x", " "), (None, "x"), ("x", 7)])
def test_stages_and_holders_have_names(world: World, stage: Any, holder: Any) -> None:
    """Nothing is asked of DynamoDB for one that has none."""
    with pytest.raises(InvalidRequest):
        hold(world, stage, holder)
    with pytest.raises(InvalidRequest):
        updates.let_go_of_stages(TABLE, KEY, {stage: holder}, dynamodb=world.dynamodb)
    with pytest.raises(InvalidRequest):
        let_go(world)
    assert [] == world.calls


def test_a_key_has_no_attribute_of_a_stage(world: World) -> None:
    """It could not change."""
    key = {"customerId": "7", "chargeHeldBy": "x"}
    with pytest.raises(InvalidRequest, match="'chargeHeldBy' is part of the key"):
        updates.hold_stage(TABLE, key, "charge", "x", dynamodb=world.dynamodb)
    with pytest.raises(InvalidRequest, match="'chargeHeldBy' is part of the key"):
        updates.let_go_of_stages(TABLE, key, {"ship": "y", "charge": "x"}, dynamodb=world.dynamodb)
    assert [] == world.calls


def test_the_same_for_asyncio(world: World) -> None:
    """In threads."""

    async def both() -> list[bool]:
        stage: Any = {"dynamodb": world.dynamodb}
        return [
            await updates.hold_stage_async(TABLE, KEY, "charge", "run-1", **stage),
            await updates.let_go_of_stages_async(TABLE, KEY, {"charge": "run-1"}, **stage),
        ]

    assert [True, True] == asyncio.run(both())
