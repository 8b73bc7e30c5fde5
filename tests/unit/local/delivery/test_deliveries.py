"""What the local stack delivers by itself: messages to functions, events to targets, schedules."""

import datetime
import json
import threading
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from steponce.local import LocalStack
from steponce.local.delivery.event_bus import make_event
from steponce.local.delivery.mappings import failures, record
from steponce.local.delivery.schedules import Schedule, seconds_between
from steponce.local.delivery.targets import target_input, transformed
from steponce.local.errors import TemplateError
from steponce.local.template.plan import Deliveries, RulePlan, TargetPlan
from steponce.local.template.reader import read_plan
from steponce.local.template.rules import PREDEFINED
from tests.patience import PATIENCE_SECONDS, eventually

TEMPLATE = Path(__file__).parents[1] / "fixture" / "deliveries.yaml"


@pytest.fixture(scope="module")
def stack():
    """The fixture, without its flood. A test could move its time, so everything runs as there."""
    with LocalStack.from_template(TEMPLATE, name="notes", controls=True) as running:
        yield running


def notes(stack):
    """The events that the function has got."""
    lines = stack.logs(stack.outputs["TakeNote"]).splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("NOTE ")]


def records(stack, body):
    """The records with this body, of all batches so far."""
    return [one for event in notes(stack) for one in event.get("Records", []) if one["body"] == body]


def unique(word):
    """A body that no other test has."""
    return f"{word} {uuid.uuid4().hex[:8]}"


def send(stack, queue, body, **options):
    return stack.boto3("sqs").send_message(QueueUrl=stack.outputs[queue], MessageBody=body, **options)


def bodies(stack, queue):
    """Take what a queue has, if anything."""
    sqs, url = stack.boto3("sqs"), stack.outputs[queue]
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    for message in found:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return [message["Body"] for message in found]


def collected(stack, queue, number):
    """The next so many messages of a queue."""
    found = []
    eventually(lambda: found.extend(bodies(stack, queue)) or len(found) >= number)
    assert number == len(found)
    return found


def waiting(stack, queue):
    """How many messages a queue holds, seen or unseen."""
    counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = stack.boto3("sqs").get_queue_attributes(QueueUrl=stack.outputs[queue], AttributeNames=counts)
    return sum(int(answer["Attributes"][count]) for count in counts)


def put(stack, source, detail, **options):
    """Put one event on the default bus; its id."""
    entry = {"Source": source, "DetailType": "Test", "Detail": json.dumps(detail), **options}
    return stack.boto3("events").put_events(Entries=[entry])["Entries"][0]["EventId"]


def run(stack, end):
    """Start the state machine; its execution's ARN."""
    started = stack.boto3("stepfunctions").start_execution(
        stateMachineArn=stack.outputs["Flow"], input=json.dumps({"end": end})
    )
    return started["executionArn"]


# -- Queues ------------------------------------------------------------------------------------------


def test_a_message_reaches_its_function_in_lambdas_shape_and_is_deleted(stack):
    """With attributes of both kinds, and the hash that SQS computes."""
    body = unique("hello")
    attributes = {
        "tenant": {"DataType": "String", "StringValue": "acme"},
        "blob": {"DataType": "Binary", "BinaryValue": b"\x00\x01"},
    }
    sent = send(stack, "Tasks", body, MessageAttributes=attributes)
    (got,) = eventually(lambda: records(stack, body))
    assert sent["MessageId"] == got["messageId"]
    assert sent["MD5OfMessageBody"] == got["md5OfBody"]
    assert ("aws:sqs", "us-east-1") == (got["eventSource"], got["awsRegion"])
    assert stack.outputs["TasksArn"] == got["eventSourceARN"]
    assert "1" == got["attributes"]["ApproximateReceiveCount"]
    assert 60_000 > abs(time.time() * 1000 - int(got["attributes"]["SentTimestamp"]))
    lists = {"stringListValues": [], "binaryListValues": []}
    assert {"dataType": "String", "stringValue": "acme", **lists} == got["messageAttributes"]["tenant"]
    assert {"dataType": "Binary", "binaryValue": "AAE=", **lists} == got["messageAttributes"]["blob"]
    eventually(lambda: waiting(stack, "Tasks") == 0)
    assert 1 == len(records(stack, body))


