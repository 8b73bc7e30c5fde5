"""The HTTP API on a running stack: real requests, the real function, the real workflow."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from steponce.local import LocalStack
from tests.conftest import TEMPLATE
from tests.engines import Parts
from tests.unit.http_api import POSTED, READ, Answer, complaints
from tests.workflow.faults import Faults, Hold
from tests.workflow.scene import BUG, DECLINED, KILLED, UNREACHABLE, VISA, Scene
from tests.workflow.waiting import CONFIRMED, Waiting

HARD_KEYS = ["a/b?c=d#e%41", "..", "~YQ", 'say "hi"', "back\\slash", "a b", "[x]{y}|z^`", "order:1@shop"]


def _scene(parts: Parts, name: str, **parameters: str) -> Iterator[Scene]:
    faults = Faults()
    options = parts.options(name, {"dynamodb": faults.through, "lambda": faults.through})
    with LocalStack.from_template(
        TEMPLATE, name=name, parameters=parameters, deliveries=False, **options
    ) as stack:
        yield Scene(stack, faults)


@pytest.fixture(scope="module")
def scene(parts: Parts) -> Iterator[Scene]:
    """A stack whose HTTP API is open to everyone."""
    yield from _scene(parts, "open-api", HttpAccess="open")


@pytest.fixture(scope="module")
def guarded(parts: Parts) -> Iterator[Scene]:
    """A stack that takes tokens, and where the order's id is the business key."""
    yield from _scene(
        parts,
        "guarded-api",
        HttpAccess="jwt",
        JwtIssuer="https://issuer.example.com/",
        JwtAudience="https://requests.example.com",
        LockTokenPath="orderId",
    )


def send(
    scene: Scene, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """One HTTP request; the answer is held against the OpenAPI document."""
    address = urlsplit(scene.stack.outputs["RequestsUrl"])
    connection = HTTPConnection(address.hostname or "", address.port, timeout=100)
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    connection.request(method, path, data, {"Content-Type": "application/json"} | dict(headers or {}))
    raw = connection.getresponse()
    names = ("Server", "Date", "Connection", "Content-Length")
    told = {name: value for name, value in raw.getheaders() if name not in names}
    answer = Answer(raw.status, told, json.loads(raw.read()))
    connection.close()
    route = "POST /requests" if method == "POST" else "GET /requests/{requestId}"
    assert [] == complaints(route, answer)
    return answer


def post(scene: Scene, key: str, payload: object = VISA, prefer: str | None = None) -> Answer:
    """POST /requests with a key in quotes."""
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    headers = {"Idempotency-Key": f'"{escaped}"'} | ({} if prefer is None else {"Prefer": prefer})
    return send(scene, "POST", "/requests", payload, headers)


def get(scene: Scene, location: str, prefer: str = "wait=20") -> Answer:
    """GET what a Location leads to."""
    return send(scene, "GET", location, headers={"Prefer": prefer})


def call(scene: Scene, event: dict[str, Any], authorizer: object, **changes: Any) -> Answer:
    """Invoke the function as a gateway with an authorizer does."""
    event = copy.deepcopy(event) | changes
    event["requestContext"]["authorizer"] = authorizer
    raw = scene.stack.boto3("lambda").invoke(
        FunctionName=f"{scene.stack.name}-Requests-HttpApiFunction", Payload=json.dumps(event)
    )
    told = json.loads(raw["Payload"].read())
    answer = Answer(told["statusCode"], told["headers"], json.loads(told["body"]))
    assert [] == complaints(event["requestContext"]["routeKey"], answer)
    return answer


def subject(name: str) -> dict[str, Any]:
    """What a JWT authorizer says of a caller."""
    return {"jwt": {"claims": {"sub": name}, "scopes": None}}


def test_a_request_is_accepted_run_and_replayed(scene: Scene):
    """202, the result at Location, the same result for the same request; one charge."""
    key = scene.new_id("http")
    first = post(scene, key)
    done = get(scene, first.headers["Location"])
    again = post(scene, key)

    assert [202, 200, 200] == [first.status, done.status, again.status]
    assert [False, False, True] == [answer.body["replayed"] for answer in (first, done, again)]
    assert ("COMPLETED", key, 1) == tuple(done.body[name] for name in ("status", "requestId", "attempt"))
    assert done.body | {"replayed": True} == again.body
    assert 1 == len(scene.charges(scene.key(key)))


def test_a_bare_key_and_the_client_mean_the_same_request(scene: Scene):
    """With an open API the key is the request's id for everyone."""
    key = scene.new_id("http")
    answer = send(scene, "POST", "/requests", VISA, {"Idempotency-Key": key, "Prefer": "wait=20"})
    assert (200, False, "wait=20") == (
        answer.status,
        answer.body["replayed"],
        answer.headers["Preference-Applied"],
    )
    assert answer.body["result"] == scene.client.result(key)
    assert scene.client.start(key, VISA).duplicate


def test_whoever_clicks_often_is_charged_once(scene: Scene):
    """Of ten at once one starts, and all get its result."""
    key = scene.new_id("http")
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: post(scene, key, prefer="wait=20"), range(10)))
    assert [200] * 10 == [answer.status for answer in answers]
    assert 1 == sum(not answer.body["replayed"] for answer in answers)
    assert 1 == len({json.dumps(answer.body["result"]) for answer in answers})
    assert 1 == len(scene.charges(scene.key(key)))


