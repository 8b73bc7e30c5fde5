"""`steponce letters`: what it shows takes nothing, and what it puts back is the request that it was."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from moto import mock_aws
from rich.console import Console

from steponce.cli import commands, target
from steponce.cli.letters import _shown
from steponce.local import LocalStack, write_facts
from steponce.local.delivery.mappings import record
from steponce.triggers.dead_letters import IF_NOT_ANSWERED, DeadLetters
from steponce.triggers.found_letters import DeadLetterQueue, Found
from steponce.triggers.messages import find_request, original_of
from steponce.triggers.redrive import HIDDEN_SECONDS, Letters
from steponce.triggers.resend import REQUEST_ID, TRIES, Resender
from steponce.triggers.sqs import MAX_REQUEST_BYTES
from steponce.triggers.start_request import RequestPaths, StartRequest
from tests import covering
from tests.fakes.errors import client_error
from tests.unit.cli.fakes import FACTS, Run
from tests.unit.shared_clients import shared
from tests.unit.triggers.test_dead_letters import FOREIGN
from tests.unit.triggers.world import FAILED_INVOCATION, ORDER, sqs_record

MESSAGE_PATHS, EVENT_PATHS = RequestPaths("messageId", "body"), RequestPaths("id", "detail")
URLS = ("RequestsQueueUrl", "RequestsFifoQueueUrl", "RequestsDeadLetterQueueUrl")
URLS += ("RequestsFifoDeadLetterQueueUrl", "DeadEventsQueueUrl")


REACH = target.Target.reach


class Stack:
    """A stack on AWS, of which only the queues are looked at."""

    name = "s"

    def __init__(self) -> None:
        self.sqs = shared("sqs")
        self.outputs = {name: self._make(name) for name in URLS}

    def boto3(self, service: str) -> Any:
        assert "sqs" == service
        return self.sqs

    def put(self, name: str, body: Any, attributes: Mapping[str, Any] | None = None, **more: str) -> str:
        sent = self.sqs.send_message(
            QueueUrl=self.outputs[name],
            MessageBody=body if isinstance(body, str) else json.dumps(body),
            MessageAttributes=attributes or {},
            **more,
        )
        return str(sent["MessageId"])

    def take(self, name: str) -> list[dict[str, Any]]:
        """What Lambda would get, all of it."""
        found = self.sqs.receive_message(
            QueueUrl=self.outputs[name],
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return [record(one, "arn:aws:sqs:us-east-1:123456789012:q") for one in found.get("Messages", [])]

    def asked(self, name: str = "RequestsQueueUrl") -> list[StartRequest]:
        return [find_request(SQSRecord(one), MESSAGE_PATHS, EVENT_PATHS) for one in self.take(name)]

    def lay_aside(self, message_id: str, reason: str = "PayloadMismatch: x") -> None:
        """As the trigger does."""
        came = SQSRecord(sqs_record(json.dumps(ORDER), message_id))
        url = self.outputs["RequestsDeadLetterQueueUrl"]
        DeadLetters(self.sqs, url).give_up(original_of(came), reason, StartRequest(message_id, ORDER))

    def resender(self) -> Resender:
        """It sends a message again three times."""
        dead = DeadLetters(self.sqs, self.outputs["RequestsDeadLetterQueueUrl"])
        url = self.outputs["RequestsQueueUrl"]
        return Resender(self.sqs, url, dead, tries=3, base_seconds=1, max_seconds=1)

    def _make(self, name: str) -> str:
        fifo = "Fifo" in name
        attributes = {"FifoQueue": "true"} if fifo else {}
        made = self.sqs.create_queue(QueueName=name + (".fifo" if fifo else ""), Attributes=attributes)
        return str(made["QueueUrl"])


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """Every command reaches it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    with mock_aws():
        found = Stack()
        receive = found.sqs.receive_message
        monkeypatch.setattr(
            found.sqs, "receive_message", lambda **given: receive(**given | {"WaitTimeSeconds": 0})
        )
        monkeypatch.setattr(target.Target, "reach", lambda _target: found)
        yield found


@pytest.fixture
def run(run: Run) -> Run:
    """Run `steponce letters` in a pipe: exit code and the one object."""
    return partial(run, "letters")


