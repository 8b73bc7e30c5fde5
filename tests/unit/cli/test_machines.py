"""Commands on a stack with two workflows: each finds the machine that it is for, or asks which."""

from __future__ import annotations

import errno
import getpass
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from steponce import Client
from steponce.aws import times
from steponce.cli import commands, stream, target
from steponce.operator import cancel as cancellation
from tests.fakes.tables import create_table
from tests.unit.cli.fakes import Run
from tests.unit.one_machine import ARN, PAYLOAD, TO_WORK, arn, envelope
from tests.unit.shared_clients import shared
from tests.unit.triggers.test_dead_letters import FOREIGN
from tests.unit.two_machines import OF_REFUNDS, REFUNDS, TwoMachines, at_refunds

SIGNED = ("--yes", "--by", "alice", "--why", "nothing was refunded")
AT_REFUNDS = ("--machine", "refunds")
UNKNOWN = at_refunds("x").replace(":refunds:", ":charges:")
"""An execution of a machine of another stack."""


class FakeStack:
    """The stack of both machines."""

    name = "s"

    def __init__(self, world: TwoMachines) -> None:
        self._world = world

    @property
    def outputs(self) -> dict[str, str]:
        return self._world.outputs

    def boto3(self, service: str) -> Any:
        return shared(service, "eu-west-1")

    def client(self, *, machine: str | None = None) -> Client:
        return self._world.client_of(machine)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoMachines]:
    """Every command reaches it, in a pipe; the user is Carol."""
    monkeypatch.setattr(getpass, "getuser", lambda: "carol")
    monkeypatch.setattr(cancellation, "_SEEN_WITHIN_SECONDS", 0)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("STEPONCE_STACK", raising=False)
    with mock_aws():
        found = TwoMachines()
        monkeypatch.setattr(target.Target, "reach", lambda _target: FakeStack(found))
        yield found


@pytest.fixture
def event(tmp_path: Path) -> str:
    """A file with a payload."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps(PAYLOAD))
    return str(path)


def both_know(world: TwoMachines, status: str = "RUNNING") -> None:
    """A request order-1 at each of the machines, which runs."""
    world.execution("order-1", status, *TO_WORK)
    world.put()
    world.execution(at_refunds("order-1"), status, *TO_WORK, given=envelope("refunds/order-1"))
    world.put("refunds/order-1", lockedBy=at_refunds("order-1"))


# -- start -----------------------------------------------------------------------------------------
def test_a_start_goes_to_the_stack_s_own_workflow_unless_another_is_named(
    world: TwoMachines, run: Run, event: str
):
    """By name or ARN. The default lock tokens differ, so both run."""
    told = [
        run("start", "order-1", event, *machine)
        for machine in ((), AT_REFUNDS, ("--machine", REFUNDS), ("--machine", "m"))
    ]
    assert [(0, False), (0, False), (0, True), (0, True)] == [(code, one["duplicate"]) for code, one in told]
    assert ["m/order-1", "refunds/order-1"] * 2 != [one["lockToken"] for _, one in told]
    assert [arn("order-1"), at_refunds("order-1")] == list(world.sfn.executions)
    assert ["m/order-1", "refunds/order-1"] == [one["lockToken"] for one in world.sfn.started]


def test_a_stack_without_a_workflow_of_its_own_starts_the_only_one(world: TwoMachines, run: Run, event: str):
    """As it is one of another stack's; of several none is guessed."""
    del world.outputs["RunOnceStateMachineArn"]
    assert (0, at_refunds("order-1")) == (
        (told := run("start", "order-1", event))[0],
        told[1]["executionArn"],
    )
    second = OF_REFUNDS | {"stateMachineArn": REFUNDS.replace("refunds", "charges")}
    world.outputs["ChargesWorkflow"] = json.dumps(second)
    code, refused = run("start", "order-2", event)
    assert (2, "MachineAmbiguous") == (code, refused["error"]["type"])
    assert "Name the state machine: charges, refunds." in refused["error"]["message"]
    assert 1 == len(world.sfn.started)


