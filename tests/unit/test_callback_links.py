"""What the callback links answer: who may answer what, and what is no answer."""

from __future__ import annotations

import base64
import json

import pytest

from steponce.callbacks.answer import OUTPUT_LIMIT
from steponce.request.strict_json import LONGEST_TEXT
from tests.unit.callback_links import CallbackLinks

YES = {"outcome": "success", "output": {"confirmed": True}}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def links() -> CallbackLinks:
    """A links with a step that waits behind it."""
    return CallbackLinks()


def test_a_link_answers_its_step(links: CallbackLinks):
    """Once; the same again is a duplicate."""
    reply = [links.send(links.link(), YES) for _ in range(2)]
    assert [200, 200] == [one.status for one in reply]
    assert ["accepted", "duplicate"] == [json.loads(one.body)["verdict"] for one in reply]


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
def test_what_is_no_answer_is_refused_with_its_status(
    links: CallbackLinks, kind: str, status: int, body: str
):
    """And the step waits on."""
    reply = links.send(links.link(), body, kind=kind)
    assert (status, []) == (reply.status, links.verdicts)
    assert len(reply.body) < 5_000


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=UTF-8"])
def test_a_program_is_refused_with_json(links: CallbackLinks, kind: str):
    """However it writes the media type."""
    assert "InvalidAnswer" == json.loads(links.send(links.link(), "{", kind=kind).body)["error"]


@pytest.mark.parametrize(("kind", "body"), [("application/json", json.dumps(YES)), (FORM, "outcome=success")])
def test_a_link_answers_nothing_but_what_it_allows(links: CallbackLinks, kind: str, body: str):
    """Who may only decline cannot confirm."""
    reply = links.send(links.link("failure", "heartbeat"), body, kind=kind)
    assert (403, []) == (reply.status, links.verdicts)


def test_a_program_gets_json_that_nobody_keeps(links: CallbackLinks):
    """Whether it says what it sends or not."""
    reply = links.send(links.link(), YES, headers={})
    assert {"verdict": "accepted", "awaitingStepId": links.step.id} == json.loads(reply.body)
    assert ("application/json", "no-store", "nosniff") == (
        reply.headers["Content-Type"],
        reply.headers["Cache-Control"],
        reply.headers["X-Content-Type-Options"],
    )


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [("application/json", json.dumps(YES), "application/json"), (FORM, "outcome=success", "text/html")],
)
def test_who_meets_an_outage_is_asked_to_come_again(links: CallbackLinks, kind: str, body: str, told: str):
    """A program is told when; the answer of another program is refused without that."""
    links.wait.sfn.refuse("send_task_success", "ThrottlingException")
    reply = links.send(links.link(), body, kind=kind)
    assert (503, told) == (reply.status, reply.headers["Content-Type"].partition(";")[0])
    if told == "application/json":
        assert "5" == reply.headers["Retry-After"]
        assert {"error", "message"} == set(json.loads(reply.body))
    assert "Retry-After" not in links.send(links.link(), "{", kind=kind).headers


@pytest.mark.parametrize("body", [b"\xff\xfe", b"\x1f\x8b\x08\x00"])
def test_a_body_that_is_no_text_is_malformed(links: CallbackLinks, body: bytes):
    """Compressed, for example."""
    sent = base64.b64encode(body).decode()
    assert 400 == links.send(links.link(), sent, isBase64Encoded=True).status
    assert 400 == links.send(links.link(), "no base64", isBase64Encoded=True).status
