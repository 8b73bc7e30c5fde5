"""The permissions that docs/operations.md lists for an operator are those that the commands need."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import botocore.session
from botocore import xform_name

from .documents import ROOT, requests
from .source import PACKAGE, imported_files
from .template import resources

SERVICES = ("cloudformation", "dynamodb", "lambda", "s3", "secretsmanager", "sqs", "stepfunctions")
"""Those of which the commands have clients."""

ACTIONS = {
    "change_message_visibility_batch": {"sqs:ChangeMessageVisibility"},
    "delete_item": {"dynamodb:DeleteItem"},
    "delete_message": {"sqs:DeleteMessage"},
    "delete_objects": {"s3:DeleteObjectVersion"},  # it names versions
    "describe_execution": {"states:DescribeExecution"},
    "describe_stacks": {"cloudformation:DescribeStacks"},
    "get_execution_history": {"states:GetExecutionHistory"},
    "get_item": {"dynamodb:GetItem"},
    "get_object": {"s3:GetObjectVersion"},  # it names a version
    "get_queue_attributes": {"sqs:GetQueueAttributes"},
    "get_secret_value": {"secretsmanager:GetSecretValue"},
    "invoke": {"lambda:InvokeFunction"},
    "list_executions": {"states:ListExecutions"},
    "list_object_versions": {"s3:ListBucketVersions"},
    "put_object": {"s3:PutObject", "s3:PutObjectTagging"},  # it has a tag
    "query": {"dynamodb:Query"},
    "receive_message": {"sqs:ReceiveMessage"},
    "scan": {"dynamodb:Scan"},
    "send_message": {"sqs:SendMessage"},
    "start_execution": {"states:StartExecution"},
    "stop_execution": {"states:StopExecution"},
    "update_item": {"dynamodb:UpdateItem"},
}
"""What each call of the commands needs. Source: Service Authorization Reference."""

ADVISED = {"kinesis:GetRecords", "kinesis:GetShardIterator", "lambda:InvokeFunction"}
"""What a person needs beside the commands, to do as `letters show` says."""

NOT_OF_COMMANDS = (
    "guards",
    "lint",
    "limits/counters.py",
    "local",
    "scaffold",
    "testing",
    "triggers/events.py",
)
"""Modules that commands import for other things than their calls, or that are for a laptop alone."""


@cache
def operations() -> frozenset[str]:
    """The methods of the services' clients."""
    session = botocore.session.get_session()
    models = [session.get_service_model(service) for service in SERVICES]
    return frozenset(xform_name(name) for model in models for name in model.operation_names)


def calls(text: str) -> Iterator[str]:
    """The methods of AWS's clients that a module names: called, handed on, or as a paginator's name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in operations():
            yield node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".get_paginator"):
            yield ast.literal_eval(node.args[0])


def modules_of_commands() -> set[Path]:
    """What the command line imports, by whatever way, and itself."""
    found, waiting = set[Path](), [*(PACKAGE / "cli").glob("*.py")]
    while waiting:
        path = waiting.pop()
        if path in found or path.relative_to(PACKAGE).as_posix().startswith(NOT_OF_COMMANDS):
            continue
        found.add(path)
        waiting += imported_files(path.read_text())
    return found


def section() -> str:
    """The page's part about an operator's role."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    return page.partition("\n## What an operator's role needs\n")[2].partition("\n## ")[0]


def test_the_operator_s_role_is_complete() -> None:
    """No command makes a call whose permission the page does not name, and the page names no other."""
    allowed = set(re.findall(r"`([a-z0-9]+:[A-Z]\w+)`", section()))

    made = {call for path in modules_of_commands() for call in calls(path.read_text())}
    assert set(ACTIONS) == made
    assert set().union(*ACTIONS.values(), ADVISED) == allowed


def test_the_operator_may_invoke_each_function_whose_events_become_dead_letters() -> None:
    """`letters show` prints the command that sends such an event to its function."""
    failing = [
        name
        for name, properties in resources(requests(), "AWS::Serverless::Function").items()
        if "OnFailure" in properties.get("EventInvokeConfig", {}).get("DestinationConfig", {})
    ]
    (row,) = [line for line in section().splitlines() if line.startswith("| `aws lambda invoke`")]

    assert sorted(failing) == sorted(re.findall(r"`(\w+Function)`", row))


def test_a_call_is_found_however_it_is_made() -> None:
    """The rule above can fail."""
    assert ["put_item"] == list(calls("client.put_item(Item={})"))
    assert ["delete_table"] == list(calls("write(client.delete_table)"))
    assert ["scan"] == list(calls("pages = client.get_paginator('scan').paginate()"))