@pytest.mark.parametrize(
    ("machine", "error"), [("charges", "MachineNotFound"), (" ", "UsageError"), ("", "UsageError")]
)
def test_an_unknown_machine_is_wrong_usage(
    world: TwoMachines, run: Run, event: str, machine: str, error: str
):
    """For any command; nothing is started, and those that there are are named."""
    for command in (
        ["start", "order-1", event],
        ["status", "order-1"],
        ["locks", "list"],
        ["letters", "list"],
    ):
        code, told = run(*command, "--machine", machine)
        assert (2, error) == (code, told["error"]["type"])
    assert error == "UsageError" or "It has: m, refunds." in told["error"]["message"]
    assert [] == world.sfn.started


# -- a request -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "command", [["status"], ["show"], ["wait", "--timeout", "0"]], ids=lambda one: one[0]
)
def test_a_request_is_found_where_it_is(world: TwoMachines, run: Run, command: list[str]):
    """Without --machine, if only one knows it; else it is asked for."""
    world.held_by_refunds()
    told = json.dumps(run(command[0], "order-1", *command[1:])[1])
    assert at_refunds("order-1") in told

    both_know(world)
    code, refused = run(command[0], "order-1", *command[1:])
    assert (2, "MachineAmbiguous") == (code, refused["error"]["type"])
    assert "m, refunds" in refused["error"]["message"]
    for machine, execution in (("refunds", at_refunds("order-1")), ("m", arn("order-1"))):
        told = json.dumps(run(command[0], "order-1", *command[1:], "--machine", machine)[1])
        assert "WaitTimeout" in told or execution in told


def test_a_request_that_no_machine_knows_is_not_found(world: TwoMachines, run: Run):
    """The message says where it was looked for, and that a key may be missing."""
    for command in ("status", "wait", "show", "cancel"):
        code, told = run(command, "order-7", *(SIGNED if command == "cancel" else ()))
        assert (1, "RequestNotFound") == (code, told["error"]["type"])
        assert "at m, refunds" in told["error"]["message"]
    assert "--key" in run("status", "order-7")[1]["error"]["message"]
    assert "--key" not in run("status", "order-7", "--key", "acme/1")[1]["error"]["message"]
    assert {} == world.sfn.executions


@pytest.mark.parametrize("command", ["status", "wait", "show", "cancel"])
@pytest.mark.parametrize(
    ("given", "token", "request_id", "then"),
    [
        ("refunds/order-1", "refunds/order-1", "order-1", "show order-1 --key refunds/order-1"),
        ("mail/1", "refunds/mail/1", "mail/1", "locks inspect refunds/mail/1"),
        ("charges/o-9", "charges/o-9", "o-9", "locks inspect charges/o-9"),
    ],
    ids=["lock token", "id of plain Python", "lock token of another stack"],
)
def test_an_id_that_means_a_record_is_explained(
    world: TwoMachines, run: Run, command: str, given: str, token: str, request_id: str, then: str
):
    """Lists print lock tokens. Whoever took one for an id, and started it, would run the work again."""
    owners = {"order-1": at_refunds("order-1"), "mail/1": "process/h/1", "o-9": UNKNOWN}
    world.put(token, lockedBy=owners[request_id], requestId=request_id)

    code, told = run(command, given, *(SIGNED if command == "cancel" else ()))

    assert (1, "RequestNotFound") == (code, told["error"]["type"])
    assert f"lock token {token!r}, of request {request_id!r}" in told["error"]["message"]
    assert "tart it" not in told["error"]["message"]
    (shown, *_) = told["error"]["next"]
    assert shown.startswith(f"steponce {then}")
    assert 0 == run(*shown.split()[1:])[0]


def test_a_key_finds_the_machine_that_has_it(world: TwoMachines, run: Run):
    """Though both know the id."""
    both_know(world)
    world.put("acme/1", lockedBy=at_refunds("order-1"))
    assert at_refunds("order-1") == run("status", "order-1", "--key", "acme/1")[1]["executionArn"]


@pytest.mark.parametrize(("command", "code"), [("status", 0), ("show", 0), ("cancel", 3)])
def test_a_guard_s_record_is_found_by_its_key(world: TwoMachines, run: Run, command: str, code: int):
    """As on a stack with one workflow: it is no machine's, and needs no --machine."""
    lease = {"leaseUntil": "2999-01-01T00:00:00.000Z"}
    world.put("billing/charge/1", "charge/1", lockedBy="process/host/7", **lease)
    given = (command, "charge/1", "--key", "billing/charge/1", *(SIGNED if command == "cancel" else ()))

    told = run(*given)

    assert code == told[0]
    assert "process/host/7" in json.dumps(told[1]) or "RUNNING" == told[1]["status"]
    assert 0 == run("locks", "inspect", "billing/charge/1")[0]
    del world.outputs["RefundsWorkflow"]
    assert code == run(*given)[0]


