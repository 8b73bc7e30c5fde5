"""Outside systems answer a waiting workflow, each answer exactly once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steponce.callbacks.answer import Answer
from steponce.callbacks.step import ANSWERED, LATE, PENDING
from tests import covering
from tests.patience import eventually, signs_of_life
from tests.workflow.faults import Answer as HttpAnswer
from tests.workflow.faults import Call, refuse
from tests.workflow.scene import Scene
from tests.workflow.waiting import BEAT, CONFIRMED, NO, YES, Waiting, http, invoke, steps, waiting_step

EVENTS = Path(__file__).parents[2] / "events"
MAYBE = {"outcome": "success", "output": {"confirmed": "perhaps"}}


def test_an_answer_continues_the_workflow(scene: Scene):
    """The confirmation is part of the result, and one charge was made."""
    waiting = Waiting.begin(scene)

    assert (200, "accepted") == verdict(waiting.post(YES))

    done = scene.client.wait(waiting.name, timeout_seconds=100)
    assert ("COMPLETED", {"confirmed": True}) == (done.status, done.result["confirmation"])
    assert 1 == len(scene.charges(scene.key(waiting.name)))
    assert (ANSWERED, Answer.parse(YES)) == (waiting.record().status, waiting.record().answer)


@pytest.mark.parametrize("way", ["link", "invocation", "queue", "token"])
def test_every_way_of_answering_leads_to_the_same_verdicts(scene: Scene, way: str):
    """However the first answer came, the same again is a duplicate and another one a conflict."""
    waiting = Waiting.begin(scene)
    if way == "link":
        waiting.post(YES)
    elif way == "invocation":
        waiting.answer(YES)
    elif way == "queue":
        invoke(scene, batch(message(waiting, YES)))
    else:
        waiting.answer_raw(YES)

    assert "COMPLETED" == scene.client.wait(waiting.name, timeout_seconds=100).status
    again = verdict(waiting.post({"output": {"confirmed": True}, "outcome": "success"}))
    assert (200, "duplicate") == again if way != "token" else again in [(200, "accepted"), (200, "duplicate")]
    assert (409, "conflict") == verdict(waiting.post(NO))
    assert (410, "late") == verdict(waiting.post(BEAT))
    assert "duplicate" == waiting.answer(YES)


def test_a_raw_answer_is_found_in_the_history(scene: Scene):
    """Another answer than the one that came with the token is a conflict, and the record says what came."""
    waiting = Waiting.begin(scene)
    waiting.answer_raw(YES)
    scene.closed(waiting.name)

    assert "conflict" == waiting.answer(NO)
    assert (ANSWERED, Answer.parse(YES)) == (waiting.record().status, waiting.record().answer)
    assert "duplicate" == waiting.answer(YES)


def test_a_failure_is_recorded_on_the_lock(scene: Scene):
    """With its error and cause; a person has to look."""
    waiting = Waiting.begin(scene)

    waiting.post(NO)

    failed = scene.client.wait(waiting.name, timeout_seconds=100)
    assert ("FAILED", "Refused", "by the provider") == (failed.status, failed.error, failed.cause)
    assert scene.on_open_index(scene.lock(scene.key(waiting.name)))


def test_a_failure_may_be_a_final_answer(takeover_scene: Scene):
    """Its error name is among FinalErrors: off the open index, replayed to everyone."""
    waiting = Waiting.begin(takeover_scene)

    waiting.post({"outcome": "failure", "error": "OutOfStock"})

    failed = takeover_scene.client.wait(waiting.name, timeout_seconds=100)
    assert ("FAILED", "OutOfStock", None) == (failed.status, failed.error, failed.cause)
    assert takeover_scene.lock(takeover_scene.key(waiting.name)).open_status is None


def test_a_failure_that_says_nothing_stays_one(scene: Scene):
    """Error and cause are missing, in the record and in the duplicate's verdict."""
    waiting = Waiting.begin(scene)

    waiting.post({"outcome": "failure"})

    failed = scene.client.wait(waiting.name, timeout_seconds=100)
    assert ("FAILED", None, None) == (failed.status, failed.error, failed.cause)
    assert "duplicate" == waiting.answer({"outcome": "failure"})