def test_a_running_request_says_so(scene: Scene):
    """202 or, for whoever will not wait, 409; another payload outranks both."""
    key, work, other = scene.new_id("http"), VISA, VISA | {"amount": 501}
    with scene.working(key):
        answers = [post(scene, key, work), post(scene, key, work, "wait=1"), post(scene, key, work, "wait=0")]
        answers += [post(scene, key, other, "wait=0"), get(scene, answers[0].headers["Location"], "wait=0")]
    assert [202, 202, 409, 422, 200] == [answer.status for answer in answers]
    assert ["RUNNING", "RUNNING"] == [answers[index].body["status"] for index in (1, 4)]
    assert 200 == post(scene, key, work, "wait=20").status
    assert 422 == post(scene, key, other).status


@pytest.mark.parametrize(("payload", "error"), [(DECLINED, "CardDeclined"), (BUG, "ZeroDivisionError")])
def test_a_failure_is_an_answer(scene: Scene, payload: dict[str, Any], error: str):
    """200 with error and cause, to everyone who asks."""
    key = scene.new_id("http")
    first, again = post(scene, key, payload, "wait=20"), post(scene, key, payload)
    assert [(200, "FAILED", error)] * 2 == [
        (answer.status, answer.body["status"], answer.body["error"]) for answer in (first, again)
    ]
    assert first.body["cause"] == again.body["cause"]
    assert "Traceback" not in first.body["cause"]
    assert "stackTrace" not in first.body["cause"]


def test_where_nothing_happened_the_same_request_tries_again(scene: Scene):
    """503 with Retry-After; then the next attempt charges once."""
    key = scene.new_id("http")
    first = post(scene, key, UNREACHABLE, "wait=25")
    assert (503, "5") == (first.status, first.headers["Retry-After"])
    again = post(scene, key, UNREACHABLE, "wait=25")
    assert (200, 2) == (again.status, again.body["attempt"])
    assert 1 == len(scene.charges(scene.key(key)))


def test_a_request_that_died_before_its_lock_is_not_finished(scene: Scene):
    """503, and a GET says so, too; then the next attempt charges once, and everyone gets its result."""
    key = scene.new_id("http")
    held = scene.faults.plan("AcquireLock", Hold(arrives=False), key=scene.key(key))
    assert isinstance(held, Hold)
    location = post(scene, key).headers["Location"]
    held.wait()
    scene.stop(key)
    told = get(scene, location)
    held.go_on.set()
    assert ("FAILED", 0, True) == (told.body["status"], told.body["attempt"], "detail" in told.body)

    again = post(scene, key, VISA, "wait=25")
    assert (200, "COMPLETED", 1) == (again.status, again.body["status"], again.body["attempt"])
    assert 1 == len(scene.charges(scene.key(key)))


def test_a_step_that_fails_after_the_work_is_an_answer(scene: Scene):
    """200, even if its error is RetryLater: the charge has happened, and its record waits for a person."""
    waiting = Waiting.begin(scene)
    waiting.answer_raw({"outcome": "failure", "error": "RetryLater", "cause": ""})
    answer = post(scene, waiting.name, CONFIRMED, "wait=25")
    assert (200, "FAILED", "RetryLater") == (answer.status, answer.body["status"], answer.body["error"])


def test_an_unknown_outcome_is_told_without_naming_resources(scene: Scene):
    """What the record says of executions is for the operator."""
    key = scene.new_id("http")
    answer = post(scene, key, KILLED, "wait=25")
    assert (200, "FAILED") == (answer.status, answer.body["status"])
    assert "arn:" not in json.dumps(answer.body)


