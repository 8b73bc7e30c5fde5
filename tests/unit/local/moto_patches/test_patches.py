"""Where the embedded engine would differ from AWS without its patches."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.local import LocalStack
from steponce.local.moto_patches.times import aws_time
from tests.patience import PATIENCE_SECONDS, eventually, signs_of_life
from tests.unit.local.moto_patches.workflows import (
    TEMPLATE,
    Workflows,
    lambda_task,
    put_task,
    waiting_task,
)

AWS_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z")
LIMIT = 262_144


@pytest.fixture(scope="module")
def workflows(small_stack):
    return Workflows(small_stack)


CAUGHT = {"Type": "Pass", "Result": "caught", "End": True}
CATCH_ALL = [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}]


def test_the_name_of_an_exception_class_is_the_error_name(workflows):
    """What the function raises is what Catch and DescribeExecution see, its payload is the cause."""
    found = workflows.run({"Call": lambda_task()}, {"raise": "no money"})
    assert ("FAILED", "CardDeclined") == (found["status"], found["error"])
    assert "no money" == json.loads(found["cause"])["errorMessage"]


@pytest.fixture(scope="module")
def late_answers(tmp_path_factory):
    """Where a file with the name of a slow execution lets its function answer."""
    return tmp_path_factory.mktemp("late")


@pytest.fixture(scope="module")
def slow_executions(workflows, late_answers):
    """Executions that run out of time after a second, started together so that the tests wait once."""

    def stays(name):
        return {"until": str(late_answers / name)}

    late = {
        "TimeoutSeconds": 1,
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.e", "Next": "On"}],
    }
    hasty = lambda_task()
    hasty["Parameters"]["FunctionName"] = "small-HastyFunction"
    wait = waiting_task()
    del wait["TimeoutSeconds"]
    late_wait = waiting_task(**late)
    late_wait["Parameters"]["Payload"] |= stays("token too late")
    repeat = {"Type": "Fail", "ErrorPath": "$.e.Error", "CausePath": "$.e.Cause"}
    linger = {"Type": "Wait", "Seconds": 1, "End": True}
    yield {
        "function timed out": workflows.start({"Call": hasty}, {"sleep": 60}),
        "error passed on": workflows.start(
            {"Call": lambda_task(**late), "On": repeat}, stays("error passed on")
        ),
        "answer too late": workflows.start(
            {"Call": lambda_task(**late), "On": linger}, stays("answer too late")
        ),
        "token too late": workflows.start({"Call": late_wait, "On": linger}),
        "machine timed out": workflows.start(
            {"Call": lambda_task()}, stays("machine timed out"), TimeoutSeconds=1
        ),
        "time-out by path": workflows.start({"W": {**wait, "TimeoutSecondsPath": "$.n"}}, {"n": 1}),
        "heartbeat by path": workflows.start(
            {"W": {**wait, "HeartbeatSecondsPath": "$.n", "TimeoutSeconds": 9}}, {"n": 1}
        ),
    }
    for name in ("error passed on", "answer too late", "token too late", "machine timed out"):
        (late_answers / name).touch()


def test_a_wait_for_a_time_ends_no_sooner(workflows):
    """To the second above, in UTC wherever the laptop is; and a text that is no time fails the execution."""
    wait = {"Type": "Wait", "TimestampPath": "$.until", "End": True}
    until = datetime.now(UTC) + timedelta(seconds=1.7)
    for at in (until, until - timedelta(days=1)):
        found = workflows.run({"Linger": wait}, {"until": times.to_text(at)})
        assert "SUCCEEDED" == found["status"]
        assert times.from_text(times.to_text(at)) <= found["stopDate"]
    wrongs = ["noon", "2026-01-31T12:00:00", "2026-02-30T12:00:00Z", 5, None]
    wrongs += ["2026-01-31 12:00:00+00:00", "2026-01-31T12:00Z", "20260131T120000Z"]
    for wrong in wrongs:
        assert "States.Runtime" == workflows.run({"Linger": wait}, {"until": wrong})["error"]


@pytest.mark.parametrize("until", ["2026-01-01T12:00:00.5Z", "2026-01-01T12:00:00+01:00"])
def test_a_definition_may_have_a_time_with_an_offset_or_a_fraction(workflows, until):
    """As a path may find one."""
    found = workflows.run({"Linger": {"Type": "Wait", "Timestamp": until, "End": True}})
    assert "SUCCEEDED" == found["status"]


def test_a_function_that_exits_fails_its_task(workflows):
    """A dead process has Lambda's own error name."""
    assert "Runtime.ExitError" == workflows.run({"Call": lambda_task()}, {"exit": 3})["error"]