def test_retry_later_after_the_charge_does_not_release_the_lock(scene: Scene):
    """The charge has happened: by link the name is refused, and by the raw token it waits for a person."""
    waiting = Waiting.begin(scene)

    assert 400 == waiting.post({"outcome": "failure", "error": "RetryLater"})[0]
    waiting.answer_raw({"outcome": "failure", "error": "RetryLater", "cause": ""})

    scene.client.wait(waiting.name, timeout_seconds=100)
    assert "FAILED" == scene.lock(scene.key(waiting.name)).status


def test_nobody_answers_in_time(scene: Scene):
    """The time-out is on record for a person, and every later answer is late."""
    hasty = scene.hasty_client("AwaitConfirmation")
    waiting = Waiting.begin(scene, client=hasty)

    failed = hasty.wait(waiting.name, timeout_seconds=100)

    assert ("FAILED", True) == (failed.status, failed.error in ("States.Timeout", "States.HeartbeatTimeout"))
    assert scene.on_open_index(scene.lock(scene.key(waiting.name)))
    assert [(410, "late")] * 3 == [verdict(waiting.post(late)) for late in (YES, NO, BEAT)]
    assert LATE == waiting.record().status


def test_a_step_says_by_when_it_wants_a_sign_of_life(scene: Scene):
    """Its page tells people to answer by then, and not by the end of the time-out."""
    waiting = Waiting.begin(scene)

    assert waiting.step.answer_by < waiting.step.expires_at

    assert (200, "accepted") == verdict(waiting.post(YES))


def test_heartbeats_keep_a_step_waiting(scene: Scene):
    """Longer than the heartbeat's time alone would; then it is answered."""

    hasty = scene.hasty_client("AwaitConfirmation")

    def lives():
        waiting = Waiting.begin(scene, client=hasty)
        if not signs_of_life(lambda: verdict(waiting.post(BEAT)) == (200, "accepted"), limit=4):
            return False
        if (200, "accepted") != verdict(waiting.post(YES)):
            return False
        return "COMPLETED" == hasty.wait(waiting.name, timeout_seconds=100).status

    scene.eventually(lives)


def test_heartbeats_do_not_outlast_the_time_out(scene: Scene):
    """A step that only ever gets signs of life ends as well."""
    hasty = scene.hasty_client("AwaitConfirmation")
    waiting = Waiting.begin(scene, client=hasty)
    verdicts = []

    def refused():
        verdicts.append(verdict(waiting.post(BEAT)))
        return verdicts[-1] != (200, "accepted")

    eventually(refused, pause=0.5)
    assert (410, "late") == verdicts[-1]
    assert "States.Timeout" == hasty.wait(waiting.name, timeout_seconds=100).error


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("resolve_awaiting_step", {"verdict": "unknown"}),
        ("answer_from_queue", {"batchItemFailures": []}),
        ("answer_from_link", {"statusCode": 403}),
    ],
)
def test_the_example_events_are_answered(scene: Scene, event: str, told: dict):
    """Nobody waits for them, and the link's signature is made up."""
    answer = invoke(scene, json.loads((EVENTS / f"{event}.json").read_text()))
    assert told.items() <= answer.items()


def test_a_recorder_that_cannot_be_reached_is_tried_again(scene: Scene):
    """The retry has a new token, and that is the one on record."""
    name = scene.new_id("waits")
    scene.faults.plan("AwaitConfirmation", refuse, key=name)

    waiting = Waiting.begin(scene, name)
    tokens = [call.body["taskToken"] for call in scene.faults.calls if call.state == "AwaitConfirmation"]

    assert 2 == len(set(tokens))
    assert tokens[-1] == waiting.record().task_token
    assert (200, "accepted") == verdict(waiting.post(YES))