def test_show_names_the_machine_in_its_next_commands(world: TwoMachines, run: Run):
    """A start would go to the stack's own, and a request id may be known twice; a lock token is not."""
    world.held_by_refunds()
    told = run("show", "order-1")[1]["next"]
    assert [
        "steponce locks complete refunds/order-1 FILE --token",
        "steponce locks retry refunds/order-1 --token",
    ] == told
    world.put("refunds/order-1", lockedBy=at_refunds("order-1"), status="RELEASED", openStatus=None)
    assert ["steponce start order-1 FILE --machine refunds"] == run("show", "order-1")[1]["next"]
    world.put("refunds/order-1", lockedBy=at_refunds("order-1"), status="FAILED", openStatus="FAILED#1")
    assert all(one.endswith(" --machine refunds") for one in run("show", "order-1", *AT_REFUNDS)[1]["next"])


def test_show_names_the_machine_that_holds_a_shared_key(world: TwoMachines, run: Run):
    """If the stack knows it; else its stack is asked for."""
    world.execution("order-1", "FAILED", "AcquireLock", error="AlreadyInProgress", given=envelope("acme/1"))
    for owner, options in ((at_refunds("order-9"), "--machine refunds"), (UNKNOWN, "--stack NAME")):
        world.execution(owner, "RUNNING", *TO_WORK, given=envelope("acme/1"))
        world.put("acme/1", "order-9", lockedBy=owner)
        assert [f"steponce show order-9 --key acme/1 {options}"] == run("show", "order-1")[1]["next"]


@pytest.mark.parametrize("machine", [(), ("--machine", "m")], ids=["of both", "asked by name"])
def test_show_names_the_machine_whose_lock_turned_a_request_away(
    world: TwoMachines, run: Run, machine: tuple[str, ...]
):
    """With the machine that was asked, the next command called the lock another machine's."""
    world.execution("order-1", "FAILED", "ReadLock", error="PayloadMismatch", given=envelope("acme/1"))
    world.execution(at_refunds("order-9"), "SUCCEEDED", *TO_WORK, given=envelope("acme/1"))
    held = {"status": "FAILED", "openStatus": "FAILED#3", "payloadHash": "another"}
    world.put("acme/1", "order-9", lockedBy=at_refunds("order-9"), **held)
    other = "locks inspect acme/1 --token --machine refunds"

    (shown,) = run("show", "order-1", *machine)[1]["next"]
    refused = run("show", "order-7", "--key", "acme/1", "--machine", "m")[1]["error"]["next"]

    assert [f"steponce {other}"] * 2 == [shown, *refused]
    assert [] != run(*other.split())[1]["next"]


def test_cancel_stops_the_execution_of_its_machine(world: TwoMachines, run: Run):
    """And of no other, if two know the id."""
    both_know(world)
    assert (2, "MachineAmbiguous") == (
        (told := run("cancel", "order-1", *SIGNED))[0],
        told[1]["error"]["type"],
    )
    code, told_ = run("cancel", "order-1", *SIGNED, *AT_REFUNDS)
    assert (0, at_refunds("order-1")) == (code, told_["executionArn"])
    assert ["RUNNING", "ABORTED"] == [one["status"] for one in world.sfn.executions.values()]
    assert ("INPROGRESS", "FAILED") == (world.lock().status, world.lock("refunds/order-1").status)


# -- locks -----------------------------------------------------------------------------------------
def test_a_result_is_measured_by_the_machine_that_held_the_lock(world: TwoMachines, run: Run, tmp_path: Path):
    """The stack's own machine has a bucket for large results, and this one has none."""
    world.outputs["ResultBucket"] = "large-results"
    world.outputs["RefundsWorkflow"] = json.dumps(OF_REFUNDS | {"resultBucket": "off"})
    shown = world.held_by_refunds()
    path = tmp_path / "large.json"
    path.write_text(json.dumps("x" * 300_000))

    code, told = run("locks", "complete", "refunds/order-1", str(path), *SIGNED)

    assert (2, "OutputTooLarge") == (code, told["error"]["type"])
    assert shown == world.lock("refunds/order-1")