def test_what_is_reported_comes_back_alone_and_ends_with_the_dead(stack):
    """After a try in two seconds, not in the queue's three minutes; the rest of its batch is done."""
    good, bad = unique("good"), unique("fail")
    entries = [{"Id": str(index), "MessageBody": body} for index, body in enumerate([good, bad])]
    stack.boto3("sqs").send_message_batch(QueueUrl=stack.outputs["Tasks"], Entries=entries)
    assert [bad] == eventually(lambda: bodies(stack, "Dead"))
    tries = [one["attributes"]["ApproximateReceiveCount"] for one in records(stack, bad)]
    assert ["1", "2"] == tries
    assert 1 == len(records(stack, good))
    assert 0 == waiting(stack, "Tasks")


def test_an_error_fails_the_whole_batch_and_is_in_the_engines_log(stack):
    """Every message of it comes back; the log says whose, and nothing of what they hold."""
    bad = unique("raise")
    send(stack, "Tasks", bad)
    assert [bad] == eventually(lambda: bodies(stack, "Dead"))
    assert "notes-TakeNoteFunction failed on 1 messages of notes-Tasks." in stack.logs("engine")
    assert bad not in stack.logs("engine")


def test_no_message_of_a_group_overtakes_another(stack):
    """While the first one fails, the second waits or comes along."""
    first, second = unique("raise"), unique("later")
    group = unique("group").replace(" ", "-")
    for body in (first, second):
        send(stack, "Orders", body, MessageGroupId=group)
    eventually(lambda: len(records(stack, first)) >= 3)
    stack.boto3("sqs").purge_queue(QueueUrl=stack.outputs["Orders"])
    batches = [[one["body"] for one in event.get("Records", [])] for event in notes(stack)]
    assert [[first, second]] == [batch for batch in batches if second in batch][:1]
    assert all(first in batch for batch in batches if second in batch)
    assert group == records(stack, first)[0]["attributes"]["MessageGroupId"]
    assert stack.outputs["OrdersArn"].endswith(".fifo")


def test_no_message_is_lost_among_many_threads(stack):
    """Those that are sent while others are deleted too."""
    sent = [unique("many") for _ in range(200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda body: send(stack, "Tasks", body), sent))
    eventually(lambda: waiting(stack, "Tasks") == 0)
    got = [one["body"] for event in notes(stack) for one in event.get("Records", [])]
    assert sorted(sent) == sorted(set(got) & set(sent))
    assert [1] * 200 == [got.count(body) for body in sent]


def test_a_function_sends_to_a_queue_of_the_stack(stack):
    """The address in its environment is one on this machine."""
    body = unique("letter")
    send(stack, "Tasks", f"forward {body}")
    assert [body] == eventually(lambda: bodies(stack, "Inbox"))
    assert stack.outputs["Inbox"].startswith("http://127.0.0.1:")


@pytest.mark.parametrize("topic", ["News", "RawNews"])
def test_a_notification_reaches_the_queues_function(stack, topic):
    """In SNS's envelope, or raw where the subscription says so."""
    body = unique("news")
    stack.boto3("sns").publish(
        TopicArn=stack.outputs[topic],
        Message=body,
        MessageAttributes={"tenant": {"DataType": "String", "StringValue": "acme"}},
    )

    def found():
        return [one for event in notes(stack) for one in event.get("Records", []) if body in one["body"]]

    (got,) = eventually(found)
    if topic == "RawNews":
        assert (body, "acme") == (got["body"], got["messageAttributes"]["tenant"]["stringValue"])
    else:
        envelope = json.loads(got["body"])
        assert (body, stack.outputs["News"]) == (envelope["Message"], envelope["TopicArn"])
        assert "acme" == envelope["MessageAttributes"]["tenant"]["Value"]


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (set(), b""),
        (set(), b"null"),
        (set(), b"{}"),
        (set(), b'{"batchItemFailures": null}'),
        ({"b"}, b'{"batchItemFailures": [{"itemIdentifier": "b"}]}'),
        ({"a", "b"}, b'{"batchItemFailures": [{"itemIdentifier": ""}]}'),
        ({"a", "b"}, b'{"batchItemFailures": [{"itemIdentifier": null}]}'),
        ({"a", "b"}, b'{"batchItemFailures": [{"itemIdentifier": "c"}]}'),
        ({"a", "b"}, b'{"batchItemFailures": [{"wrong": "a"}]}'),
        ({"a", "b"}, b'{"batchItemFailures": [{"itemIdentifier": {}}]}'),
        ({"a", "b"}, b'"text"'),
        ({"a", "b"}, b"no json"),
    ],
)
def test_a_report_that_cannot_be_fails_the_batch(expected, answer):
    """As Lambda takes it; no report at all is success."""
    assert expected == failures(answer, {"a", "b"})