def test_a_recorder_that_is_slow_cannot_put_an_old_token_back(scene: Scene):
    """The newest token stays, whoever writes last."""
    name = scene.new_id("waits")

    def lost(_call, forward):
        forward()
        return refuse(_call, forward)

    scene.faults.plan("AwaitConfirmation", lost, key=name)
    scene.client.start(name, CONFIRMED)
    calls = scene.eventually(lambda: recorded(scene, name) if len(recorded(scene, name)) == 2 else None)
    waiting = Waiting(scene, name, scene.eventually(lambda: waiting_step(scene, name)))
    scene.eventually(lambda: waiting.record().task_token == calls[1]["taskToken"])

    old = scene.stack.boto3("lambda").invoke(
        FunctionName="steponce-RecordAwaitingStepFunction", Payload=json.dumps(calls[0])
    )

    assert "StepNameTaken" == json.loads(old["Payload"].read())["errorType"]  # which nobody reads
    assert calls[1]["taskToken"] == waiting.record().task_token
    assert (200, "accepted") == verdict(waiting.post(YES))


def test_a_recorder_that_fails_leaves_its_error_on_the_lock(scene: Scene):
    """The table is gone: the step never waits, and a person learns why."""
    name = scene.new_id("waits")

    def broken(_call, _forward):
        body = json.dumps({"errorType": "TableIsGone", "errorMessage": "no such table"}).encode()
        return HttpAnswer(200, [("X-Amz-Function-Error", "Unhandled")], body)

    scene.faults.plan("AwaitConfirmation", broken, key=name)

    failed = scene.run(name, CONFIRMED)

    assert ("FAILED", "TableIsGone") == (failed.status, failed.error)
    assert scene.on_open_index(scene.lock(scene.key(name)))


def test_an_answer_to_an_old_run_never_continues_a_new_one(takeover_scene: Scene):
    """The first run died waiting; its successor waits under an id of its own."""
    scene = takeover_scene
    key = scene.new_id("key")
    old = Waiting.begin(scene, f"{key}-a", key)
    scene.stop(old.name)
    scene.clock.let_an_hour_pass()
    scene.client.start(f"{key}-b", CONFIRMED, lock_token=key)
    new = Waiting(scene, f"{key}-b", scene.eventually(lambda: waiting_step(scene, f"{key}-b")))

    assert old.step.id != new.step.id
    assert (410, "late") == verdict(old.post(YES))
    assert PENDING == new.record().status
    assert (200, "accepted") == verdict(new.post(MAYBE))
    assert {"confirmed": "perhaps"} == scene.client.wait(f"{key}-b").result["confirmation"]


def test_many_answers_at_once_have_one_winner(scene: Scene):
    """One is accepted; the others like it are duplicates, those unlike it conflicts."""
    waiting = Waiting.begin(scene)
    answers = [YES, MAYBE] * 8

    with ThreadPoolExecutor(16) as pool:
        verdicts = list(pool.map(waiting.answer, answers))

    arrived = scene.client.wait(waiting.name, timeout_seconds=100).result["confirmation"]
    alike = [v for a, v in zip(answers, verdicts, strict=True) if a["output"] == arrived]
    unlike = [v for a, v in zip(answers, verdicts, strict=True) if a["output"] != arrived]
    assert {"accepted": 1, "duplicate": 7} == Counter(alike)
    assert {"conflict": 8} == Counter(unlike)


@pytest.mark.parametrize(("asked", "told"), [(YES, "duplicate"), (NO, "conflict"), (BEAT, "late")])
def test_a_claimed_answer_is_finished_by_whoever_finds_it(scene: Scene, asked: dict, told: str):
    """Its resolver died between the claim and the send: the workflow gets that answer, and no other."""
    waiting = Waiting.begin(scene)
    assert steps(scene).claim(waiting.step, Answer.parse(YES), "a call that died")

    assert told == waiting.answer(asked)
    assert {"confirmed": True} == scene.client.wait(waiting.name).result["confirmation"]


