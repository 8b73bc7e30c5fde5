"""What the report of a failed test says of requests, as the pytest plugin adds it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from steponce.testing.stories import stories
from tests.workflow.scene import Scene

DECLINED = {"orderId": "story", "amount": 500, "card": "tok_declined"}
PAID = {"orderId": "story", "amount": 500, "card": "tok_visa"}


def test_a_request_has_one_story_of_all_its_executions(scene: Scene, order: str):
    """As `show` tells it, so without its payload; a request that succeeded has none."""
    began = datetime.now(UTC)
    scene.client.start(f"{order}-paid", PAID)
    scene.client.start(order, DECLINED)
    scene.client.wait(order, timeout_seconds=100)
    scene.client.wait(f"{order}-paid", timeout_seconds=100)

    told = dict(stories(scene.stack, began))

    assert [f"request {order}"] == list(told)
    story = told[f"request {order}"]
    assert "attempt 1 FAILED" in story
    assert "DoWork" in story
    assert "CardDeclined" in story
    assert "tok_declined" not in story


def test_what_began_before_the_test_is_not_told(scene: Scene, order: str):
    """It is another test's."""
    scene.client.start(order, DECLINED)
    scene.client.wait(order, timeout_seconds=100)

    assert {} == dict(stories(scene.stack, datetime.now(UTC) + timedelta(minutes=1)))
