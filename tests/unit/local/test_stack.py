"""A stack's life: it starts from the template, serves what it says, and leaves nothing behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from steponce.local import LocalStack, LocalStackError, read_facts, write_facts
from steponce.local.cleaning import clean
from steponce.local.deploy import Deployment
from tests.patience import PATIENCE_SECONDS, eventually
from tests.processes import descendants, parents

TEMPLATE = Path(__file__).parent / "fixture" / "template.yaml"


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
    eventually(lambda: states.describe_execution(executionArn=arn)["status"] != "RUNNING")
    return states.describe_execution(executionArn=arn)


def items(stack):
    """The ids in the fixture's table."""
    found = stack.boto3("dynamodb").scan(TableName=stack.outputs["ItemsTable"])["Items"]
    return {item["id"]["S"] for item in found}


def test_a_workflow_runs_its_function_and_writes_its_item(small_stack):
    """Template, function, table and state machine work together."""
    assert "SUCCEEDED" == run(small_stack, "first", {})["status"]
    assert "first" in items(small_stack)
    assert "saw {}" in small_stack.logs("small-MisbehaveFunction")


def test_only_a_function_of_the_stack_has_a_log(small_stack):
    """A misspelt name would look like a function that has written nothing."""
    function = small_stack.boto3("lambda").get_function(FunctionName="small-MisbehaveFunction")
    arn = function["Configuration"]["FunctionArn"]
    assert small_stack.logs(arn) == small_stack.logs(f"{arn}:$LATEST")
    for name in ("MisbehaveFunction", "function", "x" * 300):
        with pytest.raises(LocalStackError, match=f"'{name}'.*small-MisbehaveFunction"):
            small_stack.logs(name)


def test_a_function_sees_lambda_and_nothing_of_the_callers_account(small_stack):
    """Neither a profile nor a token of whoever starts the stack reaches a function."""
    seen = call(small_stack, {})[1]["environment"]
    assert "small-MisbehaveFunction" == seen["AWS_LAMBDA_FUNCTION_NAME"]
    assert small_stack.endpoints["states"] == seen["AWS_ENDPOINT_URL_SFN"]
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN"} & set(seen)


def test_a_warm_worker_is_used_again(small_stack):
    """Two calls in a row, one process."""
    assert 1 == len({call(small_stack, {})[1]["pid"] for _ in range(2)})


def test_slow_calls_run_side_by_side(small_stack, tmp_path):
    """While one call stays, the next one has come and gone."""
    gate = tmp_path / "gate"
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(call, small_stack, {"until": str(gate)})
        eventually(lambda: str(gate) in small_stack.logs("small-MisbehaveFunction"))
        quick = call(small_stack, {})
        assert not slow.done()
        gate.touch()
    assert quick[1]["pid"] != slow.result()[1]["pid"]


def test_lines_of_two_workers_do_not_mix(small_stack, tmp_path):
    """They share the function's log, and `print` writes a line and its end one after the other."""
    printed = tmp_path / "printed"
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(call, small_stack, {"half": str(printed)})
        eventually(printed.exists)
        call(small_stack, {"mark": "in between"})
        printed.unlink()
        slow.result()
    lines = small_stack.logs("small-MisbehaveFunction").splitlines()
    assert {"half a line, the other half", "saw {'mark': 'in between'}"} <= set(lines)


def test_a_dead_worker_is_told_at_once_and_replaced(small_stack):
    """The call does not wait for the time-out, and the next one works."""
    flag, answer = call(small_stack, {"exit": 3})
    assert ("Unhandled", "Runtime.ExitError") == (flag, answer["errorType"])
    assert answer["errorMessage"].endswith("Error: Runtime exited with error: exit status 3")
    assert None is call(small_stack, {})[0]


def test_an_event_is_taken_and_run_later(small_stack, tmp_path):
    """InvocationType Event answers before the function does."""
    gate = tmp_path / "gate"
    event = {"until": str(gate), "mark": f"after {gate}"}
    assert (None, None) == call(small_stack, event, InvocationType="Event")
    gate.touch()
    eventually(lambda: f"'mark': 'after {gate}'" in small_stack.logs("small-MisbehaveFunction"))