@pytest.mark.parametrize("key", ["order-1", "refunds/order-1"])
def test_retry_starts_the_machine_that_held_the_lock(world: TwoMachines, run: Run, key: str):
    """With its settings, and not with those of the stack's own workflow."""
    world.held_by_refunds()
    world.sfn.started.clear()

    code, told = run("locks", "retry", key, *SIGNED)

    assert (0, at_refunds("order-1--2")) == (code, told["receipt"]["executionArn"])
    (started,) = world.sfn.started
    assert ("refunds/order-1", PAYLOAD, "9999-12-31T23:59:59.000Z") == (
        started["lockToken"],
        started["payload"],
        started["expiresAt"],
    )
    assert arn("order-1--2") not in world.sfn.executions


def test_the_work_of_the_other_machine_has_its_own_time_out(world: TwoMachines, run: Run):
    """17 seconds after it was stopped its lock can be released, and the own one's after 70."""
    closed = times.now() - timedelta(seconds=30)
    theirs = {at_refunds(name): f"refunds/{name}" for name in ("order-1", "order-2")}
    for name, token in {"order-1": "m/order-1", **theirs}.items():
        world.execution(name, "ABORTED", *TO_WORK, closed=closed, given=envelope(token))
        world.put(token, token.partition("/")[2], lockedBy=world.sfn.arn(name))
    assert (3, "Refused") == (
        (told := run("locks", "release", "m/order-1", *SIGNED))[0],
        told[1]["error"]["type"],
    )
    assert 0 == run("locks", "release", "refunds/order-1", *SIGNED)[0]
    del world.outputs["RunOnceStateMachineArn"], world.outputs["WorkTimeoutSeconds"]
    assert 0 == run("locks", "release", "order-2", *SIGNED)[0]


def test_a_lock_of_a_machine_of_another_stack_is_refused_with_the_command(world: TwoMachines, run: Run):
    """Nothing is known of its settings. With --machine for a wrong one the right one is named."""
    world.put("acme/1", "x", lockedBy=UNKNOWN)
    world.held_by_refunds()
    for token, options, owner in (
        ("acme/1", (), "--stack NAME"),
        ("refunds/order-1", ("--machine", "m"), "--machine refunds"),
    ):
        code, told = run("locks", "retry", token, *SIGNED, *options)
        assert (3, "Refused") == (code, told["error"]["type"])
        assert [f"steponce locks inspect {token} --token {owner}"] == told["error"]["next"]
    assert "another machine's record" not in json.dumps(run("locks", "inspect", "refunds/order-1"))
    assert [] == run("locks", "inspect", "acme/1")[1]["next"]


def test_an_id_with_two_records_is_asked_about(world: TwoMachines, run: Run):
    """By any command for a lock; a lock token or a machine says which."""
    world.held()
    world.held_by_refunds()
    for command in ("inspect", "release", "retry"):
        signed = () if command == "inspect" else SIGNED
        code, told = run("locks", command, "order-1", *signed)
        assert (2, "MachineAmbiguous") == (code, told["error"]["type"])
        assert "'m/order-1' of m; 'refunds/order-1' of refunds" in told["error"]["message"]
    assert 0 == run("locks", "release", "order-1", *SIGNED, *AT_REFUNDS)[0]
    assert ("FAILED", "RELEASED") == (world.lock().status, world.lock("refunds/order-1").status)


def test_lists_are_of_all_machines_or_of_the_one_that_is_named(world: TwoMachines, run: Run):
    """Open locks and waiting steps; plain Python's locks are no machine's."""
    both_know(world)
    world.put("jobs/1", "job", lockedBy="process/host/7", leaseUntil="2999-01-01T00:00:00.000Z")
    world.step("m/order-1", "PENDING")
    tokens = [
        sorted(one["lockToken"] for one in run("locks", "list", *machine)[1]["locks"])
        for machine in ((), ("--machine", "m"), AT_REFUNDS)
    ]
    assert [["jobs/1", "m/order-1", "refunds/order-1"], ["m/order-1"], ["refunds/order-1"]] == tokens
    steps = [
        len(run("awaiting", "list", *machine)[1]["awaitingSteps"])
        for machine in ((), ("--machine", "m"), AT_REFUNDS)
    ]
    assert [1, 1, 0] == steps


@pytest.mark.parametrize("command", ["status", "show"])
def test_an_id_that_means_a_damaged_record_says_so(world: TwoMachines, run: Run, command: str):
    """It is there, and cannot be read."""
    world.put("acme/1", lockedBy=at_refunds("order-1"))
    world.damage("acme/1")

    assert "RecordUnreadable" == run(command, "acme/1")[1]["error"]["type"]