def test_a_record_has_no_hash_of_attributes_that_are_not_there():
    """As SQS says it, and so Lambda."""
    message = {"MessageId": "m", "ReceiptHandle": "r", "Body": "b", "MD5OfBody": "h", "Attributes": {}}
    assert "md5OfMessageAttributes" not in record(message, "arn:aws:sqs:eu-west-1:1:q")
    assert "eu-west-1" == record(message, "arn:aws:sqs:eu-west-1:1:q")["awsRegion"]


# -- Rules -------------------------------------------------------------------------------------------


def changes(stack, arn):
    """The status events of one execution that have reached the function."""
    return [event for event in notes(stack) if event.get("resources") == [arn]]


def test_a_failed_execution_reaches_the_rules_function(stack):
    """In AWS's shape; one that succeeds does not, and neither does a start."""
    good, bad = run(stack, "good"), run(stack, "bad")
    (event,) = eventually(lambda: changes(stack, bad))
    described = stack.boto3("stepfunctions").describe_execution(executionArn=bad)
    detail = event["detail"]
    assert ("aws.states", "Step Functions Execution Status Change") == (
        event["source"],
        event["detail-type"],
    )
    assert (bad, stack.outputs["Flow"]) == (detail["executionArn"], detail["stateMachineArn"])
    assert ("FAILED", "Bad", "as told") == (detail["status"], detail["error"], detail["cause"])
    assert ('{"end": "bad"}', {"included": True}) == (detail["input"], detail["inputDetails"])
    assert (None, None, 0) == (detail["output"], detail["outputDetails"], detail["redriveCount"])
    assert int(described["startDate"].timestamp() * 1000) == detail["startDate"]
    assert int(described["stopDate"].timestamp() * 1000) == detail["stopDate"]
    assert [] == changes(stack, good)


def test_a_stopped_execution_says_so_once(stack):
    """Whoever stops it again changes nothing."""
    states = stack.boto3("stepfunctions")
    arn = run(stack, "never")
    for _ in range(2):
        states.stop_execution(executionArn=arn, error="Stopped", cause="by a test")
    (event,) = eventually(lambda: changes(stack, arn))
    assert ("ABORTED", "Stopped", "by a test") == tuple(
        event["detail"][key] for key in ("status", "error", "cause")
    )


@pytest.mark.parametrize(
    ("size", "has_input", "has_output"), [(100, True, True), (150_000, False, True), (260_000, False, False)]
)
def test_an_event_leaves_out_what_is_too_large(size, has_input, has_output):
    """First the input, then the output, as escaped they are."""
    from steponce.local.moto_patches.status import detail_of  # all of the interpreter: a second

    ended = SimpleNamespace(
        exec_arn="arn",
        state_machine_arn="arn",
        name="large",
        status="SUCCEEDED",
        exec_status="SUCCEEDED",
        start_date=datetime.datetime.now(datetime.UTC),
        stop_date=None,
        execution_input=json.dumps("x" * size),
        output="x" * size,
        error=None,
        cause=None,
    )
    detail = detail_of(ended)
    assert (has_input, has_output) == (detail["input"] is not None, detail["output"] is not None)
    assert {"included": has_input} == detail["inputDetails"]
    assert {"included": has_output} == detail["outputDetails"]