@pytest.mark.full
def test_only_the_workflow_goes_through_a_proxy(small_stack):
    """Clients and functions keep the direct address; a server may be one that must know the others."""
    asked, told = [], []

    def through(url):
        asked.append(url)
        return "http://127.0.0.1:9"

    def start_server(addresses):
        told.append(dict(addresses))
        return small_stack.endpoints["dynamodb"]

    with LocalStack.from_template(
        TEMPLATE, name="guest", through={"lambda": through}, endpoints={"dynamodb": start_server}
    ) as stack:
        assert [{key: url for key, url in stack.endpoints.items() if key != "dynamodb"}] == told
        assert small_stack.endpoints["dynamodb"] == stack.endpoints["dynamodb"]
        assert [stack.endpoints["lambda"]] == asked
        assert "" == stack.logs("guest-HastyFunction")  # it has not run
        assert "Lambda.SdkClientException" == run(stack, "cut-off", {})["error"]
        assert None is call(stack, {})[0]


@pytest.mark.full
def test_an_endpoint_may_be_a_server_that_runs_already(small_stack, monkeypatch):
    """A second stack borrows the first one's DynamoDB, and deletes its table when it goes."""
    monkeypatch.setenv("STEPONCE_DYNAMODB_ENDPOINT", small_stack.endpoints["dynamodb"])
    with LocalStack.from_template(TEMPLATE, name="guest") as guest:
        assert "SUCCEEDED" == run(guest, "visit", {})["status"]
        assert "guest-ItemsTable" in small_stack.boto3("dynamodb").list_tables()["TableNames"]
        with pytest.raises(LocalStackError, match="guest-ItemsTable is already there"):
            Deployment(guest.boto3).make(guest._plan)
    assert ["small-ItemsTable"] == small_stack.boto3("dynamodb").list_tables()["TableNames"]


@pytest.mark.full
def test_a_stack_leaves_the_state_machines_of_its_namesake_alone(small_stack):
    """On one server: it is refused, and takes away nothing that it has not made."""
    guest = LocalStack.from_template(
        TEMPLATE, name="small", endpoints={"states": small_stack.endpoints["states"]}
    )
    with pytest.raises(LocalStackError, match="is already there"):
        guest.start()
    assert "SUCCEEDED" == run(small_stack, "after-the-namesake", {})["status"]


WAITS = """
Transform: AWS::Serverless-2016-10-31
Resources:
  Waits:
    Type: AWS::Serverless::StateMachine
    Properties:
      Role: arn:aws:iam::123456789012:role/local
      Definition: {StartAt: Wait, States: {Wait: {Type: Wait, Seconds: 600, End: true}}}
Outputs:
  Arn: {Value: !Ref Waits}
"""


@pytest.mark.full
def test_cleaning_stops_no_execution_of_another_stack_on_the_server(small_stack, tmp_path):
    """Their owner would wonder why a test was over."""
    (tmp_path / "template.yaml").write_text(WAITS)
    one, other = (
        LocalStack.from_template(
            tmp_path / "template.yaml",
            name=name,
            controls=True,
            endpoints={"states": small_stack.endpoints["states"]},
        )
        for name in ("one", "other")
    )
    with one, other:
        states = small_stack.boto3("stepfunctions")
        own, foreign = (
            states.start_execution(stateMachineArn=stack.outputs["Arn"])["executionArn"]
            for stack in (one, other)
        )
        clean(one)
        ends = [states.describe_execution(executionArn=arn)["status"] for arn in (own, foreign)]
        assert ["ABORTED", "RUNNING"] == ends
        clean(other)


@pytest.mark.full
def test_a_stack_s_time_is_its_own_whatever_is_in_the_folder_of_its_logs(tmp_path):
    """The folder is kept, with what else is in it."""
    (tmp_path / "clock").write_text("mine")
    for _ in range(2):
        with LocalStack.from_template(TEMPLATE, name="timed", logs=tmp_path, controls=True) as stack:
            assert 0 == stack.controls.ahead_seconds()
            stack.controls.let_pass(86_400)
    assert ["clock"] == [path.name for path in tmp_path.iterdir() if "clock" in path.name]
    assert "mine" == (tmp_path / "clock").read_text()


