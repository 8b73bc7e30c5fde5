"""A stack's life: it starts from the template, serves what it says, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from steponce.local import LocalStack, LocalStackError, read_facts, write_facts

TEMPLATE = Path(__file__).parent / "local_fixture" / "template.yaml"


@pytest.fixture(scope="module")
def small_stack():
    """A stack, started by somebody who has an AWS account."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_PROFILE", "no-such-profile")
        environment.setenv("AWS_SESSION_TOKEN", "the-callers")
        with LocalStack.from_template(TEMPLATE, name="small") as stack:
            yield stack


def call(stack, event, **options):
    """Call the fixture's function; its error flag and its answer."""
    answer = stack.boto3("lambda").invoke(
        FunctionName=stack.outputs["FunctionArn"], Payload=json.dumps(event), **options
    )
    body = answer["Payload"].read()
    return answer.get("FunctionError"), json.loads(body) if body else None


def run(stack, name, event):
    """Run the fixture's state machine to its end."""
    states = stack.boto3("stepfunctions")
    arn = states.start_execution(
        stateMachineArn=stack.outputs["FlowArn"], name=name, input=json.dumps(event)
    )["executionArn"]
    while (found := states.describe_execution(executionArn=arn))["status"] == "RUNNING":
        time.sleep(0.01)
    return found


def items(stack):
    """The ids in the fixture's table."""
    found = stack.boto3("dynamodb").scan(TableName=stack.outputs["ItemsTable"])["Items"]
    return {item["id"]["S"] for item in found}


def test_a_workflow_runs_its_function_and_writes_its_item(small_stack):
    """Template, function, table and state machine work together."""
    assert "SUCCEEDED" == run(small_stack, "first", {})["status"]
    assert "first" in items(small_stack)
    assert "saw {}" in small_stack.logs("small-MisbehaveFunction")


def test_a_function_sees_lambda_and_nothing_of_the_callers_account(small_stack):
    """Neither a profile nor a token of whoever starts the stack reaches a function."""
    seen = call(small_stack, {})[1]["environment"]
    assert "small-MisbehaveFunction" == seen["AWS_LAMBDA_FUNCTION_NAME"]
    assert small_stack.endpoints["states"] == seen["AWS_ENDPOINT_URL_SFN"]
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN"} & set(seen)


def test_a_warm_worker_is_used_again(small_stack):
    """Two calls in a row, one process."""
    assert 1 == len({call(small_stack, {})[1]["pid"] for _ in range(2)})


def test_slow_calls_run_side_by_side(small_stack):
    """Two calls of half a second take less than two."""
    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        pids = {
            answer["pid"] for _, answer in pool.map(lambda _: call(small_stack, {"sleep": 0.5}), range(2))
        }
    assert 2 == len(pids)
    assert 0.95 > time.monotonic() - started


def test_a_dead_worker_is_told_at_once_and_replaced(small_stack):
    """The call does not wait for the time-out, and the next one works."""
    started = time.monotonic()
    flag, answer = call(small_stack, {"exit": 3})
    assert ("Unhandled", "Runtime.ExitError") == (flag, answer["errorType"])
    assert answer["errorMessage"].endswith("Error: Runtime exited with error: exit status 3")
    assert 1 > time.monotonic() - started
    assert None is call(small_stack, {})[0]


def test_an_event_is_taken_and_run_later(small_stack):
    """InvocationType Event answers before the function does."""
    started = time.monotonic()
    assert (None, None) == call(small_stack, {"sleep": 0.3, "mark": "later"}, InvocationType="Event")
    assert 0.3 > time.monotonic() - started
    while "later" not in small_stack.logs("small-MisbehaveFunction"):
        assert 5 > time.monotonic() - started
        time.sleep(0.02)


def test_only_the_workflow_goes_through_a_proxy():
    """Clients and functions keep the direct address."""
    asked = []

    def through(url):
        asked.append(url)
        return "http://127.0.0.1:9"

    with LocalStack.from_template(TEMPLATE, name="proxied", through={"lambda": through}) as stack:
        assert [stack.endpoints["lambda"]] == asked
        assert "Lambda.SdkClientException" == run(stack, "cut-off", {})["error"]
        assert None is call(stack, {})[0]


