"""
The whole application, deployed by `sam deploy` onto ministack and spoken to by plain clients.

Wiring only: that what arrives at one end comes out at the other. Nothing about idempotency is concluded here,
which ministack gets wrong.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.step import AwaitingStep
from tests.real.ministack import STREAM, Application, deployed
from tests.real.programs import tools_python
from tests.real.sam import REGION, build
from tests.rules.documents import monitoring, transformed_template

pytestmark = [pytest.mark.usefixtures("on_ministack"), pytest.mark.timeout(600)]

RESOURCES = transformed_template()["Resources"]
SOURCE = "com.example.shop"
DEAD_LETTERS = ("RequestsDeadLetterQueue", "RequestsFifoDeadLetterQueue", "DeadEventsQueue")
ORDER = {"orderId": "1", "amount": 500, "card": "tok_visa"}


def of_kind(kind: str) -> list[str]:
    """The logical ids of the template's resources of one kind, those that SAM makes of events too."""
    return [key for key, resource in RESOURCES.items() if resource["Type"] == kind]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Built for the Python that ministack runs in, with every condition of the template true that can be."""
    folder = tmp_path_factory.mktemp("application")
    parameters = {
        "EventSources": SOURCE,
        "ScheduleExpression": "rate(1 minute)",
        "FifoQueue": "yes",
        "BucketName": "orders",
        "HttpAccess": "open",
        "Dashboard": "yes",
        "ResultBucket": "on",
    }
    with deployed(build(folder, tools_python()), folder, **parameters) as application:
        yield application


def charge(app: Application, request_id: str) -> dict[str, Any] | None:
    """The charge that a request has led to."""
    rows = app.boto3("dynamodb").scan(TableName=app.outputs["ChargesTable"])["Items"]
    return next((row for row in rows if row["requestId"]["S"] == request_id), None)


def waiting_step(app: Application, request_id: str) -> AwaitingStep | None:
    """The open step of a request."""
    steps = AwaitingSteps(app.boto3("dynamodb"), app.outputs["AwaitingStepsTable"])
    return next((step for step in steps.open() if step.request_id == request_id), None)


def begin(app: Application, **more: Any) -> str:
    """Start an order with the client."""
    order = f"order-{uuid.uuid4().hex[:12]}"
    app.client().start(order, ORDER | more)
    return order


def test_an_order_started_by_the_client_ends_as_a_charge(app: Application):
    """State machine, tables and functions find each other."""
    order = begin(app)

    done = app.client().wait(order, timeout_seconds=60)

    assert ("COMPLETED", "1") == (done.status, done.result["orderId"])
    assert charge(app, order)


def test_a_large_result_comes_back_from_its_bucket(app: Application):
    """The function finds the bucket and may write there; the client reads what the record names."""
    order = begin(app, card="tok_statement", statementBytes=300_000)

    done = app.client().wait(order, timeout_seconds=60)

    assert ("COMPLETED", 300_084) == (done.status, done.kept_bytes)
    assert 300_000 == len(done.result["statement"])


@pytest.mark.parametrize("queue", ["RequestsQueueUrl", "RequestsFifoQueueUrl"])
def test_a_message_in_the_queue_ends_as_a_charge(app: Application, queue: str):
    """Its id is the request's."""
    in_group = group() if "Fifo" in queue else {}

    sent = app.boto3("sqs").send_message(
        QueueUrl=app.outputs[queue], MessageBody=json.dumps(ORDER), **in_group
    )

    assert app.eventually(lambda: charge(app, sent["MessageId"]))


def test_a_notification_ends_as_a_charge(app: Application):
    """From the topic into the queue; the notification's id is the request's."""
    sent = app.boto3("sns").publish(TopicArn=app.outputs["RequestsTopicArn"], Message=json.dumps(ORDER))

    assert app.eventually(lambda: charge(app, sent["MessageId"]))


def test_an_event_on_the_bus_ends_as_a_charge(app: Application):
    """Its id is the request's."""
    sent = put_event(app, SOURCE, "OrderPlaced", ORDER)

    assert app.eventually(lambda: charge(app, sent))


def test_an_answer_in_the_queue_lets_the_order_go_on(app: Application):
    """The answers' queue has its function, and the function the waiting step."""
    order = begin(app, confirm=True)
    step = app.eventually(lambda: waiting_step(app, order))
    answer = {"awaitingStepId": step.id, "answer": {"outcome": "success", "output": {"confirmed": True}}}

    app.boto3("sqs").send_message(QueueUrl=app.outputs["AnswersQueueUrl"], MessageBody=json.dumps(answer))

    assert "COMPLETED" == app.client().wait(order, timeout_seconds=60).status