def test_an_answer_that_was_sent_and_not_written_down_is_settled_from_the_history(scene: Scene):
    """Its resolver died between the send and the last write."""
    waiting = Waiting.begin(scene)
    assert steps(scene).claim(waiting.step, Answer.parse(YES), "a call that died")
    waiting.answer_raw(YES)
    scene.closed(waiting.name)

    assert "conflict" == waiting.answer(NO)
    assert "duplicate" == waiting.answer(YES)
    assert ANSWERED == waiting.record().status


def test_a_stopped_execution_takes_no_answer(scene: Scene):
    """Late, and the record says so."""
    waiting = Waiting.begin(scene)
    scene.stop(waiting.name)

    assert (410, "late") == verdict(waiting.post(YES))
    assert LATE == waiting.record().status


def test_a_step_that_nobody_recorded_is_unknown(scene: Scene):
    """Also behind a genuine link."""
    waiting = Waiting.begin(scene)
    assert (404, "unknown") == verdict(waiting.post(YES, waiting.link(step_id="as_of_nobody")))
    waiting.post(YES)


MALFORMED = [
    (400, "InvalidAnswer", b"{not json"),
    (400, "InvalidAnswer", b"[]"),
    (400, "InvalidAnswer", b""),
    (400, "InvalidAnswer", b'{"outcome": "perhaps"}'),
    (400, "InvalidAnswer", b'{"outcome": "success"}'),
    (400, "InvalidAnswer", b'{"outcome": "success", "output": 1, "error": "x"}'),
    (400, "InvalidAnswer", b'{"outcome": "failure", "error": 5}'),
    (400, "InvalidAnswer", b'{"outcome": "failure", "error": "States.DataLimitExceeded"}'),
    (400, "InvalidAnswer", b'{"outcome": "failure", "error": "States.Runtime"}'),
    (400, "InvalidAnswer", b'{"outcome": "failure", "error": "Lambda.ServiceException"}'),
    (400, "InvalidAnswer", b'{"outcome": "failure", "error": "Unavailable"}'),
    (400, "InvalidAnswer", b'{"outcome": "failure", "error": "Steponce.NothingHappened"}'),
    (400, "InvalidAnswer", b"[" * 20_000),
    (413, "OutputTooLarge", json.dumps({"outcome": "success", "output": "x" * 262_143}).encode()),
    (413, "OutputTooLarge", json.dumps({"outcome": "failure", "error": "x" * 257}).encode()),
]


@covering.rows(
    "status,error,body",
    {str(number): row for number, row in enumerate(MALFORMED)},
    [lambda row: row[0], lambda row: b"States." in row[2], lambda row: row[2][:1]],
)
def test_a_malformed_answer_changes_nothing(scene: Scene, status: int, error: str, body: bytes):
    """It is told what is wrong, and the step goes on waiting."""
    waiting = Waiting.begin(scene)

    told, said = waiting.post(body)

    assert (status, error, True) == (told, said["error"], bool(said["message"]))
    assert PENDING == waiting.record().status
    assert (200, "accepted") == verdict(waiting.post(YES))


def test_a_link_that_is_not_genuine_is_refused(scene: Scene):
    """Forged, expired, for another step, or for another outcome; GET and POST alike."""
    waiting = Waiting.begin(scene)
    genuine = waiting.link()
    bad = {
        "forged": genuine[:-1] + ("0" if genuine[-1] != "0" else "1"),
        "unsigned": genuine.partition("?")[0],
        "longer": genuine.replace("expires=", "expires=9"),
        "wider": waiting.link(("failure",)).replace("allow=failure", "allow=failure%2Csuccess"),
        "another's": genuine.replace(waiting.step.id, waiting.step.id[:-1] + "x"),
        "expired": waiting.link(expires_at="2026-01-01T00:00:00.000Z"),
        "garbled": genuine.replace("expires=", "expires=abc"),
    }

    assert dict.fromkeys(bad, 403) == {name: waiting.post(YES, link)[0] for name, link in bad.items()}
    assert dict.fromkeys(bad, 403) == {name: http("GET", link)[0] for name, link in bad.items()}
    assert 403 == waiting.post(YES, waiting.link(("failure", "heartbeat")))[0]
    assert PENDING == waiting.record().status
    waiting.post(YES)