def test_the_steps_of_a_distributed_map_are_its_machine_s(world: TwoMachines, run: Run):
    """Each item runs as an execution of MACHINE/LABEL."""
    world.step("m/order-1", "PENDING")
    item = ARN.replace(":stateMachine:", ":execution:") + "/Items:2b8d3a1c"
    (record,) = world.dynamodb.scan(TableName="steps")["Items"]
    world.dynamodb.put_item(TableName="steps", Item=record | {"execution": {"S": item}})
    for machine, count in ((("--machine", "m"), 1), (AT_REFUNDS, 0)):
        assert count == len(run("awaiting", "list", *machine)[1]["awaitingSteps"])


def test_erase_reaches_every_machine_s_records(world: TwoMachines, run: Run):
    """It needs no machine."""
    world.put("acme/1", status="COMPLETED", openStatus=None)
    world.put("acme/2", lockedBy=at_refunds("two"), status="COMPLETED", openStatus=None)
    assert ["acme/1", "acme/2"] == run("erase", "acme/", *SIGNED)[1]["locks"]


def test_what_waits_is_cancelled_at_its_machine_before_it_is_erased(world: TwoMachines, run: Run):
    """Another machine knows a request of the same id. A stack with one workflow names no machine."""
    world.put("refunds/order-1", lockedBy=at_refunds("order-1"), status="COMPLETED", openStatus=None)
    world.execution("order-1", "RUNNING", given=envelope("acme/1") | {"callId": "as_1"})
    world.step("acme/1", "PENDING")
    code, told = run("erase", "acme/", *SIGNED)
    assert (3, ["steponce cancel order-1 --key acme/1 --machine m"]) == (code, told["error"]["next"])
    del world.outputs["RefundsWorkflow"]
    assert ["steponce cancel order-1 --key acme/1"] == run("erase", "acme/", *SIGNED)[1]["error"]["next"]
    assert 0 == run("cancel", "order-1", "--key", "acme/1", *SIGNED)[0]


def test_nothing_is_erased_by_a_stack_that_does_not_know_the_table_of_steps(world: TwoMachines, run: Run):
    """As the stack of a second workflow, whose only Output is `Workflow`. The first stack's erases all."""
    world.put("acme/1", status="COMPLETED", openStatus=None)
    world.step("acme/1")
    of_first = world.outputs
    world.outputs = {"Workflow": json.dumps(OF_REFUNDS)}

    code, told = run("erase", "acme/", *SIGNED)

    message = told["error"]["message"]
    assert (4, True, True) == (code, "AwaitingStepsTable" in message, "--stack" in message)
    world.outputs = of_first
    erased = run("erase", "acme/", *SIGNED)[1]
    assert (["acme/1"], 1) == (erased["locks"], erased["awaitingSteps"])


def test_a_workflow_with_a_table_of_its_own_is_listed_and_nothing_erased(world: TwoMachines, run: Run):
    """As of a second installation in the stack: the Outputs do not lead to the waiting steps of both."""
    create_table(world.dynamodb, "LocksTable", "others")
    world.outputs["RefundsWorkflow"] = json.dumps(OF_REFUNDS | {"locksTable": "others"})
    for name, status, index in (("acme/2", "COMPLETED", None), ("jobs/2", "FAILED", "FAILED#1")):
        world.put(name, lockedBy=at_refunds("two"), status=status, openStatus=index)
        key = {"lockToken": {"S": name}}
        item = world.dynamodb.get_item(TableName="locks", Key=key)["Item"]
        world.dynamodb.put_item(TableName="others", Item=item)
        world.dynamodb.delete_item(TableName="locks", Key=key)
    world.put("acme/1", status="COMPLETED", openStatus=None)

    assert ["jobs/2"] == [lock["lockToken"] for lock in run("locks", "list")[1]["locks"]]
    code, told = run("erase", "acme/", *SIGNED)
    assert (3, True) == (code, "the lock tables locks, others. Nothing was" in told["error"]["message"])
    assert 2 == len(run("requests", "list", "--under", "acme/")[1]["requests"])