def test_a_stack_that_was_never_started_deletes_nothing_when_it_stops(tmp_path, monkeypatch):
    """A `finally` stops it, too, and the current folder is somebody's project."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").touch()
    LocalStack.from_template(TEMPLATE).stop()
    assert [tmp_path / "kept"] == list(tmp_path.iterdir())


def test_a_stack_says_that_it_has_no_folder_to_write_to(tmp_path, monkeypatch):
    """And deletes none, either."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").touch()
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    stack = LocalStack.from_template(TEMPLATE)
    with pytest.raises(LocalStackError, match=r"No usable temporary directory.* TMPDIR"):
        stack.start()
    stack.stop()
    assert [tmp_path / "kept"] == list(tmp_path.iterdir())


def test_a_folder_of_logs_that_cannot_be_made_is_named(tmp_path):
    """With what the caller can change: not the temporary folder."""
    (tmp_path / "file").touch()
    with pytest.raises(LocalStackError, match=r"/file/logs'\. Give `logs` another one"):
        LocalStack.from_template(TEMPLATE, logs=tmp_path / "file" / "logs").start()


def refuse(**_options):
    """Of a machine on which nothing can be written."""
    raise FileNotFoundError("[Errno 2] No usable temporary directory found in ['/tmp']")


@pytest.mark.parametrize("use", ["client", "guard", "limiter", "facts", "boto3"])
def test_a_stack_that_does_not_run_makes_no_client(use):
    """Without an address it would be AWS."""
    stack = LocalStack.from_template(TEMPLATE)
    with pytest.raises(LocalStackError, match="does not run"):
        getattr(stack, use)(*["sqs"] * (use == "boto3"))


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
stack.boto3("lambda").invoke(FunctionName=stack.outputs["FunctionArn"], Payload=sys.argv[2])
"""


def alive(pids):
    """Those of them that run still."""
    return parents().keys() & pids


def owner_of_a_stack(event):
    """A process whose stack has a worker busy with this event; and where its logs are."""
    command = [sys.executable, "-c", OWNER, str(TEMPLATE), json.dumps(event)]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return owner, Path(owner.stdout.readline().strip())


@pytest.mark.parametrize(
    "ending", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.full)], ids=lambda s: s.name
)
def test_nothing_outlives_the_owner(ending):
    """Engine, fork server, busy workers and logs go with the process that started them, however it ends."""
    owner, logs = owner_of_a_stack({"sleep": 60})
    assert (logs / "engine.log").exists()
    children = descendants(owner.pid)
    assert 3 <= len(children)
    owner.send_signal(ending)
    owner.wait(PATIENCE_SECONDS)
    owner.stdout.close()
    eventually(lambda: not alive(children), lambda: alive(children))
    assert not logs.exists()


@pytest.mark.full
def test_nothing_outlives_the_engine():
    """A worker that is in a loop of C code ends, too, though no thread inside of it could end it."""
    owner, logs = owner_of_a_stack({"spin": True})
    eventually(lambda: "spins" in (logs / "owned-MisbehaveFunction.log").read_text())
    (engine,) = (pid for pid, parent in parents().items() if parent == owner.pid)
    workers = descendants(engine)
    assert 2 <= len(workers)
    os.kill(engine, signal.SIGKILL)
    eventually(lambda: not alive(workers), lambda: alive(workers))
    owner.communicate(timeout=PATIENCE_SECONDS)
    shutil.rmtree(logs, ignore_errors=True)


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


START_AND_STOP = """
import gc, sys
from steponce.local import LocalStack

with LocalStack.from_template(sys.argv[1], name="closed"):
    pass
gc.collect()
"""


@pytest.mark.full
def test_a_stack_that_has_stopped_leaves_no_file_open():
    """Whoever turns warnings into errors would see it in some later test."""
    ended = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", START_AND_STOP, str(TEMPLATE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (ended.returncode, ended.stderr)