def test_an_event_reaches_the_queues_of_a_rule(stack):
    """Whole, and as a template makes it; one that does not match reaches nobody."""
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    put(stack, "shop.eu", {"amount": 100})
    put(stack, "market", {"amount": 500})
    event_id = put(stack, "shop.eu", {"amount": 500}, Time=moment, Resources=["arn:x"])
    whole, made = sorted(collected(stack, "Inbox", 2), key=len, reverse=True)
    assert {
        "version": "0",
        "id": event_id,
        "detail-type": "Test",
        "source": "shop.eu",
        "account": "123456789012",
        "time": "2026-01-02T03:04:05Z",
        "region": "us-east-1",
        "resources": ["arn:x"],
        "detail": {"amount": 500},
    } == json.loads(whole)
    assert {"id": event_id, "text": "500 euros", "amount": 500, "rule": ["arn:x"]} == json.loads(made)


def test_a_rule_starts_a_state_machine(stack):
    """With what its template makes of the event, and each delivery under a name of its own."""
    event_id = put(stack, "flow", {"end": "good"})
    states = stack.boto3("stepfunctions")

    def started():
        found = states.list_executions(stateMachineArn=stack.outputs["Flow"])["executions"]
        return [one for one in found if one["name"].startswith(event_id) and one["status"] == "SUCCEEDED"]

    (one,) = eventually(started)
    assert event_id != one["name"]
    described = states.describe_execution(executionArn=one["executionArn"])
    assert {"end": "good"} == json.loads(described["input"])


def test_a_function_that_fails_is_tried_three_times(stack):
    """Then the event is given up, with its id in the engine's log."""
    event_id = put(stack, "notes", {"raise": True})
    eventually(lambda: f"gave up event {event_id}" in stack.logs("engine"))
    assert 3 == sum(event.get("id") == event_id for event in notes(stack))
    line = next(line for line in stack.logs("engine").splitlines() if event_id in line)
    assert line.startswith("Rule notes-NoteRule gave up")
    assert line.endswith("notes-TakeNoteFunction: ValueError")
    records = []
    eventually(lambda: records.extend(map(json.loads, bodies(stack, "GivenUp"))) or records)
    (record,) = records
    assert event_id == record["requestPayload"]["id"]
    assert ("RetriesExhausted", 3) == (
        record["requestContext"]["condition"],
        record["requestContext"]["approximateInvokeCount"],
    )
    assert "ValueError" == record["responsePayload"]["errorType"]


def test_a_direct_call_that_nobody_waits_for_is_tried_three_times(stack):
    """A failed event was gone after the first try, and nothing told of it."""
    call = {"FunctionName": stack.outputs["TakeNote"], "InvocationType": "Event"}
    stack.boto3("lambda").invoke(**call, Payload=json.dumps({"id": "direct", "detail": {"raise": True}}))

    given_up = []
    eventually(lambda: given_up.extend(bodies(stack, "GivenUp")) or given_up)

    assert ["direct"] == [json.loads(record)["requestPayload"]["id"] for record in given_up]
    assert 3 == sum(event.get("id") == "direct" for event in notes(stack))
    assert "TakeNoteFunction gave up an event: ValueError" in stack.logs("engine")


@pytest.mark.parametrize(
    ("expected", "template"),
    [
        ({"a": 'x"y'}, '{"a": <text>}'),
        ({"a": 'say x"y'}, '{"a": "say <text>"}'),
        ({"a": {"b": 1}}, '{"a": <object>}'),
        ({"a": "", "b": ""}, '{"a": <gone>, "b": "<gone>"}'),
        ({"a": "1 < 2"}, '{"a": "1 < 2"}'),
        ('Payload of {b:1} with gone  and x"y', '"Payload of <object> with gone <gone> and <text>"'),
        ("[HIGH,größer] and true", '"<list> and <truth>"'),
    ],
)
def test_a_template_stays_json(expected, template):
    """Whatever the values are, inside of texts and outside, as AWS's answers are."""
    values = {
        "text": 'x"y',
        "object": {"b": 1},
        "list": ["HIGH", "größer"],
        "truth": True,
        "gone": "",
    }
    assert expected == json.loads(transformed(template, values))


@pytest.mark.parametrize("value", [{"b": 1}, ["HIGH"]])
def test_json_in_the_quotes_of_a_json_template_is_not_sent(value):
    """AWS keeps its quotes, which breaks the template's JSON."""
    with pytest.raises(ValueError, match="<it> in quotes"):
        transformed('{"a": "all <it>"}', {"it": value})