def test_a_function_past_its_time_fails_its_task(workflows, slow_executions):
    """Under the name that Lambda gives it."""
    assert "Sandbox.Timedout" == workflows.end(slow_executions["function timed out"])["error"]


def test_an_error_may_be_passed_on_under_a_reserved_name(workflows, slow_executions):
    """A Fail state repeats States.Timeout instead of breaking on it."""
    assert "States.Timeout" == workflows.end(slow_executions["error passed on"])["error"]


@pytest.mark.parametrize("late", ["answer too late", "token too late"])
def test_a_late_answer_of_a_function_is_not_history(workflows, slow_executions, late_answers, late):
    """What timed out may finish; nobody hears of it."""
    arn = slow_executions[late]
    eventually(lambda: "WaitStateEntered" in workflows.history(arn))
    (late_answers / late).touch()
    assert "SUCCEEDED" == workflows.end(arn)["status"]
    assert not {"TaskSucceeded", "TaskSubmitted"} & set(workflows.history(arn))


def test_an_execution_past_its_time_has_ended(workflows, slow_executions, late_answers):
    """At once, with a stop date, though its task still runs; and it stays ended."""
    arn = slow_executions["machine timed out"]
    found = workflows.end(arn)
    assert ("TIMED_OUT", True) == (found["status"], "stopDate" in found)
    (late_answers / "machine timed out").touch()
    workflows.run({"Call": lambda_task()})  # by then the late answer has long been there
    assert found["stopDate"] == workflows.end(arn)["stopDate"]
    assert "ExecutionTimedOut" == workflows.history(arn)[-1]


@pytest.mark.parametrize("duration", ["time-out by path", "heartbeat by path"])
def test_a_duration_comes_from_a_path(workflows, slow_executions, duration):
    """Time-outs may be parameters of a template."""
    assert "States.Timeout" == workflows.end(slow_executions[duration])["error"]


def test_an_absent_function_is_named_by_its_error(workflows):
    """Lambda's error codes become Lambda.… error names."""
    call = lambda_task(Parameters={"FunctionName": "nobody"})
    assert "Lambda.ResourceNotFoundException" == workflows.run({"Call": call})["error"]


def test_a_task_may_call_a_function_and_not_wait(workflows):
    """InvocationType Event is passed on."""
    call = lambda_task()
    call["Parameters"]["InvocationType"] = "Event"
    assert 202 == json.loads(workflows.run({"Call": call}, {"sleep": 1})["output"])["StatusCode"]


def test_the_context_has_the_number_of_redrives(workflows):
    """It is 0 unless an execution was redriven."""
    count = {"count.$": "$$.Execution.RedriveCount"}
    found = workflows.run({"Count": {"Type": "Pass", "Parameters": count, "End": True}})
    assert {"count": 0} == json.loads(found["output"])


def test_times_in_the_context_have_the_form_that_aws_gives_them(workflows):
    """Definitions compare these texts, so three digits and a Z matter. A whole second has no digits."""
    times = {"entered.$": "$$.State.EnteredTime", "started.$": "$$.Execution.StartTime"}
    found = json.loads(workflows.run({"Now": {"Type": "Pass", "Parameters": times, "End": True}})["output"])
    assert [True, True] == [bool(AWS_TIME.fullmatch(found[key])) for key in ("entered", "started")]


@pytest.mark.parametrize(
    ("microsecond", "text"),
    [(0, "12:00:00Z"), (999, "12:00:00Z"), (1000, "12:00:00.001Z"), (500_000, "12:00:00.500Z")],
)
def test_a_whole_second_has_no_fraction(microsecond, text):
    """AWS leaves out three noughts, and nothing else."""
    assert f"2026-01-31T{text}" == aws_time(datetime(2026, 1, 31, 12, microsecond=microsecond, tzinfo=UTC))