def test_one_lock_token_in_two_tables_is_told_apart_by_the_machine(world: TwoMachines, run: Run):
    """By the commands that the refusal names."""
    create_table(world.dynamodb, "LocksTable", "others")
    world.outputs["RefundsWorkflow"] = json.dumps(OF_REFUNDS | {"locksTable": "others"})
    for table, owner in (("others", at_refunds("two")), ("locks", arn("one"))):
        world.put("acme/1", lockedBy=owner, status="FAILED", openStatus="FAILED#1")
        item = world.dynamodb.get_item(TableName="locks", Key={"lockToken": {"S": "acme/1"}})["Item"]
        world.dynamodb.put_item(TableName=table, Item=item)

    code, told = run("locks", "inspect", "acme/1")

    commands = told["error"]["next"]
    found = [run(*command.split()[1:])[1]["record"]["lockedBy"] for command in commands]
    assert (2, [arn("one"), at_refunds("two")]) == (code, found)


def test_a_malformed_output_stops_only_those_who_need_its_workflow(world: TwoMachines, run: Run):
    """What is open can be listed, and the stack's own requests be asked for by name."""
    world.outputs["RefundsWorkflow"] = json.dumps(OF_REFUNDS | {"expectedSeconds": "soon"})
    both_know(world)
    assert [0, 0, 0] == [
        run(*command)[0]
        for command in (
            ["locks", "list"],
            ["erase", "acme/", *SIGNED],
            ["status", "order-1", "--machine", "m"],
        )
    ]
    code, told = run("status", "order-1")
    assert (1, True) == (code, "The Output RefundsWorkflow: " in told["error"]["message"])


@pytest.mark.parametrize(
    "command",
    [["show", "order-1"], ["awaiting", "list"], ["callback", "succeed", "order-1"], ["erase", "m/", *SIGNED]],
    ids=lambda one: one[0],
)
def test_a_malformed_number_of_shards_is_named(world: TwoMachines, run: Run, command: list[str]):
    """By the commands on waiting steps as by those on locks."""
    del world.outputs["RefundsWorkflow"]
    world.put()
    world.outputs["OpenShards"] = "many"
    code, told = run(*command)
    assert (1, "InvalidSetting") == (code, told["error"]["type"])
    assert "The setting OpenShards is 'many'" in told["error"]["message"]
    assert told == run("locks", "list")[1]


def test_a_request_id_for_a_step_is_asked_about_as_well(world: TwoMachines, run: Run):
    """If two machines know it; an id that none knows is taken for a step's."""
    both_know(world)
    for command in (["awaiting", "show"], ["callback", "heartbeat"]):
        assert "MachineAmbiguous" == run(*command, "order-1")[1]["error"]["type"]
    code, told = run("awaiting", "show", "nobody", *AT_REFUNDS)
    assert (1, ["steponce awaiting list --machine refunds"]) == (code, told["error"]["next"])


def test_a_refusal_names_the_machine_in_its_next_commands(world: TwoMachines, run: Run):
    """The command itself had found it by the lock token."""
    both_know(world)
    code, told = run("locks", "release", "refunds/order-1", *SIGNED)
    assert (3, ["steponce cancel order-1 --machine refunds"]) == (code, told["error"]["next"])


# -- letters ---------------------------------------------------------------------------------------
def test_letters_of_each_workflow_are_listed_and_go_back_to_its_queue(
    world: TwoMachines, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """All of them, or those of one machine."""
    sqs = shared("sqs", "eu-west-1")
    receive = sqs.receive_message
    monkeypatch.setattr(sqs, "receive_message", lambda **given: receive(**given | {"WaitTimeSeconds": 0}))
    urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("d", "q", "e", "rd", "rq")}
    world.outputs |= {
        "RequestsDeadLetterQueueUrl": urls["d"],
        "RequestsQueueUrl": urls["q"],
        "DeadEventsQueueUrl": urls["e"],
        "RefundsWorkflow": json.dumps(
            OF_REFUNDS
            | {"requestsDeadLetterQueueUrl": urls["rd"], "requestsQueueUrl": urls["rq"]}
            | {"deadEventsQueueUrl": urls["e"], "requestsFifoDeadLetterQueueUrl": ""}
        ),
    }
    for name in ("d", "rd", "e"):
        sqs.send_message(QueueUrl=urls[name], MessageBody=json.dumps(PAYLOAD))

    listed = {
        name: sorted((one["queue"], one["machine"]) for one in run("letters", "list", *machine)[1]["letters"])
        for name, machine in (("all", ()), ("m", ("--machine", "m")), ("refunds", AT_REFUNDS))
    }
    own, events, theirs = ("queue", "m"), ("events", "m"), ("queue of refunds", "refunds")
    assert {
        "all": [events, own, theirs],
        "m": [events, own],
        "refunds": [("events of refunds", "refunds"), theirs],
    } == listed

    code, told = run("letters", "redrive", "--all", *AT_REFUNDS)
    assert (0, ["refunds"]) == (code, [one["machine"] for one in told["letters"]])
    count = {name: len(receive(QueueUrl=urls[name]).get("Messages", [])) for name in ("q", "rq", "rd", "d")}
    assert {"q": 0, "rq": 1, "rd": 0, "d": 1} == count


