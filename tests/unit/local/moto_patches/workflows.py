"""State machines that tests make on the small stack."""

import itertools
import json
from pathlib import Path

from tests.patience import eventually

TEMPLATE = Path(__file__).parents[1] / "fixture" / "template.yaml"

NUMBERS = itertools.count()
"""Of the machines on the small stack, which several files share."""


class Workflows:
    """Runs state machines made on the spot."""

    def __init__(self, stack):
        self.stack = stack
        self.sfn = stack.boto3("stepfunctions")

    def make(self, states, start=None, **fields):
        """A state machine of these states; the first one is where it starts."""
        definition = {"StartAt": start or next(iter(states)), "States": states, **fields}
        return self.sfn.create_state_machine(
            name=f"machine-{next(NUMBERS)}",
            definition=json.dumps(definition),
            roleArn="arn:aws:iam::123456789012:role/test",
        )["stateMachineArn"]

    def start(self, states, payload=None, **fields):
        """Start an execution of a new state machine."""
        return self.sfn.start_execution(
            stateMachineArn=self.make(states, **fields), name="once", input=json.dumps(payload or {})
        )["executionArn"]

    def end(self, arn):
        """Wait for an execution's end; what DescribeExecution says then."""
        eventually(lambda: self.described(arn)["status"] != "RUNNING", lambda: self.history(arn))
        return self.described(arn)

    def described(self, arn):
        return self.sfn.describe_execution(executionArn=arn)

    def run(self, states, payload=None, **fields):
        """Start, and wait for the end."""
        return self.end(self.start(states, payload, **fields))

    def history(self, arn, **options):
        """The types of the events."""
        events = self.sfn.get_execution_history(executionArn=arn, **options)["events"]
        return [event["type"] for event in events]

    def token(self, arn):
        """The task token of the newest attempt, from what its function was given."""

        def submitted():
            events = self.sfn.get_execution_history(executionArn=arn)["events"]
            found = [
                json.loads(event["taskScheduledEventDetails"]["parameters"])["Payload"]["token"]
                for event in events
                if event["type"] == "TaskScheduled"
            ]
            newest = events[-1]["type"]
            is_sent = newest == "TaskSubmitted" or newest.startswith("Execution")  # its time may be over
            return is_sent and found and found[-1]

        return eventually(submitted)


def task(resource, parameters, others):
    """A task that ends the execution unless it has a Next."""
    last = {} if "Next" in others else {"End": True}
    return {
        "Type": "Task",
        "Resource": f"arn:aws:states:::{resource}",
        "Parameters": parameters,
        **last,
        **others,
    }


def lambda_task(**others):
    """A task that calls the fixture's function with the whole input."""
    parameters = {"FunctionName": "small-MisbehaveFunction", "Payload.$": "$"}
    return task("lambda:invoke", parameters, others)


def put_task(item, **others):
    """A task that writes an item."""
    return task("dynamodb:putItem", {"TableName": "small-ItemsTable", "Item": item}, others)


def waiting_task(**others):
    """A task that waits for its token."""
    parameters = {"FunctionName": "small-MisbehaveFunction", "Payload": {"token.$": "$$.Task.Token"}}
    return task("lambda:invoke.waitForTaskToken", parameters, {"TimeoutSeconds": 60, **others})
