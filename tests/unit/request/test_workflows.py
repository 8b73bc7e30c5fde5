"""Which workflows a stack's Outputs name, and what they say of each."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from botocore.config import Config

from steponce import Client, Guard, Limiter
from steponce.aws.clients import CONFIG
from steponce.errors import InvalidSetting, MachineAmbiguous, MachineNotFound
from steponce.powertools import LocksPersistence
from steponce.request.workflows import Workflow, Workflows
from tests.unit.one_machine import ARN, arn
from tests.unit.shared_clients import SharedClients
from tests.unit.two_machines import OF_REFUNDS, OUTPUTS, REFUNDS, at_refunds


def workflows(**outputs: Any) -> Workflows:
    """Those of the stack, with more Outputs; None takes one away, and a mapping is written as JSON."""
    given = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in {**OUTPUTS, **outputs}.items()
        if value is not None
    }
    return Workflows.from_outputs(given)


def test_a_workflow_s_output_says_what_its_client_needs():
    """Each setting as the stack's own Outputs would; an empty text says nothing."""
    given = OF_REFUNDS | {
        "lockTokenPath": 'order."id\\\\x"',
        "payloadHashPath": "amount",
        "rateLimit": "8",
        "rateLimitWindow": "hour",
        "rateLimitPath": "customer",
        "openShards": "20",
    }
    rules = workflows(RefundsWorkflow=given).choose("refunds").rules()
    assert ("refunds", 60, None, 7, 20) == (
        rules.key_prefix,
        rules.expected_seconds,
        rules.retention_seconds,
        rules.work_timeout_seconds,
        rules.open_shards,
    )
    assert ('order."id\\\\x"', "amount", 8, "hour", "customer") == (
        rules.lock_token_path,
        rules.payload_hash_path,
        rules.rate_limit,
        rules.rate_limit_window,
        rules.rate_limit_path,
    )
    plain = workflows().choose("refunds").rules()
    assert (None, None, None) == (plain.lock_token_path, plain.payload_hash_path, plain.request_limit())


def test_what_a_workflow_does_not_say_the_stack_says_and_never_its_other_settings():
    """They may share a table; the stack's own key prefix is never another workflow's."""
    given = {name: value for name, value in OF_REFUNDS.items() if name not in ("locksTable", "keyPrefix")}
    found = workflows(RefundsWorkflow=given, ResultBucket="large", OpenShards="30").choose("refunds")
    assert ("locks", "large") == (found.setting("LocksTable"), found.settings["ResultBucket"])
    with pytest.raises(InvalidSetting, match=r"The Output RefundsWorkflow: .*KeyPrefix is missing"):
        found.rules()
    own = workflows(RefundsWorkflow=OF_REFUNDS | {"locksTable": "its-own"}).choose("refunds")
    assert "its-own" == own.setting("LocksTable")


def test_numbers_and_nulls_are_read_as_texts():
    """Somebody may write the Output by hand."""
    given = OF_REFUNDS | {"expectedSeconds": 90, "retentionSeconds": 60.5, "lockTokenPath": None}
    rules = workflows(RefundsWorkflow=given).choose("refunds").rules()
    assert (90, 60.5, None) == (rules.expected_seconds, rules.retention_seconds, rules.lock_token_path)


@pytest.mark.parametrize(
    "text", ["arn:aws:states:x", "", "{", "[1]", "7", "{}", '{"name": "x"}', "[" * 9_999]
)
def test_an_output_that_is_something_else_is_left_alone(text: str):
    """Its name may end so by chance."""
    assert ["m", "refunds"] == [one.name for one in workflows(OrderWorkflow=text)]