@pytest.mark.parametrize("key", HARD_KEYS)
def test_every_key_has_an_address(scene: Scene, key: str):
    """Following Location leads to the request, whatever its key is made of."""
    key = key if key == ".." else key + scene.new_id("")
    location = post(scene, key).headers["Location"]
    read = get(scene, location)
    assert (200, key, "COMPLETED") == (read.status, read.body["requestId"], read.body["status"])


def test_what_is_no_request_starts_nothing(scene: Scene):
    """No key, no payload, too much of it; and an address where nothing is."""
    before = scene.executions("")
    key = scene.new_id("http")
    assert [400, 400, 400, 413, 404] == [
        send(scene, "POST", "/requests", VISA).status,
        post(scene, key, b"{").status,
        post(scene, key, [1]).status,
        post(scene, key, {"text": "x" * 200_000}).status,
        get(scene, f"/requests/{key}", "wait=1").status,
    ]
    assert before == scene.executions("")


def test_two_callers_with_the_same_key_never_meet(guarded: Scene):
    """Same key, same business key, other payload: two requests, and no way to learn of the other's."""
    key, order = guarded.new_id("http"), guarded.new_id("order")
    headers = POSTED["headers"] | {"idempotency-key": f'"{key}"', "prefer": "wait=20"}

    def ask(caller: str, amount: int) -> Answer:
        body = json.dumps(VISA | {"orderId": order, "amount": amount})
        return call(guarded, POSTED, subject(caller), headers=headers, body=body)

    def read(caller: str) -> Answer:
        return call(guarded, READ, subject(caller), rawPath=f"/requests/{key}")

    acme, globex, acme_again, acme_other = (
        ask("acme", 1),
        ask("shop/globex", 2),
        ask("acme", 1),
        ask("acme", 3),
    )

    assert [200, 200, 200, 422] == [answer.status for answer in (acme, globex, acme_again, acme_other)]
    assert [1, 2, 1] == [answer.body["result"]["amount"] for answer in (acme, globex, acme_again)]
    assert [False, False, True] == [answer.body["replayed"] for answer in (acme, globex, acme_again)]
    assert [1, 2] == [read(caller).body["result"]["amount"] for caller in ("acme", "shop/globex")]
    assert 404 == read("initech").status
    prefix = guarded.client.rules.key_prefix
    for token in (f"{prefix}/acme/{order}", f"{prefix}/shop%2Fglobex/{order}"):
        assert 1 == len(guarded.charges(token))


def test_one_caller_s_keys_for_one_order_are_one_operation(guarded: Scene):
    """The business key answers for the second key, within the caller's own requests."""
    order = guarded.new_id("order")
    answers = [
        call(
            guarded,
            POSTED,
            subject("acme"),
            headers=POSTED["headers"] | {"idempotency-key": guarded.new_id("http"), "prefer": "wait=20"},
            body=json.dumps(VISA | {"orderId": order}),
        )
        for _ in range(2)
    ]
    assert [(200, False), (200, True)] == [(answer.status, answer.body["replayed"]) for answer in answers]
    assert 1 == len(guarded.charges(f"{guarded.client.rules.key_prefix}/acme/{order}"))


@pytest.mark.parametrize(
    "authorizer", [None, {}, {"jwt": {"claims": {"sub": " "}}}, {"iam": {"userArn": "x"}}]
)
def test_without_a_caller_nothing_is_started(guarded: Scene, authorizer: object):
    """403, for reading as well."""
    before = guarded.executions("")
    assert [403, 403] == [call(guarded, event, authorizer).status for event in (POSTED, READ)]
    assert before == guarded.executions("")


def test_the_log_counts_and_keeps_payloads_to_itself(scene: Scene):
    """Started and Replays as metrics; no payload, no lock token, no result."""
    key = scene.new_id("http")
    payload = VISA | {"orderId": "order-of-nobody-else"}
    result = [post(scene, key, payload, "wait=20"), post(scene, key, payload)][0].body["result"]

    log = scene.stack.logs(f"{scene.stack.name}-Requests-HttpApiFunction")
    counted = [json.loads(line) for line in log.splitlines() if '"_aws"' in line and line.startswith("{")]

    assert {"Started", "Replays"} <= {name for line in counted for name in line}
    assert {"steponce"} == {line["_aws"]["CloudWatchMetrics"][0]["Namespace"] for line in counted}
    assert key in log
    for word in ("order-of-nobody-else", result["chargeId"], "tok_visa", scene.key(key)):
        assert word not in log


def test_an_address_can_be_typed(scene: Scene):
    """Location is the key itself where the key is made of what an address may hold."""
    key = scene.new_id("http")
    assert f"/requests/{key}" == unquote(post(scene, key).headers["Location"])