def test_an_endpoint_may_be_a_server_that_runs_already(small_stack, monkeypatch):
    """A second stack borrows the first one's DynamoDB, and deletes its table when it goes."""
    monkeypatch.setenv("STEPONCE_DYNAMODB_ENDPOINT", small_stack.endpoints["dynamodb"])
    with LocalStack.from_template(TEMPLATE, name="guest") as guest:
        assert "SUCCEEDED" == run(guest, "visit", {})["status"]
        assert "guest-ItemsTable" in small_stack.boto3("dynamodb").list_tables()["TableNames"]
        with pytest.raises(LocalStackError, match="guest-ItemsTable is already there"):
            LocalStack.from_template(TEMPLATE, name="guest").start()
    assert ["small-ItemsTable"] == small_stack.boto3("dynamodb").list_tables()["TableNames"]


def test_a_server_may_be_started_once_the_addresses_are_known(small_stack):
    """Like a Step Functions that must be told where Lambda is."""
    told = []

    def start_server(addresses):
        told.append(dict(addresses))
        return small_stack.endpoints["dynamodb"]

    with LocalStack.from_template(TEMPLATE, name="guest", endpoints={"dynamodb": start_server}) as guest:
        assert [{key: url for key, url in guest.endpoints.items() if key != "dynamodb"}] == told
        assert small_stack.endpoints["dynamodb"] == guest.endpoints["dynamodb"]


def test_an_unknown_endpoint_is_named():
    """With those that exist."""
    with pytest.raises(LocalStackError, match=r"No such endpoint: dynamo\. Known: states, dynamodb, lambda"):
        LocalStack.from_template(TEMPLATE, endpoints={"dynamo": "http://x"})


def test_another_process_finds_the_stack_by_its_facts(small_stack, tmp_path):
    """What was written is enough to speak to it."""
    write_facts(small_stack.facts(), tmp_path)
    attached = LocalStack.attach(read_facts(tmp_path))
    assert small_stack.outputs == attached.outputs
    assert items(small_stack) == items(attached)


def test_a_stack_that_is_gone_is_said_to_be_gone(small_stack, tmp_path):
    """Neither a missing file nor a dead process is a stack."""
    with pytest.raises(LocalStackError, match="steponce up"):
        read_facts(tmp_path)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_facts({**small_stack.facts(), "pid": ended.pid}, tmp_path)
    with pytest.raises(LocalStackError, match="gone"):
        read_facts(tmp_path)


OWNER = """
import json, sys, time
from steponce.local import LocalStack
stack = LocalStack.from_template(sys.argv[1], name="owned").start()
stack.boto3("lambda").invoke(FunctionName=stack.outputs["FunctionArn"], Payload="{}")
print(stack.facts()["logs"], flush=True)
stack.boto3("lambda").invoke(FunctionName=stack.outputs["FunctionArn"], Payload='{"sleep": 60}')
"""


def processes():
    """Parent and state of each process."""
    listed = subprocess.run(
        ["/bin/ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    )
    rows = (line.split() for line in listed.stdout.splitlines())
    return {int(pid): (int(parent), state) for pid, parent, state in rows}


def descendants(pid):
    """The processes below this one."""
    listed = processes()
    found, below = set(), {pid}
    while below := {child for child, (parent, _) in listed.items() if parent in below} - found:
        found |= below
    return found


def alive(pids):
    """Those of them that run still; what has ended and nobody has waited for does not run."""
    return {pid for pid, (_, state) in processes().items() if not state.startswith("Z")} & pids


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT], ids=lambda s: s.name)
def test_nothing_outlives_the_owner(ending):
    """Engine, nursery, busy workers and logs go with the process that started them, however it ends."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(TEMPLATE)], stdout=subprocess.PIPE, text=True)
    logs = Path(owner.stdout.readline().strip())
    assert (logs / "engine.log").exists()
    children = descendants(owner.pid)
    assert 3 <= len(children)
    owner.send_signal(ending)
    owner.wait(10)
    owner.stdout.close()
    deadline = time.monotonic() + 5
    while left := alive(children):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert not logs.exists()


def test_stopping_leaves_no_process_and_no_files():
    """Not even one that nobody has waited for."""
    before = descendants(os.getpid())
    with LocalStack.from_template(TEMPLATE, name="brief") as stack:
        call(stack, {})
        threads = threading.active_count()
        logs = Path(stack.facts()["logs"])
        children = descendants(os.getpid()) - before
    assert children
    assert not descendants(os.getpid()) & children
    assert not logs.exists()
    assert threads >= threading.active_count()