def test_a_choice_compares_with_the_context_object(workflows):
    """`$$.` works on both sides."""
    choice = {
        "Type": "Choice",
        "Choices": [
            {
                "And": [
                    {"Variable": "$.past", "StringLessThanPath": "$$.State.EnteredTime"},
                    {"Variable": "$$.State.EnteredTime", "StringGreaterThanPath": "$.past"},
                ],
                "Next": "Caught",
            }
        ],
        "Default": "Wrong",
    }
    states = {"Ask": choice, "Caught": CAUGHT, "Wrong": {"Type": "Fail"}}
    assert "SUCCEEDED" == workflows.run(states, {"past": "2001-01-01T00:00:00.000Z"})["status"]


def test_a_choice_on_an_absent_path_fails_the_execution(workflows):
    """On AWS nothing catches it, so a definition that forgets IsPresent must fail here as well."""
    choice = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.gone", "StringEquals": "x", "Next": "Caught"}],
        "Default": "Caught",
    }
    assert "States.Runtime" == workflows.run({"Ask": choice, "Caught": CAUGHT})["error"]


def test_is_present_may_ask_for_an_absent_path(workflows):
    """It is what the question is for, also inside And."""
    choice = {
        "Type": "Choice",
        "Choices": [
            {
                "And": [
                    {"Variable": "$.gone", "IsPresent": True},
                    {"Variable": "$.gone", "StringEquals": "x"},
                ],
                "Next": "Wrong",
            }
        ],
        "Default": "Caught",
    }
    states = {"Ask": choice, "Caught": CAUGHT, "Wrong": {"Type": "Fail"}}
    assert "SUCCEEDED" == workflows.run(states)["status"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"TableName": "small-ItemsTable", "Item": {"id": {"S.$": "$.gone"}}},
        {"TableName": "small-ItemsTable", "Item": {"id": {"S": 5}}},
    ],
)
def test_nothing_catches_states_runtime(workflows, parameters):
    """A path that is absent, an attribute of the wrong type."""
    put = put_task({}, Parameters=parameters, Catch=CATCH_ALL, Retry=[{"ErrorEquals": ["States.ALL"]}])
    assert "States.Runtime" == workflows.run({"Put": put, "Caught": CAUGHT})["error"]


def test_data_limit_exceeded_is_caught_by_its_name_only(workflows):
    """States.ALL lets it pass."""
    by_name = [{"ErrorEquals": ["States.DataLimitExceeded"], "Next": "Caught"}]
    states = {"Call": lambda_task(Catch=by_name), "Caught": CAUGHT}
    assert "SUCCEEDED" == workflows.run(states, {"size": LIMIT + 1})["status"]
    states["Call"] = lambda_task(Catch=CATCH_ALL)
    assert "States.DataLimitExceeded" == workflows.run(states, {"size": LIMIT + 1})["error"]


@pytest.mark.parametrize(
    ("error", "taken"),
    [
        ("Declined", "tasks"),
        ("States.Permissions", "tasks"),
        ("States.DataLimitExceeded", "tasks"),
        ("States.Timeout", "all"),
    ],
)
def test_task_failed_matches_any_name_but_a_time_out(workflows, error, taken):
    """moto lets it match no name of AWS's own."""
    catch = [
        {"ErrorEquals": ["States.TaskFailed"], "Next": "tasks"},
        {"ErrorEquals": ["States.ALL"], "Next": "all"},
    ]
    branch = {"StartAt": "Fail", "States": {"Fail": {"Type": "Fail", "Error": error}}}
    both = {"Type": "Parallel", "Branches": [branch], "Catch": catch, "End": True}
    ends = {name: {"Type": "Pass", "Result": name, "End": True} for name in ("tasks", "all")}
    assert taken == json.loads(workflows.run({"Both": both, **ends})["output"])