def test_a_malformed_workflow_stops_only_who_wants_it():
    """And says which Output is wrong."""
    found = workflows(RefundsWorkflow=OF_REFUNDS | {"expectedSeconds": "soon"})
    assert "m" == found.choose().rules().key_prefix
    with pytest.raises(InvalidSetting, match=r"The Output RefundsWorkflow: .*ExpectedSeconds is 'soon'"):
        found.choose(REFUNDS).rules()
    missing = workflows(RefundsWorkflow=OF_REFUNDS | {"locksTable": ""}, LocksTable=None)
    with pytest.raises(InvalidSetting, match="no LocksTable for the state machine"):
        missing.choose("refunds").setting("LocksTable")


def test_the_stack_s_own_workflow_counts_once():
    """Its template may name it in an Output of its own as well."""
    again = OF_REFUNDS | {"stateMachineArn": ARN, "keyPrefix": "other"}
    found = workflows(Workflow=again)
    assert (2, "m") == (len(found), found.choose("m").rules().key_prefix)
    assert ARN == found.choose().arn


@pytest.mark.parametrize(
    ("outputs", "chosen"),
    [({}, ARN), ({"RefundsWorkflow": None}, ARN), ({"RunOnceStateMachineArn": None}, REFUNDS)],
    ids=["the stack's own", "the stack's own alone", "the only one"],
)
def test_without_a_name_one_workflow_is_meant(outputs: dict[str, Any], chosen: str):
    """The stack's own, or the only one that there is."""
    assert chosen == workflows(**outputs).choose().arn


def test_a_machine_is_named_by_its_name_or_its_arn():
    """Its Output's name is none of these."""
    assert {REFUNDS} == {workflows().choose(name).arn for name in ("refunds", REFUNDS)}
    for unknown in ("Refunds", "RefundsWorkflow", "refund", f"{REFUNDS}2", ""):
        with pytest.raises(MachineNotFound, match=r"It has: m, refunds\. Name one of these\."):
            workflows().choose(unknown)


def test_of_several_without_a_name_none_is_guessed():
    """Nor of two machines of one name; the message lists them."""
    far = REFUNDS.replace("eu-west-1", "us-east-1")
    two = {"FarWorkflow": OF_REFUNDS | {"stateMachineArn": far}}
    with pytest.raises(MachineAmbiguous, match=f"Give an ARN: {far}, {REFUNDS}"):
        workflows(**two).choose("refunds")
    with pytest.raises(MachineAmbiguous, match=f"Name the state machine: {far}, {REFUNDS}"):
        workflows(**two, RunOnceStateMachineArn=None).choose()
    assert far == workflows(**two).choose(far).arn
    assert {ARN: "m", far: far, REFUNDS: REFUNDS} == workflows(**two).names()


def test_a_stack_without_a_workflow_says_so():
    """Whatever machine is named."""
    for machine in (None, "refunds"):
        with pytest.raises(MachineNotFound, match="name no workflow"):
            Workflows.from_outputs({}).choose(machine)


def test_the_machine_of_an_execution_is_known():
    """Not that of another stack, nor of one with a longer name, nor of a guard."""
    found = workflows()
    assert [ARN, REFUNDS] == [
        one.arn
        for name in ("order-1",)
        for one in map(found.of_execution, (arn(name), at_refunds(name)))
        if one
    ]
    for stranger in ("process/host/1", f"{arn('x').replace(':m:', ':m2:')}", "Powertools"):
        assert None is found.of_execution(stranger)


def test_a_client_of_a_machine_has_its_settings():
    """By from_outputs, and beside a client of another one by the same connections."""
    session: Any = SharedClients("eu-west-1")
    own = Client.from_outputs(OUTPUTS, session=session)
    refunds = Client.from_outputs(OUTPUTS, machine="refunds", session=session)
    beside = own.of(Workflow(REFUNDS, workflows().choose("refunds").settings))
    assert [(ARN, "m"), (REFUNDS, "refunds"), (REFUNDS, "refunds")] == [
        (one.state_machine_arn, one.rules.key_prefix) for one in (own, refunds, beside)
    ]
    assert own.machine.sfn is beside.machine.sfn
    assert refunds.rules == beside.rules != own.rules
    with pytest.raises(MachineNotFound, match="It has: m, refunds"):
        Client.from_outputs(OUTPUTS, machine="charges", session=session)
    assert "m, refunds" in str(pickle.loads(pickle.dumps(MachineAmbiguous("m, refunds"))))