def test_whoever_listens_hears_of_a_waiting_step(app: Application):
    """AwaitingStepRecorded reaches the target of a rule that somebody else has put on the bus."""
    heard = listen(app, {"source": ["steponce"], "detail-type": ["AwaitingStepRecorded"]})

    order = begin(app, confirm=True)

    event = app.eventually(lambda: next((e for e in heard() if e["detail"]["requestId"] == order), None))
    assert app.eventually(lambda: waiting_step(app, order)).id == event["detail"]["awaitingStepId"]
    assert event["detail"]["link"].startswith(app.outputs["CallbacksUrl"])


@pytest.mark.parametrize("rule", of_kind("AWS::Events::Rule"))
def test_the_rule_reaches_its_function(app: Application, rule: str):
    """An event of the rule's pattern, or the time of its schedule, invokes every target."""
    targets = [target["Arn"]["Fn::GetAtt"] for target in RESOURCES[rule]["Properties"]["Targets"]]
    functions = [target if isinstance(target, str) else target[0] for target in targets]
    functions = [function.partition(".")[0] for function in functions]
    before = {function: app.invocations(function) for function in functions}

    fire(app, app.boto3("events").describe_rule(Name=app.resources[rule]))

    for function in functions:
        assert app.eventually(lambda name=function: app.invocations(name) > before[name], seconds=90)


@pytest.mark.parametrize("mapping", of_kind("AWS::Lambda::EventSourceMapping"))
def test_the_mapping_reaches_its_function(app: Application, mapping: str):
    """What arrives in the queue or stream invokes the function."""
    function = RESOURCES[mapping]["Properties"]["FunctionName"]["Ref"]
    before = app.invocations(function)
    made = app.boto3("lambda").get_event_source_mapping(UUID=app.resources[mapping])

    send(app, made["EventSourceArn"])

    assert app.eventually(lambda: app.invocations(function) > before)


def test_the_alarms_and_the_dashboard_watch_this_stack(app: Application):
    """The nested stack is made, and what it is handed are names of what was deployed."""
    cloudwatch = app.boto3("cloudwatch")
    alarms = {alarm["AlarmName"]: alarm for alarm in cloudwatch.describe_alarms()["MetricAlarms"]}
    queues = {
        one["Value"] for alarm in alarms.values() for one in alarm["Dimensions"] if one["Name"] == "QueueName"
    }

    made = [*monitoring()["Resources"].values(), *RESOURCES.values()]
    expected = [item for item in made if item["Type"] == "AWS::CloudWatch::Alarm"]
    assert len(expected) - 1 == len(alarms)  # without metric math, which ministack does not take
    assert {app.outputs[f"{name}Url"].rsplit("/", 1)[-1] for name in DEAD_LETTERS} < queues
    assert {frozenset({app.outputs["AlarmsTopicArn"]})} == {
        frozenset(alarm["AlarmActions"] + alarm["InsufficientDataActions"]) for alarm in alarms.values()
    }
    assert cloudwatch.get_dashboard(DashboardName=f"steponce-requests-{REGION}")["DashboardBody"]


def fire(app: Application, rule: dict[str, Any]) -> None:
    """Do what the rule waits for; a schedule's time comes by itself."""
    if "EventPattern" not in rule:
        return
    pattern = json.loads(rule["EventPattern"])
    if pattern["source"] == ["aws.states"]:
        begin(app, card="tok_bug")  # an execution that fails
    else:
        put_event(app, pattern["source"][0], pattern.get("detail-type", ["Something"])[0], ORDER)


def group() -> dict[str, str]:
    """What a FIFO queue wants with a message: its group, and an id of its own."""
    return {"MessageGroupId": "one", "MessageDeduplicationId": uuid.uuid4().hex}


def send(app: Application, source: str) -> None:
    """Put something new into a queue or a stream."""
    service, name = source.split(":")[2], source.rsplit(":", 1)[-1]
    order = json.dumps(ORDER | {"orderId": uuid.uuid4().hex})
    if service == "kinesis":
        app.boto3("kinesis").put_record(StreamName=STREAM, PartitionKey="1", Data=order.encode())
        return
    in_group = group() if name.endswith(".fifo") else {}
    sqs = app.boto3("sqs")
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"], MessageBody=order, **in_group)


def put_event(app: Application, source: str, detail_type: str, detail: dict[str, Any]) -> str:
    """Put an event on the default bus; its id."""
    entry = {"Source": source, "DetailType": detail_type, "Detail": json.dumps(detail)}
    return str(app.boto3("events").put_events(Entries=[entry])["Entries"][0]["EventId"])


def listen(app: Application, pattern: dict[str, Any]) -> Any:
    """Make a rule with a queue behind it; what is called answers the events that have come since."""
    sqs, events, name = app.boto3("sqs"), app.boto3("events"), f"listener-{uuid.uuid4().hex[:8]}"
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name=name, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=name, Targets=[{"Id": "listener", "Arn": arn}])
    received: list[dict[str, Any]] = []

    def heard() -> list[dict[str, Any]]:
        messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        received.extend(json.loads(message["Body"]) for message in messages)
        return received

    return heard