_EVENT = make_event("shop", "Sold", {"amount": 5}, region="eu-west-1", resources=[], event_id="1")
_RULE = RulePlan("tick", "arn:aws:events:eu-west-1:1:rule/tick", None, None, [])


def test_a_path_that_finds_nothing_is_an_empty_text():
    """Outside of the template's texts, too."""
    target = TargetPlan(
        "a", None, {"a": "$.detail.gone", "b": "$.detail.amount"}, '{"a": <a>, "b": <b>}', None
    )
    assert {"a": "", "b": 5} == json.loads(target_input(_RULE, target, _EVENT))


def test_the_predefined_variables_are_the_event_and_the_rule():
    """The event without its detail has `detailType`, as AWS spells it there."""
    template = "{" + ", ".join(f'"{name}": <{name}>' for name in PREDEFINED) + "}"
    found = json.loads(target_input(_RULE, TargetPlan("a", None, {}, template, None), _EVENT))
    datetime.datetime.strptime(found.pop("aws.events.event.ingestion-time"), "%Y-%m-%dT%H:%M:%S%z")
    head = {key: value for key, value in _EVENT.items() if key not in ("detail", "detail-type")}
    assert {
        "aws.events.rule-arn": _RULE.arn,
        "aws.events.rule-name": "tick",
        "aws.events.event": {**head, "detailType": "Sold"},
        "aws.events.event.json": _EVENT,
    } == found


# -- Schedules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "expression"),
    [
        (60, "rate(1 minute)"),
        (300, "rate(5 minutes)"),
        (3600, "rate(1 hour)"),
        (172800, "rate(2 days)"),
        (None, "cron(0 2 * * ? *)"),
        (None, "rate(5 fortnights)"),
    ],
)
def test_a_rate_is_so_many_seconds(expected, expression):
    """What is no rate has none."""
    assert expected == seconds_between(expression)


def test_a_schedule_fires_again_and_again():
    """With a Scheduled Event that names its rule, first after one period."""
    rule = RulePlan("tick", "arn:aws:events:eu-west-1:1:rule/tick", None, "rate(1 minute)", [])
    fired, twice = [], threading.Event()

    def deliver(given, event):
        fired.append((given, event, time.monotonic()))
        if len(fired) == 2:
            twice.set()
            threading.Event().wait()  # its thread would fire for as long as the other tests run

    started = time.monotonic()
    Schedule(rule, 0.1, "eu-west-1", deliver).start()
    assert twice.wait(PATIENCE_SECONDS)
    (first_rule, event, first), (_, _, second) = fired[:2]
    assert rule == first_rule
    assert ("aws.events", "Scheduled Event", {}) == (event["source"], event["detail-type"], event["detail"])
    assert ([rule.arn], "eu-west-1") == (event["resources"], event["region"])
    assert 0.1 <= first - started
    assert 0.1 <= second - first


def test_an_events_time_is_in_utc():
    """Whatever zone it was given in."""
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    assert "2025-12-31T22:00:00Z" == make_event("s", "t", {}, region="r", resources=[], time=moment)["time"]


# -- What is made, and what is not -------------------------------------------------------------------


def read(**parameters):
    return read_plan(TEMPLATE, parameters=parameters, stack_name="notes", region="us-east-1")


def test_what_a_condition_leaves_out_is_not_there():
    """Neither queue nor mapping, rule nor route; and all of them with the condition."""
    without, with_flood = read(), read(WithFlood="yes")
    assert len(without.queues) + 1 == len(with_flood.queues)
    assert [len(api.routes) for api in without.apis] == [3, 1]
    assert [len(api.routes) for api in with_flood.apis] == [4, 1]
    for one in ("mappings", "rules"):
        assert len(getattr(without.deliveries, one)) + 1 == len(getattr(with_flood.deliveries, one))


def test_a_dead_letter_queue_comes_before_its_source():
    """For SQS wants it to be there."""
    names = [queue.name for queue in read().queues]
    assert names.index("notes-Dead") < names.index("notes-Tasks")