def test_looking_at_a_link_changes_nothing(scene: Scene):
    """Mail scanners follow links: GET shows a page with buttons, as often as you like."""
    waiting = Waiting.begin(scene)

    pages = [http("GET", waiting.link()) for _ in range(3)]

    assert [200] * 3 == [status for status, _ in pages]
    assert "confirmation" in pages[0][1]
    assert '<button name="outcome" value="success">' in pages[0][1]
    assert PENDING == waiting.record().status

    status, page = waiting.submit("success")
    assert (200, True) == (status, "has arrived. This is settled." in page)
    assert 409 == waiting.submit("failure")[0]
    assert "has its answer. This is settled." in http("GET", waiting.link())[1]


def test_a_page_offers_only_what_the_link_allows(scene: Scene):
    """And submitting something else is refused."""
    waiting = Waiting.begin(scene)
    link = waiting.link(("failure",))

    assert 'value="success"' not in http("GET", link)[1]
    assert 403 == waiting.submit("success", link)[0]
    assert 200 == waiting.submit("failure", link)[0]


def test_a_form_that_is_none_is_refused_with_a_page(scene: Scene):
    """A person pressed the button, or somebody made a form up."""
    waiting = Waiting.begin(scene)
    kind = "application/x-www-form-urlencoded"

    garbled = http("POST", waiting.link(), b"outcome=\xff", kind)
    forged = http("POST", waiting.link() + "0", b"outcome=success", kind)

    assert [400, 403] == [garbled[0], forged[0]]
    assert ["<!doctype html>"] * 2 == [page.splitlines()[0] for _, page in (garbled, forged)]
    assert PENDING == waiting.record().status
    waiting.post(YES)


@covering.first(
    2,
    "error",
    ["Unavailable", "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory", "Lambda.Unknown"],
)
@pytest.mark.parametrize("has_recorded", [True, False])
def test_a_recorder_that_fails_or_dies_is_tried_again(scene: Scene, error: str, has_recorded: bool):
    """The charge has happened: neither a throttled table nor a dead function must fail the order."""
    name = scene.new_id("waits")
    body = json.dumps({"errorType": error, "errorMessage": "by a test"}).encode()

    def failed(_call: Call, forward: Callable[[], HttpAnswer]) -> HttpAnswer:
        if has_recorded:
            forward()
        return HttpAnswer(200, [("X-Amz-Function-Error", "Unhandled")], body)

    scene.faults.plan("AwaitConfirmation", failed, key=name)

    waiting = Waiting.begin(scene, name)

    assert (200, "accepted") == verdict(waiting.post(YES))
    assert "COMPLETED" == scene.client.wait(name, timeout_seconds=100).status


def test_a_link_outlives_the_rotation_of_its_key(scene: Scene):
    """The key before the newest is valid, too."""
    waiting = Waiting.begin(scene)
    link = waiting.link()
    scene.stack.boto3("secretsmanager").put_secret_value(
        SecretId=scene.stack.outputs["CallbackKey"], SecretString="a new key"
    )

    assert 200 == http("GET", link)[0]
    assert (200, "accepted") == verdict(waiting.post(YES, link))


def test_a_queue_gives_back_only_what_is_no_answer(scene: Scene):
    """Verdicts of every kind are acknowledged; poison comes back, and ends in the dead-letter queue."""
    one, two = Waiting.begin(scene), Waiting.begin(scene)

    back = invoke(
        scene,
        batch(
            message(one, YES),
            "not json",
            message(one, YES),
            message(one, NO),
            json.dumps({"awaitingStepId": "as_of_nobody", "answer": YES}),
            json.dumps({"awaitingStepId": two.step.id, "answer": {"outcome": "perhaps"}}),
            message(two, NO),
        ),
    )

    assert {"batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m5"}]} == back
    assert "COMPLETED" == scene.client.wait(one.name, timeout_seconds=100).status
    assert "Refused" == scene.client.wait(two.name, timeout_seconds=100).error