@pytest.mark.parametrize("record", ["stream", "schedule"])
def test_what_a_letter_asks_to_be_started_is_started_at_its_machine(
    world: TwoMachines, run: Run, monkeypatch: pytest.MonkeyPatch, record: str
):
    """In what `show` says as in the refusal of `redrive`. A stack with one workflow names none."""
    sqs = shared("sqs", "eu-west-1")
    receive = sqs.receive_message
    monkeypatch.setattr(sqs, "receive_message", lambda **given: receive(**given | {"WaitTimeSeconds": 0}))
    urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("d", "q", "e", "theirs")}
    world.outputs |= {
        "RequestsDeadLetterQueueUrl": urls["d"],
        "RequestsQueueUrl": urls["q"],
        "DeadEventsQueueUrl": urls["e"],
        "RefundsWorkflow": json.dumps(OF_REFUNDS | {"deadEventsQueueUrl": urls["theirs"]}),
    }
    body, given = FOREIGN[record]
    attributes = {
        name: {"DataType": "String", "StringValue": value["stringValue"]} for name, value in given.items()
    }
    sent = sqs.send_message(
        QueueUrl=urls["theirs"], MessageBody=json.dumps(body), MessageAttributes=attributes
    )

    def told() -> list[str]:
        _, shown = run("letters", "show", sent["MessageId"])
        code, refused = run("letters", "redrive", sent["MessageId"])
        assert (3, shown["next"]) == (code, refused["error"]["next"])
        command, _deletes = shown["next"]
        assert command.startswith("steponce start ")
        return command.split(" FILE", 1)[1].split()

    assert ["--machine", "refunds"] == told()
    del world.outputs["RunOnceStateMachineArn"]
    assert [] == told()


def test_a_workflow_without_dead_letters_says_so(world: TwoMachines, run: Run):
    """Rather than that nothing lies there."""
    code, told = run("letters", "list", *AT_REFUNDS)
    assert (4, True) == (code, "no dead letters of refunds" in told["error"]["message"])
    assert OF_REFUNDS == json.loads(world.outputs["RefundsWorkflow"])


# -- requests list ---------------------------------------------------------------------------------
def test_the_list_of_requests_names_each_one_s_machine(world: TwoMachines, run: Run):
    """In a pipe it is one object; without --machine also what is no machine's."""
    world.held()
    world.held_by_refunds("order-2")
    world.put("jobs/1", "job", lockedBy="process/host/7", leaseUntil="2999-01-01T00:00:00.000Z")
    world.damage("m/x")
    code, told = run("requests", "list")
    assert (0, False, 1, ["created"]) == (
        code,
        told["more"],
        told["unreadableCount"],
        [one["attribute"] for one in told["unreadable"]],
    )
    assert {"order-1": "m", "order-2": "refunds", "job": None} == {
        one["requestId"]: one["machine"] for one in told["requests"]
    }
    assert "tok_secret" not in json.dumps(told)
    assert ["order-2"] == [one["requestId"] for one in run("requests", "list", *AT_REFUNDS)[1]["requests"]]
    assert {"Boom"} == {one["error"] for one in run("requests", "list", "--status", "failed")[1]["requests"]}
    assert ["job"] == [
        one["requestId"] for one in run("requests", "list", "--status", "running")[1]["requests"]
    ]


