"""Powertools' decorators and the workflow on one table, by our store and by Powertools' own."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from aws_lambda_powertools.utilities.idempotency import (
    BasePersistenceLayer,
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyPersistenceLayerError,
)

from steponce import RequestFailed
from steponce.powertools import STOCK_ATTRIBUTES, LocksPersistence
from tests.patience import PATIENCE_SECONDS
from tests.workflow.scene import DECLINED, VISA, Scene

pytestmark = pytest.mark.filterwarnings("ignore:Couldn't determine the remaining time")  # of no Lambda

DONE = {"chargeId": "by a function of Powertools'"}


def ours(scene: Scene) -> LocksPersistence:
    """Our store on the scene's table."""
    return LocksPersistence.from_outputs(
        scene.stack.outputs, boto3_client=scene.stack.boto3("dynamodb"), lease_seconds=3600
    )


def stock(scene: Scene) -> DynamoDBPersistenceLayer:
    """Powertools' own."""
    table = scene.stack.outputs["LocksTable"]
    return DynamoDBPersistenceLayer(table, boto3_client=scene.stack.boto3("dynamodb"), **STOCK_ATTRIBUTES)


class Charge:
    """A decorated function, with a key that no other test has."""

    def __init__(self, scene: Scene, store: BasePersistenceLayer, payload: dict[str, Any] = VISA) -> None:
        self.scene = scene
        self.prefix = scene.new_id("powertools")
        self.payload = payload
        text = json.dumps(payload, sort_keys=True).encode()
        self.key = f"{self.prefix}#{hashlib.md5(text, usedforsecurity=False).hexdigest()}"
        self.meanwhile: Any = lambda: None
        self.ran = 0
        self._call = idempotent_function(
            self._work,
            data_keyword_argument="order",
            key_prefix=self.prefix,
            config=IdempotencyConfig(),
            persistence_store=store,
        )

    def __call__(self) -> Any:
        return self._call(order=self.payload)

    def _work(self, order: Any) -> Any:
        assert self.payload == order
        self.ran += 1
        self.meanwhile()
        return DONE

    def refused(self, name: str) -> tuple[str, list[str]]:
        """A workflow that asks for the key now: its error, and its states."""
        self.scene.client.start(name, self.payload, lock_token=self.key)
        return self.scene.closed(name)["error"], self.scene.states(name)


def test_a_workflow_keeps_off_a_decorated_call_and_replays_it(scene: Scene):
    """Its lease is asked for, and then its record; and nothing is charged."""
    charge = Charge(scene, ours(scene))
    seen: list[Any] = []
    charge.meanwhile = lambda: seen.append(charge.refused(f"{charge.prefix}-w"))
    assert DONE == charge()
    ((error, states),) = seen
    assert ("AlreadyInProgress", True) == (error, "CheckOwner" in states)

    done = scene.run(f"{charge.prefix}-x", VISA, lock_token=charge.key)
    assert ("COMPLETED", DONE) == (done.status, done.result)
    assert "ReplayResult" in scene.states(f"{charge.prefix}-x")
    assert ("PayloadMismatch", []) == (mismatch(charge), scene.charges(charge.key))


def mismatch(charge: Charge) -> str:
    """The error of a workflow with the same key and another payload."""
    name = f"{charge.prefix}-other"
    charge.scene.client.start(name, DECLINED, lock_token=charge.key)
    return str(charge.scene.closed(name)["error"])


def test_a_decorated_call_replays_a_workflow(scene: Scene):
    """Its result, and its error."""
    charge = Charge(scene, ours(scene))
    done = scene.run(charge.prefix, VISA, lock_token=charge.key)
    assert (done.result, 0) == (charge(), charge.ran)

    declined = Charge(scene, ours(scene), DECLINED)
    scene.run(declined.prefix, DECLINED, lock_token=declined.key)
    with pytest.raises(RequestFailed) as failed:
        declined()
    assert ("CardDeclined", 0) == (failed.value.error, declined.ran)


def test_a_decorated_call_keeps_off_a_workflow_s_work(scene: Scene):
    """With Powertools' own error."""
    charge = Charge(scene, ours(scene))
    with scene.working(charge.key):
        scene.client.start(charge.prefix, VISA, lock_token=charge.key)
        scene.eventually(lambda: scene.lock(charge.key))
        with pytest.raises(IdempotencyAlreadyInProgressError):
            charge()
    done = scene.client.wait(charge.prefix, timeout_seconds=PATIENCE_SECONDS, lock_token=charge.key)
    assert (done.result, 0) == (charge(), charge.ran)


def test_a_workflow_reads_powertools_own_records_and_writes_none(scene: Scene):
    """In progress it waits, also past their time; completed it replays them."""
    charge = Charge(scene, stock(scene))
    seen: list[Any] = []

    def meanwhile() -> None:
        for name, over in (("w", 4_000_000_000_000), ("x", 1)):
            scene.change_lock(charge.key, in_progress_expiration=over)
            before = scene.raw_lock(charge.key)
            seen.append((*charge.refused(f"{charge.prefix}-{name}"), before == scene.raw_lock(charge.key)))

    charge.meanwhile = meanwhile
    assert DONE == charge()
    for error, states, untouched in seen:
        assert ("AlreadyInProgress", True) == (error, untouched)
        assert ["IsPowertoolsRecord", "AlreadyInProgress"] == states[-2:]

    before = scene.raw_lock(charge.key)
    waited = scene.client.wait(f"{charge.prefix}-w", timeout_seconds=PATIENCE_SECONDS, lock_token=charge.key)
    done = scene.run(f"{charge.prefix}-y", VISA, lock_token=charge.key)
    assert [DONE, DONE] == [waited.result, done.result]
    assert ["IsPowertoolsRecord", "ReplayResult"] == scene.states(f"{charge.prefix}-y")[-2:]
    assert (before, []) == (scene.raw_lock(charge.key), scene.charges(charge.key))


def test_powertools_own_layer_leaves_a_workflow_s_lock_alone(scene: Scene):
    """It fails before its work, and later replays the result."""
    charge = Charge(scene, stock(scene))
    with scene.working(charge.key):
        scene.client.start(charge.prefix, VISA, lock_token=charge.key)
        scene.eventually(lambda: scene.lock(charge.key))
        before = scene.raw_lock(charge.key)
        with pytest.raises(IdempotencyPersistenceLayerError):
            charge()
        assert before == scene.raw_lock(charge.key)
    done = scene.client.wait(charge.prefix, timeout_seconds=PATIENCE_SECONDS, lock_token=charge.key)
    assert (done.result, 0) == (charge(), charge.ran)