def test_a_failure_without_a_name_in_a_map_is_caught_like_any_other(workflows):
    """States.ALL takes it, and a Catch for a name does not."""
    fail = {"StartAt": "Fail", "States": {"Fail": {"Type": "Fail"}}}
    each = {"Type": "Map", "ItemProcessor": fail, "Catch": CATCH_ALL, "End": True}
    assert "SUCCEEDED" == workflows.run({"Each": each, "Caught": CAUGHT}, [1])["status"]
    each["Catch"] = [{"ErrorEquals": ["Late"], "Next": "Caught"}]
    found = workflows.run({"Each": each, "Caught": CAUGHT}, [1])
    assert ("FAILED", None) == (found["status"], found.get("error"))


def test_what_a_task_is_given_counts_against_the_limit(workflows):
    """Parameters may be larger than the input that they are made from."""
    twice = {"FunctionName": "small-MisbehaveFunction", "Payload": {"one.$": "$.text", "two.$": "$.text"}}
    found = workflows.run({"Call": lambda_task(Parameters=twice)}, {"text": "x" * (LIMIT // 2)})
    assert "States.DataLimitExceeded" == found["error"]


def test_the_whole_limit_may_be_used(workflows):
    """262,144 bytes of compact UTF-8 are allowed; one more is refused at once."""
    arn = workflows.make({"Pass": {"Type": "Pass", "End": True}})
    text = json.dumps({"é": "x" * (LIMIT - 9)}, ensure_ascii=False, separators=(",", ":"))
    assert LIMIT == len(text.encode())
    started = workflows.sfn.start_execution(stateMachineArn=arn, name="full", input=text)
    assert "SUCCEEDED" == workflows.end(started["executionArn"])["status"]
    with pytest.raises(ClientError, match="ValidationException"):
        workflows.sfn.start_execution(stateMachineArn=arn, name="over", input=text + " ")


def test_intrinsic_functions_work(workflows):
    """Those that the workflow uses."""
    wanted = {
        "sum.$": "States.MathAdd($.n, 1)",
        "parsed.$": "States.StringToJson('30')",
        "text.$": "States.JsonToString($.o)",
        "formatted.$": "States.Format('INPROGRESS#{}', $.n)",
    }
    found = workflows.run(
        {"Make": {"Type": "Pass", "Parameters": wanted, "End": True}}, {"n": 2, "o": {"a": "é"}}
    )
    made = json.loads(found["output"])
    assert (3, 30, "INPROGRESS#2") == (made["sum"], made["parsed"], made["formatted"])
    assert {"a": "é"} == json.loads(made["text"])


def test_an_output_that_is_text_keeps_its_quotes(workflows):
    """The output of an execution is JSON, whatever it is."""
    assert '"caught"' == workflows.run({"Caught": CAUGHT})["output"]


class BrokenEndpoint(BaseHTTPRequestHandler):
    """Answers every call with one status, or hangs up."""

    status = None
    calls = 0
    go_on = threading.Event()

    def do_POST(self):
        """Answer as told."""
        type(self).calls += 1
        self.go_on.wait(PATIENCE_SECONDS)
        if self.status is None:
            self.connection.close()
            return
        body = b'{"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "x"}'
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def cut_off_workflows():
    """Workflows whose tasks reach nothing but the broken endpoint."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BrokenEndpoint) as broken:
        threading.Thread(target=broken.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{broken.server_port}"
        through = dict.fromkeys(("dynamodb", "lambda"), lambda _: url)
        with LocalStack.from_template(TEMPLATE, name="small", through=through) as stack:
            yield Workflows(stack)
        broken.shutdown()


@pytest.mark.parametrize(
    ("task", "status", "error"),
    [
        (put_task({"id": {"S": "x"}}), 500, "DynamoDB.InternalServerErrorException"),
        (put_task({"id": {"S": "x"}}), None, "DynamoDB.SdkClientException"),
        (
            {**put_task({}), "Resource": "arn:aws:states:::aws-sdk:dynamodb:putItem"},
            None,
            "DynamoDb.SdkClientException",
        ),
        (lambda_task(), 500, "Lambda.ServiceException"),
        (lambda_task(), 429, "Lambda.TooManyRequestsException"),
        (lambda_task(), None, "Lambda.SdkClientException"),
    ],
)
def test_a_broken_endpoint_is_an_error_that_retry_can_match(cut_off_workflows, task, status, error):
    """The engine calls once; ASL's Retry is what retries, and TaskFailed matches."""
    BrokenEndpoint.status, BrokenEndpoint.calls = status, 0
    BrokenEndpoint.go_on.set()
    retry = [
        {"ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"], "MaxAttempts": 0},
        {
            "ErrorEquals": ["States.TaskFailed"],
            "IntervalSeconds": 1,
            "MaxAttempts": 1,
            "MaxDelaySeconds": 2,
            "JitterStrategy": "FULL",
        },
    ]
    found = cut_off_workflows.run({"Call": {**task, "Retry": retry}})
    assert (error, 2) == (found["error"], BrokenEndpoint.calls)


def test_a_table_that_answers_too_late_is_a_time_out(cut_off_workflows, monkeypatch):
    """Not an error of DynamoDB, and its answer is not history."""
    monkeypatch.setattr(BrokenEndpoint, "status", 200)
    monkeypatch.setattr(BrokenEndpoint, "go_on", threading.Event())
    catch = [{"ErrorEquals": ["States.Timeout"], "Next": "Linger"}]
    arn = cut_off_workflows.start(
        {
            "Put": put_task({"id": {"S": "x"}}, TimeoutSeconds=1, Catch=catch),
            "Linger": {"Type": "Wait", "Seconds": 1, "End": True},
        }
    )
    eventually(lambda: "WaitStateEntered" in cut_off_workflows.history(arn))
    BrokenEndpoint.go_on.set()
    assert "SUCCEEDED" == cut_off_workflows.end(arn)["status"]
    assert "TaskSucceeded" not in cut_off_workflows.history(arn)


def test_a_refused_condition_is_not_retried(workflows):
    """MaxAttempts 0 comes before the retrier that would match as well."""
    put = put_task({"id": {"S": "taken"}})
    put["Parameters"]["ConditionExpression"] = "attribute_not_exists(id)"
    put["Retry"] = [
        {"ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"], "MaxAttempts": 0},
        {"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 60},
    ]
    put["Catch"] = [{"ErrorEquals": ["DynamoDB.ConditionalCheckFailedException"], "Next": "Caught"}]
    states = {"Put": put, "Caught": CAUGHT}
    found = [workflows.run(states).get("output") for _ in range(2)]
    assert '"caught"' == found[1] != found[0]


def test_names_are_checked_at_the_start(workflows):
    """A name that AWS refuses is refused here; no name is a name of its own each time."""
    arn = workflows.make({"Caught": CAUGHT})
    for name, code in (("a b", "InvalidName"), ("a/b", "InvalidName"), ("a" * 81, "ValidationException")):
        with pytest.raises(ClientError) as refused:
            workflows.sfn.start_execution(stateMachineArn=arn, name=name)
        assert code == refused.value.response["Error"]["Code"]
    assert 2 == len({workflows.sfn.start_execution(stateMachineArn=arn)["executionArn"] for _ in range(2)})


def test_a_definition_that_cannot_run_is_refused(workflows):
    """With the code that clients look for."""
    with pytest.raises(workflows.sfn.exceptions.InvalidDefinition):
        workflows.make({"Lost": {"Type": "Pass"}}, start="Nowhere", Version=7)


def test_of_many_starts_under_one_name_one_wins(workflows):
    """Twenty threads, twenty inputs, one execution."""
    arn = workflows.make({"Wait": {"Type": "Wait", "Seconds": 1, "End": True}})

    def start(number):
        try:
            return workflows.sfn.start_execution(stateMachineArn=arn, name="race", input=f"{number}")
        except workflows.sfn.exceptions.ExecutionAlreadyExists:
            return None

    with ThreadPoolExecutor(20) as pool:
        assert 1 == len([won for won in pool.map(start, range(20)) if won])


def test_of_many_conditional_writes_one_wins(workflows):
    """Put and update, twenty threads each."""
    dynamodb = workflows.stack.boto3("dynamodb")

    def put(_):
        return dynamodb.put_item(
            TableName="small-ItemsTable",
            Item={"id": {"S": "put-race"}},
            ConditionExpression="attribute_not_exists(id)",
        )

    def update(_):
        return dynamodb.update_item(
            TableName="small-ItemsTable",
            Key={"id": {"S": "update-race"}},
            UpdateExpression="SET n = :n",
            ConditionExpression="attribute_not_exists(id)",
            ExpressionAttributeValues={":n": {"N": "1"}},
        )

    def wins(write, number):
        try:
            return bool(write(number))
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return False

    with ThreadPoolExecutor(20) as pool:
        for write in (put, update):
            assert 1 == sum(pool.map(lambda number, write=write: wins(write, number), range(20)))


@pytest.mark.parametrize(
    ("begun", "states"),
    [
        ("TaskStarted", {"Call": lambda_task(Next="Put"), "Put": put_task({"id": {"S": "stopped"}})}),
        ("TaskStarted", {"Call": lambda_task(Catch=CATCH_ALL), "Caught": CAUGHT}),
        ("WaitStateEntered", {"Wait": {"Type": "Wait", "Seconds": 60, "End": True}}),
        (
            "TaskFailed",
            {"Call": lambda_task(Retry=[{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 60}])},
        ),
        ("TaskSubmitted", {"Wait": waiting_task()}),
        (
            "TaskStarted",
            {
                "Both": {
                    "Type": "Parallel",
                    "Branches": [{"StartAt": "Call", "States": {"Call": lambda_task()}}],
                    "End": True,
                }
            },
        ),
    ],
    ids=["then-write", "then-catch", "wait", "retry", "callback", "parallel"],
)
def test_a_stopped_execution_stays_stopped(workflows, tmp_path, begun, states):
    """No later state runs, the history ends with the stop, and error and cause are kept."""
    gate = tmp_path / "gate"
    event = {"until": str(gate)}
    if "Caught" in states or begun == "TaskFailed":
        event["raise"] = "late"
    if begun == "TaskFailed":
        gate.touch()
    arn = workflows.start(states, event)
    eventually(lambda: begun in workflows.history(arn))
    if begun == "TaskStarted":
        eventually(lambda: str(gate) in workflows.stack.logs("small-MisbehaveFunction"))
    stopped = workflows.sfn.stop_execution(executionArn=arn, error="Tired", cause="of waiting")
    assert "ABORTED" == workflows.end(arn)["status"]
    gate.touch()
    workflows.run({"Call": lambda_task()})  # by then the late answer has long been there
    found = workflows.end(arn)
    assert ("ABORTED", "Tired", "of waiting") == (found["status"], found["error"], found["cause"])
    assert stopped["stopDate"] == found["stopDate"]
    assert "ExecutionAborted" == workflows.history(arn)[-1]
    item = workflows.stack.boto3("dynamodb").get_item(
        TableName="small-ItemsTable", Key={"id": {"S": "stopped"}}
    )
    assert "Item" not in item


def test_stopping_what_has_ended_changes_nothing(workflows):
    """The answer is when it ended."""
    arn = workflows.start({"Caught": CAUGHT})
    ended = workflows.end(arn)
    assert ended["stopDate"] == workflows.sfn.stop_execution(executionArn=arn)["stopDate"]
    assert "SUCCEEDED" == workflows.end(arn)["status"]


def test_history_comes_in_the_order_and_the_pages_asked_for(workflows):
    """Newest first finds the last state entered with one short call."""
    arn = workflows.start({"Caught": CAUGHT})
    workflows.end(arn)
    assert workflows.history(arn) == workflows.history(arn, reverseOrder=True)[::-1]
    page = workflows.sfn.get_execution_history(executionArn=arn, maxResults=3)
    rest = workflows.sfn.get_execution_history(executionArn=arn, nextToken=page["nextToken"])
    assert workflows.history(arn) == [event["type"] for event in page["events"] + rest["events"]]


def answers(workflows, token, *kinds):
    """Every kind of answer, or these; what each got."""
    sfn = workflows.sfn
    calls = {
        "success": lambda: sfn.send_task_success(taskToken=token, output="{}"),
        "failure": lambda: sfn.send_task_failure(taskToken=token),
        "heartbeat": lambda: sfn.send_task_heartbeat(taskToken=token),
    }
    found = []
    for kind in kinds or calls:
        try:
            calls[kind]()
            found.append("accepted")
        except ClientError as error:
            found.append(error.response["Error"]["Code"])
    return found


def test_a_failure_keeps_its_error_and_cause(workflows):
    """And both are null where there is none."""
    arn = workflows.start({"Wait": waiting_task()})
    workflows.sfn.send_task_failure(taskToken=workflows.token(arn), error="Refused", cause="by hand")
    found = workflows.end(arn)
    assert ("Refused", "by hand") == (found["error"], found["cause"])
    arn = workflows.start({"Wait": waiting_task(Catch=CATCH_ALL), "Caught": {"Type": "Pass", "End": True}})
    workflows.sfn.send_task_failure(taskToken=workflows.token(arn))
    assert {"Error": None, "Cause": None} == json.loads(workflows.end(arn)["output"])


def test_a_token_takes_one_answer(workflows):
    """The second of two is late, whichever it is, and so is any after the end."""
    arn = workflows.start(
        {"Wait": waiting_task(Next="Linger"), "Linger": {"Type": "Wait", "Seconds": 1, "End": True}}
    )
    token = workflows.token(arn)
    assert ["accepted", "TaskTimedOut", "TaskTimedOut"] == answers(workflows, token)
    workflows.end(arn)
    assert ["TaskTimedOut"] * 3 == answers(workflows, token)
    assert ["InvalidToken"] * 3 == answers(workflows, "nonsense")


def test_of_many_answers_one_is_accepted(workflows):
    """Twenty at once, and the one that was told so is the result."""
    arn = workflows.start({"Wait": waiting_task()})
    token = workflows.token(arn)

    def answer(number):
        try:
            workflows.sfn.send_task_success(taskToken=token, output=f"{number}")
        except workflows.sfn.exceptions.TaskTimedOut:
            return None
        return number

    with ThreadPoolExecutor(20) as pool:
        accepted = [number for number in pool.map(answer, range(20)) if number is not None]
    assert accepted == [int(workflows.end(arn)["output"])]


@pytest.mark.parametrize(
    ("kind", "event"), [("success", "TaskSucceeded"), ("failure", "TaskFailed")] * 3, ids=str
)
def test_an_accepted_answer_is_in_the_history_of_what_is_stopped_at_once(workflows, kind, event):
    """AWS writes it down before it answers."""
    arn = workflows.start({"Wait": waiting_task()})
    eventually(lambda: "TaskSubmitted" in workflows.history(arn))
    token = workflows.token(arn)

    assert ["accepted"] == answers(workflows, token, kind)
    workflows.sfn.stop_execution(executionArn=arn)
    assert event in workflows.history(arn)


def test_a_token_is_dead_once_its_attempt_is_over(workflows):
    """The next attempt has a token of its own."""
    retry = [
        {"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 1, "BackoffRate": 1, "MaxAttempts": 1_000}
    ]
    lasting = {"HeartbeatSeconds": 1, "Retry": retry}
    arn = workflows.start({"Wait": waiting_task(**lasting)})
    first = workflows.token(arn)
    eventually(lambda: workflows.token(arn) != first)
    assert ["TaskTimedOut"] * 3 == answers(workflows, first)
    told = eventually(lambda: "accepted" in (new := answers(workflows, workflows.token(arn))) and new)
    assert ["accepted", "TaskTimedOut", "TaskTimedOut"] == told
    assert "SUCCEEDED" == workflows.end(arn)["status"]


@pytest.mark.full
def test_heartbeats_keep_a_task_alive(workflows):
    """As long as they come in time."""

    def lives():
        arn = workflows.start({"Wait": waiting_task(HeartbeatSeconds=1)})
        token = workflows.token(arn)
        if not signs_of_life(lambda: answers(workflows, token, "heartbeat") == ["accepted"], limit=1):
            return False
        workflows.sfn.send_task_success(taskToken=token, output="1")
        return "1" == workflows.end(arn)["output"]

    eventually(lives)