def changed(folder, replaced):
    """A plan of the fixture with some texts replaced."""
    text = TEMPLATE.read_text()
    for old, new in replaced.items():
        assert 1 == text.count(old)
        text = text.replace(old, new)
    for name in ("functions/take_note", "end_as_told.asl.json"):
        text = text.replace(name, str(TEMPLATE.parent / name))
    (folder / "template.yaml").write_text(text)
    return read_plan(folder / "template.yaml", stack_name="notes", region="us-east-1")


REPORTS = "FunctionResponseTypes: [ReportBatchItemFailures]"


def test_a_filter_is_refused(tmp_path):
    """Better than to invoke a function for what it should never see."""
    with pytest.raises(TemplateError, match=r"not supported .*: FilterCriteria \(TakeNoteFunctionTasks\)"):
        changed(tmp_path, {REPORTS: "FilterCriteria: { Filters: [{ Pattern: '{}' }] }"})


@pytest.mark.parametrize(("expected", "line"), [(False, "Enabled: false"), (True, "Enabled: true")])
def test_a_mapping_that_is_off_polls_nothing(tmp_path, expected, line):
    """On is what it is by default."""
    mappings = changed(tmp_path, {REPORTS: line}).deliveries.mappings
    assert expected == ("notes-Tasks" in [mapping.queue.name for mapping in mappings])


def test_a_route_to_no_integration_is_named(tmp_path):
    """API Gateway would refuse it too."""
    with pytest.raises(TemplateError, match="ReadRoute: Target names no integration"):
        changed(tmp_path, {"integrations/${PathIntegration}": "integrations/${Stage}"})


def test_a_sam_route_with_an_authorizer_is_closed_as_well(tmp_path):
    """Whether SAM or the template itself writes the route."""
    signed = "{ Path: /signed, Method: get, Auth: { Authorizer: AWS_IAM } }"
    plan = changed(
        tmp_path,
        {
            "Parameters:\n": "Globals: { HttpApi: { Auth: { EnableIamAuthorizer: true } } }\nParameters:\n",
            "Events:\n": f"Events:\n        Signed: {{ Type: HttpApi, Properties: {signed} }}\n",
        },
    )
    found = {route.path: route.authorization for api in plan.apis for route in api.routes}
    assert ("AWS_IAM", "NONE") == (found["/signed"], found["/notes"])


def test_without_deliveries_nothing_is_taken_away():
    """The engine is told of no mapping, rule or schedule; the queues are made all the same."""
    told = {}
    for delivers in (False, True):
        one = LocalStack.from_template(TEMPLATE, name="silent", deliveries=delivers)
        one.endpoints = dict.fromkeys(("aws", "dynamodb", "lambda", "states"), "http://127.0.0.1:9")
        told[delivers] = one._instructions(one._plan, {}).deliveries
        assert "silent-Tasks" in [queue.name for queue in one._plan.queues]
    assert Deliveries() == told[False] != told[True]


# -- Native HTTP APIs --------------------------------------------------------------------------------


def request(method, url, body=None):
    """Status and text of an answer."""
    asked = urllib.request.Request(url, method=method, data=body)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_a_native_route_reaches_its_function(stack):
    """By the function's ARN, and by the path form; the address in the outputs is the local one."""
    assert (200, "POST /notes {}") == request("POST", stack.outputs["Url"], b"{}")
    assert (200, 'GET /notes/{noteId} {"noteId": "7"}') == request("GET", f"{stack.outputs['Url']}/7")
    assert stack.endpoints["http"] == stack.outputs["Endpoint"]
    assert 404 == request("POST", f"{stack.outputs['Endpoint']}/flood", b"{}")[0]


def test_each_api_has_its_own_address_and_routes(stack):
    """Of two APIs with one route, one got the requests of both, and the default route of one took all."""
    url = f"{stack.outputs['OtherEndpoint']}/notes/7"
    assert (200, "$default {}") == request("GET", url)
    assert 404 == request("GET", f"{stack.outputs['Endpoint']}/others")[0]


def test_a_route_with_an_authorizer_is_closed_here(stack):
    """The answer says which parameter opens the API."""
    status, text = request("DELETE", f"{stack.outputs['Endpoint']}/secrets/a/b")
    assert 401 == status
    assert "JWT" in text
    assert "HttpAccess=open" in text