def test_everything_that_is_kept_of_a_customer_is_listed_and_nothing_erased(world: TwoMachines, run: Run):
    """Requests and steps, of any machine; `erase` then finds the same."""
    for token, owner in (("acme/1", arn("one")), ("acme/2", at_refunds("two")), ("acme2/3", arn("three"))):
        world.put(token, token, lockedBy=owner, status="COMPLETED", openStatus=None)
        world.step(token, step_id=token)
    told = run("requests", "list", "--under", "acme/")[1]
    assert (["acme/1", "acme/2"], ["acme/1", "acme/2"], False) == (
        sorted(one["lockToken"] for one in told["requests"]),
        sorted(one["lockToken"] for one in told["awaitingSteps"]),
        told["more"],
    )
    erased = run("erase", "acme/", *SIGNED)[1]
    assert (["acme/1", "acme/2"], 2) == (erased["locks"], erased["awaitingSteps"])
    empty = run("requests", "list", "--under", "acme/")[1]
    assert ([], [], False) == (empty["requests"], empty["awaitingSteps"], empty["more"])


def test_a_long_list_is_cut_and_says_so(world: TwoMachines, run: Run):
    """Exactly at the limit nothing is left out."""
    for number in range(5):
        world.put(f"m/{number}", str(number))
    assert [(2, True), (5, False), (5, False)] == [
        (len(told["requests"]), told["more"])
        for told in (run("requests", "list", "--limit", str(limit))[1] for limit in (2, 5, 6))
    ]


def test_since_and_until_are_times_or_how_long_ago(world: TwoMachines, run: Run):
    """A record's time is that of its lock, here an hour ago."""
    world.put()
    spans = {
        "30m": 0,
        "180m": 1,
        "24h": 1,
        "7d": 1,
        "2020-01-01T00:00:00Z": 1,
        "2999-01-01T00:00:00+02:00": 0,
    }
    assert spans == {since: len(run("requests", "list", "--since", since)[1]["requests"]) for since in spans}
    assert 0 == len(run("requests", "list", "--until", "3h")[1]["requests"])
    for wrong in (["--since", "yesterday"], ["--until", "2026-01-01"], ["--since", "9w"], ["--under", " "]):
        assert (2, "UsageError") == ((told := run("requests", "list", *wrong))[0], told[1]["error"]["type"])
    refused = run("requests", "list", "--since", "1h", "--until", "2h")[1]
    assert "No request is between them." in refused["error"]["message"]


def test_an_error_in_the_middle_of_a_list_closes_it(
    world: TwoMachines, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """A pipe gets one object: what was read, and the error. Before the first row it is the error alone."""
    monkeypatch.setattr(stream, "AT_ONCE", 2)
    world.sfn.refuse("list_executions", "ThrottlingException")
    assert (4, {"error"}) == ((told := run("requests", "list", "--since", "2h"))[0], set(told[1]))
    for number in range(3):
        world.put(f"m/{number}", str(number))
    code, told_ = run("requests", "list", "--since", "2h")
    assert (4, {"requests", "error"}, "Unavailable") == (code, set(told_), told_["error"]["type"])
    assert 2 <= len(told_["requests"])

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    world.sfn.before_call = interrupt
    assert (130, "Interrupted") == (
        (told := run("requests", "list", "--since", "2h"))[0],
        told[1]["error"]["type"],
    )
    assert told[1]["error"]["message"].endswith("what was written stays.")


def test_a_list_that_cannot_be_written_to_its_end_says_so_once(
    world: TwoMachines, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Closing the object would fail as well, so nothing is tried any more."""
    world.put()

    def write(answer: stream.Stream, _text: str) -> None:
        answer.has_begun = True
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stream.Stream, "_write", write)
    assert 74 == commands.run(["requests", "list"])
    assert 1 == capsys.readouterr().err.count("\n")


def test_people_get_tables(
    world: TwoMachines, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Some rows each, without what steers a terminal."""
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    monkeypatch.setattr(stream, "for_people", lambda: True)
    monkeypatch.setattr(stream, "AT_ONCE", 1)
    assert 0 == commands.run(["requests", "list"])
    assert "No such request." in capsys.readouterr().out
    world.held_by_refunds("order-\x1b[31m")
    world.put()
    world.step("m/order-1")
    assert 0 == commands.run(["requests", "list", "--limit", "2"])
    out = capsys.readouterr().out
    assert all(text in out for text in ("order-1", "refunds", "FAILED", "Boom", "RUNNING", "m/order-1"))
    assert 2 == out.count("since (UTC)")
    assert "\x1b[31m" not in out
    assert 0 == commands.run(["requests", "list", "--under", "m/", "--limit", "1"])
    assert "confirmation of order-1" in capsys.readouterr().out
    assert ARN not in out
