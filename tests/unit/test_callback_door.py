"""What the callback links answer: who may answer what, and what is no answer."""

from __future__ import annotations

import base64
import json

import pytest

from steponce.callbacks.answer import OUTPUT_LIMIT
from steponce.request.strict_json import LONGEST_TEXT
from tests.unit.callback_door import CallbackDoor

YES = {"outcome": "success", "output": {"confirmed": True}}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def door() -> CallbackDoor:
    """A door with a step that waits behind it."""
    return CallbackDoor()


def test_a_link_answers_its_step(door: CallbackDoor):
    """Once; the same again is a duplicate."""
    told = [door.send(door.link(), YES) for _ in range(2)]
    assert [200, 200] == [one.status for one in told]
    assert ["accepted", "duplicate"] == [json.loads(one.body)["verdict"] for one in told]


@pytest.mark.parametrize("kind", ["application/json", FORM])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, '{"outcome": "success", "output": "' + "x" * LONGEST_TEXT + '"}'),
        (413, json.dumps(YES | {"output": "x" * OUTPUT_LIMIT})),
        (413, json.dumps(YES | {"output": [0] * OUTPUT_LIMIT})),
        (413, json.dumps({"outcome": "failure", "cause": "x" * 32_769})),
        (400, '{"outcome": ' + "[" * 100_000),
        (400, '{"outcome": "success", "output": ' + "1" * 100_000 + "}"),
        (400, '{"outcome": "success", "output": 1e999}'),
        (400, '{"outcome": "success", "output": 1, "output": 2}'),
        (400, '{"outcome": "success", "output": "\\ud800"}'),
        (400, "{"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_answer_is_refused_with_its_status(door: CallbackDoor, kind: str, status: int, body: str):
    """And the step waits on."""
    told = door.send(door.link(), body, kind=kind)
    assert (status, []) == (told.status, door.verdicts)
    assert len(told.body) < 5_000


@pytest.mark.parametrize("body", [b"\xff\xfe", b"\x1f\x8b\x08\x00"])
def test_a_body_that_is_no_text_is_malformed(door: CallbackDoor, body: bytes):
    """Compressed, for example."""
    sent = base64.b64encode(body).decode()
    assert 400 == door.send(door.link(), sent, isBase64Encoded=True).status
    assert 400 == door.send(door.link(), "no base64", isBase64Encoded=True).status