def test_the_task_token_is_told_to_nobody(scene: Scene):
    """Not in a log, a link, a page, an answer or an error, whatever happens."""
    waiting = Waiting.begin(scene)
    token = waiting.record().task_token
    said = [waiting.link(), *http("GET", waiting.link())[1:], str(waiting.step), repr(waiting.record())]
    for answer in (BEAT, b"{", YES, YES, NO):
        said.append(json.dumps(waiting.post(answer)[1]))
    said.append(json.dumps(invoke(scene, {"awaitingStepId": waiting.step.id, "answer": {"outcome": 1}})))
    functions = ("RecordAwaitingStepFunction", "ResolveAwaitingStepFunction", "ChargeCardFunction")
    logs = [scene.stack.logs(f"steponce-{name}") for name in functions]

    assert all(logs)
    assert [] == [text for text in said + logs if token in text]


ACTIONS = st.permutations(["yes", "yes again", "no", "beat", "raw maybe", "stop"])


@settings(max_examples=6, suppress_health_check=list(HealthCheck))
@given(order=ACTIONS)
def test_in_every_order_the_workflow_gets_at_most_one_outcome(scene: Scene, order: list[str]):
    """The first accepted one; and every verdict is true."""
    waiting = Waiting.begin(scene)
    told: dict[str, str] = {}
    for action in order:
        if action == "stop":
            scene.stack.boto3("stepfunctions").stop_execution(executionArn=scene.arn(waiting.name))
        elif action == "raw maybe":
            try:
                waiting.answer_raw(MAYBE)
                told[action] = "accepted"
            except scene.stack.boto3("stepfunctions").exceptions.TaskTimedOut:
                told[action] = "refused"
        else:
            told[action] = waiting.answer({"yes": YES, "yes again": YES, "no": NO, "beat": BEAT}[action])
    scene.closed(waiting.name)

    accepted = [name for name, v in told.items() if v == "accepted" and name != "beat"]
    got = outcome_of(scene, waiting.name)
    assert len(accepted) <= 1
    assert (got is not None) == bool(accepted)
    if accepted:
        assert got == {"yes": YES, "yes again": YES, "no": NO, "raw maybe": MAYBE}[accepted[0]]
    for name, answer in (("yes", YES), ("yes again", YES), ("no", NO)):
        expected = {"late"} if got is None else {"accepted", "duplicate"} if got == answer else {"conflict"}
        assert told[name] in expected, (order, told)


def verdict(answer: tuple[int, dict]) -> tuple[int, str]:
    return answer[0], answer[1].get("verdict", answer[1].get("error"))


def message(waiting: Waiting, answer: dict) -> str:
    return json.dumps({"awaitingStepId": waiting.step.id, "answer": answer})


def batch(*bodies: str) -> dict:
    """What SQS hands to a function."""
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "receiptHandle": f"r{number}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1769860800000"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:steponce-AnswersQueue",
                "awsRegion": "us-east-1",
            }
            for number, body in enumerate(bodies)
        ]
    }


def recorded(scene: Scene, name: str) -> list[dict]:
    """What the recording function was called with for one request."""
    calls = [call.body for call in scene.faults.calls if call.state == "AwaitConfirmation"]
    return [body for body in calls if body["requestId"] == name]


def outcome_of(scene: Scene, name: str) -> dict | None:
    """The answer that the waiting state got, as its history has it."""
    events = scene.stack.boto3("stepfunctions").get_execution_history(
        executionArn=scene.arn(name), maxResults=1000
    )["events"]
    begun = next(
        e["id"] for e in events if e.get("stateEnteredEventDetails", {}).get("name") == "AwaitConfirmation"
    )
    for event in events:
        details = event.get("taskSucceededEventDetails", {})
        if event["id"] > begun and details.get("resource", "").endswith("waitForTaskToken"):
            return {"outcome": "success", "output": json.loads(details["output"])}
        if event["id"] > begun and event["type"] == "TaskFailed":
            details = event["taskFailedEventDetails"]
            return {"outcome": "failure", "error": details["error"], "cause": details["cause"]}
    return None