def test_a_workflow_s_output_alone_makes_a_client():
    """A function gets it as a variable among others."""
    given = {"PATH": "/bin", "AWS_REGION": "eu-west-1", "Workflow": json.dumps(OF_REFUNDS)}
    made = Client.from_outputs(given, session=SharedClients("eu-west-1"))
    assert (REFUNDS, "refunds") == (made.state_machine_arn, made.rules.key_prefix)


class Session(SharedClients):
    """A session in whose account and region the stack is; it notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__("eu-west-1")
        self.asked: list[str] = []
        self.regions: list[Any] = []

    def client(self, service: str, **options: Any) -> Any:
        self.asked.append(service)
        self.regions.append(getattr(options["config"], "region_name", None))
        return self if service == "cloudformation" else super().client(service, **options)

    def describe_stacks(self, *, StackName: str) -> Any:
        """CloudFormation's."""
        self.asked.append(StackName)
        given = OUTPUTS | {"LimitsTable": "limits"}
        listed = [{"OutputKey": name, "OutputValue": value} for name, value in given.items()]
        return {"Stacks": [{"Outputs": listed}]}


def test_a_client_of_a_stack_on_aws_reads_the_same_outputs():
    """From CloudFormation."""
    session: Any = Session()
    assert [ARN, REFUNDS] == [
        Client.from_stack("shop", machine=machine, session=session).state_machine_arn
        for machine in (None, "refunds")
    ]
    assert 2 == session.asked.count("shop")


@pytest.mark.parametrize(
    "make",
    [
        lambda session, config: Client.from_stack("shop", session=session, config=config),
        lambda session, config: Guard.from_stack("shop", session=session, config=config),
        lambda session, config: Limiter.from_stack(
            "shop", session=session, config=config, limit=5, window="day"
        ),
        lambda session, config: LocksPersistence.from_stack(
            "shop", boto3_session=session, boto_config=config
        ),
    ],
    ids=["client", "guard", "limiter", "powertools"],
)
def test_what_is_made_of_a_stack_on_aws_works_where_the_stack_is(make: Any):
    """By the caller's own session and config, from the first call to the last."""
    session = Session()
    assert make(session, Config(region_name="eu-north-1"))
    asked = [one for one in session.asked if one not in ("s3", "stepfunctions")]
    assert ["cloudformation", "shop", "dynamodb"] == asked
    assert {"eu-north-1"} == set(session.regions)


@pytest.mark.parametrize("make", [Guard.from_outputs, LocksPersistence.from_outputs])
@pytest.mark.parametrize("outputs", [{}, {"LocksTable": ""}])
def test_outputs_of_another_stack_are_refused_by_name(make: Any, outputs: dict[str, str]):
    """And not by an error of Python's."""
    with pytest.raises(InvalidSetting, match=r"no Output LocksTable\. Give the Outputs of"):
        make(outputs)


def test_a_client_has_its_caller_s_config_and_addresses():
    """For each of its services, on top of its own: as behind a proxy, or on a local stack."""
    given: dict[str, tuple[str, str]] = {}

    class Noting(SharedClients):
        def client(self, service: str, **options: Any) -> Any:
            config = options["config"]
            given[service] = (config.user_agent_extra, options["endpoint_url"])
            assert CONFIG.retries == config.retries
            return super().client(service, **options)

    session: Any = Noting("eu-west-1")
    at = {"states": "http://127.0.0.1:1", "dynamodb": "http://127.0.0.1:2"}
    Client(ARN, "locks", session=session, config=Config(user_agent_extra="mine"), endpoints=at)
    assert {"stepfunctions": ("mine", at["states"]), "dynamodb": ("mine", at["dynamodb"])} == given