def test_the_list_says_why_and_takes_nothing(stack: Stack, run: Run):
    """Nor does it show what is in a letter."""
    stack.lay_aside("order-1")
    first, again = run("list"), run("list")
    assert first == again
    code, told = first
    (letter,) = told["letters"]
    assert (0, 0) == (code, told["more"])
    assert ("order-1", "PayloadMismatch: x", "message", "queue", True, 0) == tuple(
        letter[name] for name in ("requestId", "reason", "kind", "queue", "canBePutBack", "tries")
    )
    assert letter["source"].endswith("requests order-1")
    assert "tok_visa" not in json.dumps(told)


def test_a_long_list_is_cut(stack: Stack, run: Run):
    """And says that there are more."""
    for number in range(13):
        stack.lay_aside(f"order-{number}")
    _, told = run("list", "--limit", "11")
    assert (11, 2) == (len(told["letters"]), told["more"])
    assert 13 == len(run("list")[1]["letters"])


def test_all_servers_are_asked_and_others_see_no_letter_for_a_while(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """Without a wait, SQS asks only some servers; a queue's own time-out may be nothing at all."""
    stack.lay_aside("order-1")
    receive, asked = stack.sqs.receive_message, list[dict[str, Any]]()
    monkeypatch.setattr(stack.sqs, "receive_message", lambda **given: asked.append(given) or receive(**given))
    assert 1 == len(run("list")[1]["letters"])
    assert {(1, HIDDEN_SECONDS)} == {(one["WaitTimeSeconds"], one["VisibilityTimeout"]) for one in asked}


def test_show_tells_all_of_one(stack: Stack, run: Run):
    """With the command that comes next; it takes nothing, either."""
    stack.lay_aside("order-1")
    letter_id = run("list")[1]["letters"][0]["id"]
    for _ in range(2):
        code, told = run("show", letter_id)
        assert (0, ORDER) == (code, json.loads(told["body"]))
        assert [f"steponce letters {what} {letter_id}" for what in ("redrive", "delete")] == told["next"]
        assert "PayloadMismatch: x" == told["attributes"]["steponceReason"]


def test_one_letter_is_put_back_and_no_other(stack: Stack, run: Run):
    """It asks for what it asked for, and is gone from the letters."""
    stack.lay_aside("order-1")
    stack.lay_aside("order-2")
    letters = {one["requestId"]: one["id"] for one in run("list")[1]["letters"]}
    code, told = run("redrive", letters["order-2"])
    assert (0, [letters["order-2"]], 1) == (code, [one["id"] for one in told["letters"]], told["more"])
    (asked,) = stack.asked()
    assert ("order-2", ORDER) == (asked.request_id, asked.payload)
    assert ["order-1"] == [one["requestId"] for one in run("list")[1]["letters"]]


def test_the_letters_are_counted_before_one_is_put_back(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """When the count came last and got no answer, the command advised to repeat what was done."""
    stack.lay_aside("order-1")
    (letter,) = run("list")[1]["letters"]
    calls: list[str] = []
    for name in ("delete_message", "get_queue_attributes"):
        made = getattr(stack.sqs, name)
        monkeypatch.setattr(
            stack.sqs, name, lambda *, of=made, called=name, **given: calls.append(called) or of(**given)
        )
    assert 0 == run("redrive", letter["id"])[0]
    assert "delete_message" == calls[-1]


def test_all_letters_are_put_back(stack: Stack, run: Run):
    """Of more than one batch; what a queue gave up by itself keeps the id that the queue gave it."""
    given_up = stack.put("RequestsDeadLetterQueueUrl", ORDER)
    for number in range(11):
        stack.lay_aside(f"order-{number}")
    stack.resender().send_again(StartRequest("tired", ORDER, "key", None, 3), "RetryLater", "x")
    code, told = run("redrive", "--all")
    assert (0, 13, 0) == (code, len(told["letters"]), told["more"])
    asked = stack.asked() + stack.asked()
    assert {given_up, "tired", *(f"order-{n}" for n in range(11))} == {one.request_id for one in asked}
    assert {"key", None} == {one.lock_token for one in asked}
    assert 13 == len(asked)
    assert [] == run("list")[1]["letters"]


def test_letters_that_are_put_back_do_not_stay_in_the_memory(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """Thousands of large ones lie there after an outage."""
    for number in range(35):
        stack.lay_aside(f"order-{number}")
    redrive_all = Letters.redrive_all
    seen: list[weakref.ref[Found]] = []
    alive: list[int] = []

    def watched(letters: Letters) -> Iterator[Found]:
        for found in redrive_all(letters):
            seen.append(weakref.ref(found))
            alive.append(sum(one() is not None for one in seen))
            yield found
            del found

    monkeypatch.setattr(Letters, "redrive_all", watched)

    assert 0 == run("redrive", "--all")[0]
    assert 35 == len(alive)
    assert max(alive) <= 3 * 10  # SQS gives at most ten at a time


def test_a_request_about_a_failed_invocation_is_put_back(stack: Stack, run: Run):
    """Its payload is what Lambda wrote, but the letter is a request's."""
    request = StartRequest("the event's id", FAILED_INVOCATION, tries=3)
    stack.resender().send_again(request, "RetryLater", "x")
    (letter,) = run("list")[1]["letters"]
    assert ("request", True) == (letter["kind"], letter["canBePutBack"])
    assert 0 == run("redrive", letter["id"])[0]
    assert [replace(request, tries=0)] == stack.asked()


def test_a_message_of_a_fifo_queue_goes_back_to_it(stack: Stack, run: Run):
    """In its group and in order; twice within five minutes, too."""
    given = {"MessageGroupId": "g", "MessageDeduplicationId": "d"}
    first = stack.put("RequestsFifoDeadLetterQueueUrl", ORDER, **given)
    assert 0 == run("redrive", "--all")[0]
    (back,) = stack.take("RequestsFifoQueueUrl")
    assert "g" == back["attributes"]["MessageGroupId"]
    assert first == find_request(SQSRecord(back), MESSAGE_PATHS, EVENT_PATHS).request_id
    stack.put("RequestsFifoDeadLetterQueueUrl", ORDER, MessageGroupId="g", MessageDeduplicationId="other")
    assert 1 == len(run("redrive", "--all")[1]["letters"])


def test_a_message_of_a_fair_queue_goes_back_to_it(stack: Stack, run: Run):
    """A standard queue takes message groups, too, and refuses a deduplication id."""
    first = stack.put("RequestsDeadLetterQueueUrl", ORDER, MessageGroupId="customer-1")
    assert 0 == run("redrive", "--all")[0]
    (back,) = stack.take("RequestsQueueUrl")
    assert "customer-1" == back["attributes"]["MessageGroupId"]
    assert "MessageDeduplicationId" not in back["attributes"]
    assert first == find_request(SQSRecord(back), MESSAGE_PATHS, EVENT_PATHS).request_id


def test_of_one_message_group_ten_letters_are_seen_at_once(stack: Stack, run: Run):
    """SQS shows no more of a group, so the others are counted, and an error says where a letter may be."""
    ids = [
        stack.put("RequestsFifoDeadLetterQueueUrl", ORDER, MessageGroupId="g", MessageDeduplicationId=str(n))
        for n in range(13)
    ]
    code, told = run("list")
    assert (0, ids[:10], 3) == (code, [letter["id"] for letter in told["letters"]], told["more"])
    for command in ("show", "redrive"):
        code, told = run(command, ids[-1])
        assert 0 != code
        assert "message group: redrive or delete those first" in told["error"]["message"]
    assert ids == [letter["id"] for letter in run("redrive", "--all")[1]["letters"]]


def test_a_notification_that_did_not_arrive_is_put_back(stack: Stack, run: Run):
    """SNS adds its reason, which is no part of the message."""
    said = {"ErrorCode": "AccessDenied", "ErrorMessage": "no", "RequestID": "r"}
    attributes = {name: {"DataType": "String", "StringValue": value} for name, value in said.items()}
    first = stack.put("RequestsDeadLetterQueueUrl", ORDER, attributes)
    assert "AccessDenied" in run("list")[1]["letters"][0]["reason"]
    assert 0 == run("redrive", "--all")[0]
    (back,) = stack.take("RequestsQueueUrl")
    assert {"steponceLetter"} == set(back["messageAttributes"])
    assert first == find_request(SQSRecord(back), MESSAGE_PATHS, EVENT_PATHS).request_id


def test_a_letter_is_shown_and_deleted_with_its_binary_attributes(stack: Stack, run: Run):
    """In Base64, since they are gone after that."""
    letter_id = stack.put(
        "RequestsDeadLetterQueueUrl", ORDER, {"signed": {"DataType": "Binary", "BinaryValue": b"\x01"}}
    )
    assert {"signed": "AQ=="} == run("show", letter_id)[1]["attributes"]
    assert {"signed": "AQ=="} == run("delete", letter_id, "--yes", "--why", "x")[1]["letter"]["attributes"]


def test_an_attribute_of_the_sender_hides_nothing_of_a_letter(stack: Stack):
    """Though it has the name of what is shown."""
    harmless = {"DataType": "String", "StringValue": "harmless"}
    stack.put("RequestsDeadLetterQueueUrl", ORDER, {"reason": harmless, "id": harmless})
    queue = DeadLetterQueue("queue", stack.outputs["RequestsDeadLetterQueueUrl"], None)
    (found,), _ = Letters(stack.sqs, [queue]).look(1)
    screen = StringIO()
    Console(file=screen, width=200).print(_shown(found))
    shown = screen.getvalue()
    assert found.id in shown
    assert "ReceivedTooOften" in shown
    assert "attribute reason" in shown


@covering.first(3, "kind", FOREIGN)
@covering.first(1, "queue", ["DeadEventsQueueUrl", "RequestsDeadLetterQueueUrl"])
def test_a_record_of_aws_s_own_failures_is_not_put_back(stack: Stack, run: Run, kind: str, queue: str):
    """Not by its id nor with all; the command says why, and what to do with it."""
    body, given = FOREIGN[kind]
    attributes = {
        name: {"DataType": "String", "StringValue": value["stringValue"]} for name, value in given.items()
    }
    letter_id = stack.put(queue, body, attributes)
    (letter,) = run("list")[1]["letters"]
    assert not letter["canBePutBack"]
    code, told = run("redrive", letter_id)
    assert (3, "Refused") == (code, told["error"]["type"])
    shown = run("show", letter_id)[1]
    assert shown["advice"] in told["error"]["message"]
    assert shown["next"] == told["error"]["next"]
    assert [] == run("redrive", "--all")[1]["letters"]
    assert [] == stack.take("RequestsQueueUrl")
    assert 1 == len(run("list")[1]["letters"])


def test_a_record_of_no_known_kind_is_looked_at(stack: Stack, run: Run):
    """Its queue has none that its letters could go back to."""
    letter_id = stack.put("DeadEventsQueueUrl", ORDER)
    (letter,) = run("list")[1]["letters"]
    assert ("record of a kind that is not known here", False) == (letter["kind"], letter["canBePutBack"])
    code, told = run("redrive", letter_id)
    assert (3, "Refused") == (code, told["error"]["type"])
    ways = [f"steponce letters {action} {letter_id}" for action in ("show", "delete")]
    assert ways == told["error"]["next"]
    assert ways[1:] == run("show", letter_id)[1]["next"]
    assert [] == run("redrive", "--all")[1]["letters"]


@pytest.mark.parametrize("local", [("--local",), ()], ids=["told", "the default"])
def test_the_function_of_a_local_stack_is_invoked_there(
    stack: Stack, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, local: tuple[str, ...]
):
    """The AWS CLI would send the event to AWS, with the person's own credentials."""
    write_facts(FACTS, home)
    monkeypatch.setattr(target.Target, "reach", REACH)
    monkeypatch.setattr(target, "not_serving", lambda _endpoints: None)
    monkeypatch.setattr(LocalStack, "attach", lambda _facts: stack)
    letter_id = stack.put("DeadEventsQueueUrl", FAILED_INVOCATION)
    for found in (run("show", letter_id, *local)[1], run("redrive", letter_id, *local)[1]["error"]):
        command, deletes = found["next"]
        assert deletes.startswith(f"steponce letters delete {letter_id}")
        assert command.startswith("aws lambda invoke ")
        assert command.endswith(" --endpoint-url http://127.0.0.1:9 --region r --no-sign-request")


def test_a_letter_that_its_queue_would_not_take_back_keeps_no_other(stack: Stack, run: Run):
    """SQS would refuse it, since the letter's attributes come on top of a message as large as can be."""
    largest = stack.put("RequestsDeadLetterQueueUrl", "x" * MAX_REQUEST_BYTES)
    for number in range(2):
        stack.lay_aside(f"order-{number}")

    assert 2 == len(run("redrive", "--all")[1]["letters"])

    (letter,) = run("list")[1]["letters"]
    assert (largest, False) == (letter["id"], letter["canBePutBack"])
    code, told = run("redrive", largest)
    assert (3, "Refused") == (code, told["error"]["type"])
    assert "851,968 bytes" in told["error"]["message"]
    assert told["error"]["message"].endswith(run("show", largest)[1]["advice"])
    assert [f"steponce letters delete {largest}"] == run("show", largest)[1]["next"]


def test_a_resent_message_that_sqs_has_moved_says_which_request_it_is(stack: Stack, run: Run):
    """A trigger that fails each time writes no letter."""
    resent = {REQUEST_ID: '"order-1"', TRIES: "2"}
    given = {name: {"DataType": "String", "StringValue": text} for name, text in resent.items()}
    stack.put("RequestsDeadLetterQueueUrl", ORDER, given)
    (letter,) = run("list")[1]["letters"]
    assert ("request", "order-1", 2) == tuple(letter[name] for name in ("kind", "requestId", "tries"))
    assert letter["reason"].startswith("ReceivedTooOften")


def test_attributes_that_anybody_may_write_do_not_end_a_list(stack: Stack, run: Run):
    """Python converts no more than 4,300 digits."""
    many = {"steponceTries": {"DataType": "String", "StringValue": "9" * 5_000}}
    stack.put("RequestsDeadLetterQueueUrl", ORDER, many)
    code, told = run("list")
    assert (0, [0]) == (code, [one["tries"] for one in told["letters"]])


def test_a_letter_with_a_key_twice_is_listed_and_shown(stack: Stack, run: Run):
    """Its trigger has refused it. Nobody could look at it if the list did so, too."""
    body = '{"amount": 5, "amount": 900}'
    letter_id = stack.put("RequestsDeadLetterQueueUrl", body)
    code, told = run("list")
    assert (0, [letter_id]) == (code, [one["id"] for one in told["letters"]])
    assert 0 == run("show", letter_id)[0]


def test_a_letter_that_may_have_been_answered_is_left_to_a_person(stack: Stack, run: Run):
    """Put back with all others, it would run its work a second time."""
    stack.lay_aside("order-1", f"AlreadyInProgress: a record may have answered it. {IF_NOT_ANSWERED}")
    stack.lay_aside("order-2")
    code, told = run("redrive", "--all")
    assert (0, ["order-2"], 1) == (code, [one["requestId"] for one in told["letters"]], told["more"])

    (letter,) = run("list")[1]["letters"]
    _, shown = run("show", letter["id"])
    assert shown["advice"].startswith("Find out whether its work took effect.")
    redriven, deleted = (f"steponce letters {verb} {letter['id']}" for verb in ("redrive", "delete"))
    assert [redriven, deleted] == shown["next"]
    assert 0 == run("redrive", letter["id"])[0]
    assert 2 == len(stack.take("RequestsQueueUrl"))


SIGNED = ("--yes", "--by", "alice", "--why", "charged")


@pytest.mark.parametrize("queue", ["RequestsDeadLetterQueueUrl", "DeadEventsQueueUrl"])
def test_one_letter_is_deleted_and_printed_and_no_other(stack: Stack, run: Run, queue: str):
    """Its work took effect, or a person has dealt with what AWS could not deliver."""
    stack.lay_aside("order-1")
    gone = stack.put(queue, FAILED_INVOCATION)
    code, told = run("delete", gone, *SIGNED)
    assert (0, "deleted", "alice", "charged") == (code, told["done"], told["by"], told["why"])
    assert (gone, FAILED_INVOCATION) == (told["letter"]["id"], json.loads(told["letter"]["body"]))
    assert ["order-1"] == [one["requestId"] for one in run("list")[1]["letters"]]
    assert [] == stack.take("RequestsQueueUrl")
    assert (1, "LetterNotFound") == ((again := run("delete", gone, *SIGNED))[0], again[1]["error"]["type"])


def test_a_letter_is_not_deleted_unless_somebody_confirms(stack: Stack, run: Run):
    """Without a terminal, --yes and a reason say that it is meant."""
    stack.lay_aside("order-1")
    (letter,) = run("list")[1]["letters"]
    for missing in ([], ["--yes"]):
        assert 2 == run("delete", letter["id"], *missing)[0]
    assert 1 == len(run("list")[1]["letters"])


def test_two_operators_share_the_letters(stack: Stack, run: Run):
    """What one holds, the other does not get; it is back when the first one is done."""
    stack.lay_aside("order-1")
    letters = Letters(stack.sqs, [DeadLetterQueue("queue", stack.outputs[URLS[2]], stack.outputs[URLS[0]])])
    going = letters.redrive_all()
    taken = next(going)
    assert (1, "LetterNotFound") == ((told := run("redrive", taken.id))[0], told[1]["error"]["type"])
    assert [] == list(going)
    assert 1 == len(stack.take("RequestsQueueUrl"))


def test_letters_that_another_operator_looks_at_are_counted(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Otherwise the second operator would hear that there is none."""
    stack.lay_aside("order-1")
    stack.take(URLS[2])
    assert ([], 1) == ((told := run("list")[1])["letters"], told["more"])
    assert ([], 1) == ((told := run("redrive", "--all")[1])["letters"], told["more"])

    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    commands.run(["letters", "list"])
    assert "No letter can be seen. About 1 may be hidden" in capsys.readouterr().out


def test_a_death_between_sending_and_deleting_leaves_a_letter_and_one_request(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """Put back twice, it asks twice for one id."""
    stack.lay_aside("order-1")

    def die(**_given: Any) -> None:
        raise client_error("ServiceUnavailable", status=503)

    with monkeypatch.context() as dying:
        dying.setattr(stack.sqs, "delete_message", die)
        assert 4 == run("redrive", "--all")[0]
    assert 1 == len(run("redrive", "--all")[1]["letters"])
    assert ["order-1", "order-1"] == [one.request_id for one in stack.asked()]


BROKEN = {
    "throttled": ("send_message", ("RequestThrottled", 403), "Letter {} may be put back."),
    "refused": ("send_message", ("AccessDenied", 403), ""),
    "not deleted": (
        "delete_message",
        ("AccessDenied", 403),
        "Letter {} is put back, and may not be deleted.",
    ),
    "not received": ("receive_message", ("AccessDenied", 403), ""),
}


@covering.first(1, "done", [0, 2])
@pytest.mark.parametrize(("call", "error", "doubt"), BROKEN.values(), ids=BROKEN)
def test_a_redrive_that_breaks_off_says_what_is_put_back(
    stack: Stack,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    error: tuple[str, int],
    doubt: str,
    done: int,
):
    """It said what AWS had said alone, as if nothing were done."""
    for number in range(3):
        stack.lay_aside(f"order-{number}")
    before = [letter["id"] for letter in run("list")[1]["letters"]]
    answers, made = getattr(stack.sqs, call), []

    def break_off(**given: Any) -> Any:
        made.append(given)
        if len(made) > (bool(done) if call == "receive_message" else done):
            raise client_error(*error[:1], status=error[1])
        return answers(**given)

    with monkeypatch.context() as breaking:
        breaking.setattr(stack.sqs, call, break_off)
        code, told = run("redrive", "--all")

    left = [letter["id"] for letter in run("list")[1]["letters"]]
    put_back, said = len(before) - len(left), told["error"]["message"]
    assert (4, 3 if done and call == "receive_message" else done) == (code, put_back)
    assert bool(put_back) == (f"Put back until then: {put_back}, and deleted from" in said)
    assert doubt.format(*left[:1]) in said
    if not put_back and not doubt:
        assert "AccessDenied" == told["error"]["type"]
    else:
        assert ["steponce letters list"] == told["error"]["next"]
    assert len(left) == len(run("redrive", "--all")[1]["letters"])


@pytest.mark.parametrize("stays_hidden", [False, True], ids=["", "and stays hidden"])
@pytest.mark.parametrize(("call", "error", "doubt"), BROKEN.values(), ids=BROKEN)
def test_a_redrive_of_one_letter_that_breaks_off_says_whether_it_is_put_back(
    stack: Stack,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    error: tuple[str, int],
    doubt: str,
    stays_hidden: bool,
):
    """Its request may run, and its letter is still there. Another refusal at the end must not hide that."""
    stack.lay_aside("order-1")

    def refuse(**_given: Any) -> Any:
        raise client_error(*error[:1], status=error[1])

    (before,) = run("list")[1]["letters"]
    monkeypatch.setattr(stack.sqs, call, refuse)
    if stays_hidden:
        cannot_give_back(stack, monkeypatch, *DENIED)
    code, told = run("redrive", before["id"])

    said = told["error"]["message"]
    assert 4 == code
    assert doubt.format(before["id"]) in said
    assert bool(doubt) == ("to redrive a letter twice does no harm" in said)


THROTTLED, DENIED = ("RequestThrottled", 403), ("AccessDenied", 403)


def cannot_give_back(stack: Stack, monkeypatch: pytest.MonkeyPatch, code: str, status: int) -> None:
    """From now on, no letter can be made visible again."""

    def refuse(**_given: Any) -> None:
        raise client_error(code, status=status)

    monkeypatch.setattr(stack.sqs, "change_message_visibility_batch", refuse)


@pytest.mark.parametrize("why", [THROTTLED, DENIED], ids=["throttled", "denied"])
@covering.first(1, "everything", [False, True], ids=["one", "all"])
def test_what_is_put_back_is_told_also_if_the_others_stay_hidden(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch, why: tuple[str, int], everything: bool
):
    """They come back by themselves; the same command would not find the letter again."""
    stack.lay_aside("order-1")
    stack.lay_aside("order-2")
    stack.put("RequestsDeadLetterQueueUrl", "x" * MAX_REQUEST_BYTES)
    put_back = [one for one in run("list")[1]["letters"] if one["canBePutBack"]][: 2 if everything else 1]
    cannot_give_back(stack, monkeypatch, *why)

    code, told = run("redrive", "--all" if everything else put_back[0]["id"])

    assert (0, put_back) == (code, told["letters"])
    assert [one["requestId"] for one in put_back] == [one.request_id for one in stack.asked()]
    code, told = run("redrive", put_back[0]["id"])
    assert (1, True) == (code, "may have been redriven or deleted" in told["error"]["message"])


@covering.first(2, "why", [THROTTLED, DENIED], ids=["throttled", "denied"])
@pytest.mark.parametrize("command", ["list", "show"])
def test_what_was_found_is_shown_unless_each_command_would_hide_it(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch, why: tuple[str, int], command: str
):
    """A permission that is missing is named, since nothing was done yet."""
    stack.lay_aside("order-1")
    (letter,) = run("list")[1]["letters"]
    cannot_give_back(stack, monkeypatch, *why)

    code, told = run(command, *([letter["id"]] if command == "show" else []))

    if why == DENIED:
        assert (4, "AccessDenied") == (code, told["error"]["type"])
    else:
        assert (0, letter["id"]) == (code, (told if command == "show" else told["letters"][0])["id"])


def test_poison_that_comes_back_at_once_does_not_keep_it_busy(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """A command that puts all back ends, whatever the trigger does with them."""
    stack.lay_aside("order-1")
    send = stack.sqs.send_message

    def lay_aside_again(**given: Any) -> Any:
        return send(**given | {"QueueUrl": stack.outputs["RequestsDeadLetterQueueUrl"]})

    monkeypatch.setattr(stack.sqs, "send_message", lay_aside_again)
    code, told = run("redrive", "--all")
    assert (0, 10) == (code, len(told["letters"]))


@covering.first(2, "arguments", [["redrive"], ["redrive", "x", "--all"], [], ["list", "--limit", "0"]])
@pytest.mark.usefixtures("stack")
def test_wrong_usage_is_said(run: Run, arguments: list[str]):
    """And nothing is done."""
    assert 2 == run(*arguments)[0]


@pytest.mark.usefixtures("stack")
def test_an_unknown_letter_is_not_found(run: Run):
    """With the command that lists them."""
    for command in ("show", "redrive"):
        code, told = run(command, "nothing")
        assert (1, "LetterNotFound") == (code, told["error"]["type"])
        assert ["steponce letters list"] == told["error"]["next"]
        assert "try again" in told["error"]["message"]


def test_people_get_a_table(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Without what steers a terminal."""
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    monkeypatch.setenv("COLUMNS", "160")
    stack.lay_aside("order-1", "PayloadMismatch: \x1b[31m")
    assert 0 == commands.run(["letters", "list"])
    out = capsys.readouterr().out
    assert "order-1" in out
    assert "\x1b[31m" not in out
    assert 0 == commands.run(["letters", "redrive", "--all"])
    assert "Put back 1 letter." in capsys.readouterr().out
    assert 0 == commands.run(["letters", "list"])
    assert "There are no dead letters." in capsys.readouterr().out
