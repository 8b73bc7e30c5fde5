"""A running stack with the questions that tests ask of it."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from steponce import Client, Receipt
from steponce.local import LocalStack
from steponce.locks.record import Lock
from steponce.locks.table import Locks
from tests.patience import PATIENCE_SECONDS, eventually
from tests.workflow.clock import Clock
from tests.workflow.faults import Answer, Call, Faults, Hold

VISA = {"orderId": "1", "amount": 500, "card": "tok_visa"}
DECLINED = VISA | {"card": "tok_declined"}
UNREACHABLE = VISA | {"card": "tok_unreachable"}
BUG = VISA | {"card": "tok_bug"}
KILLED = VISA | {"card": "tok_killed"}


def slow(seconds: float) -> dict[str, Any]:
    """A payload whose work takes so long."""
    return VISA | {"card": "tok_slow", "delaySeconds": seconds}


@dataclass
class Scene:
    """One stack, the faults in front of it, and a client."""

    stack: LocalStack
    faults: Faults
    clock: Clock = field(default_factory=Clock)
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        outputs = self.stack.outputs
        self.client = Client.from_outputs(outputs, session=self.stack.session(), endpoints=self._endpoints())
        self.locks = Locks(self.stack.boto3("dynamodb"), self.stack.outputs["LocksTable"])
        self._ids = itertools.count(1)

    def new_id(self, kind: str = "order") -> str:
        """An id that no other test has."""
        return f"{kind}-{uuid.uuid4().hex[:8]}-{next(self._ids)}"

    def client_with(self, **rules: Any) -> Client:
        """A client with other rules, for example another retention."""
        rules = replace(self.client.rules, **rules)
        arn, table = self.client.state_machine_arn, self.stack.outputs["LocksTable"]
        return Client(arn, table, rules=rules, session=self.stack.session(), endpoints=self._endpoints())

    def _endpoints(self) -> dict[str, str]:
        """Clients ask Step Functions by the clock's proxy, as functions do."""
        return self.stack.endpoints | ({"states": self.clock.url} if self.clock.url else {})

    @contextmanager
    def working(self, key: str) -> Iterator[Hold]:
        """The work of whoever gets this key's lock lasts until the block ends."""
        hold = self.faults.plan("DoWork", Hold(), key=key)
        assert isinstance(hold, Hold)
        try:
            yield hold
        finally:
            hold.go_on.set()

    def hasty_client(self, state: str = "DoWork") -> Client:
        """A client of a machine that gives the work one second; or an answer ten, with signs of life."""
        sfn = self.stack.boto3("stepfunctions")
        here = sfn.describe_state_machine(stateMachineArn=self.client.state_machine_arn)
        definition = json.loads(here["definition"])
        hurried = definition["States"][state]
        for path in ("TimeoutSecondsPath", "HeartbeatSecondsPath"):
            hurried.pop(path, None)
        if state == "DoWork":
            hurried["TimeoutSeconds"] = 1
        else:
            hurried |= {"TimeoutSeconds": 10, "HeartbeatSeconds": 4}
            payload = hurried["Parameters"]["Payload"]
            del payload["timeoutSeconds.$"], payload["heartbeatSeconds.$"]
            payload |= {"timeoutSeconds": 10, "heartbeatSeconds": 4}
        arn = sfn.create_state_machine(
            name=f"hasty-{state}", definition=json.dumps(definition), roleArn=here["roleArn"]
        )["stateMachineArn"]
        table, rules = self.stack.outputs["LocksTable"], self.client.rules
        return Client(arn, table, rules=rules, session=self.stack.session(), endpoints=self._endpoints())

    def key(self, request_id: str) -> str:
        """The lock token that a request has by default."""
        return f"{self.client.rules.key_prefix}/{request_id}"

    def lock(self, lock_token: str) -> Lock | None:
        return self.locks.get(lock_token)

    def charges(self, lock_token: str) -> list[Mapping[str, Any]]:
        """The calls of the card provider for one key."""
        answer = self.stack.boto3("dynamodb").query(
            TableName=self.stack.outputs["ChargesTable"],
            KeyConditionExpression="lockToken = :key",
            ExpressionAttributeValues={":key": {"S": lock_token}},
            ConsistentRead=True,
        )
        return answer["Items"]

    def on_open_index(self, lock: Lock) -> bool:
        """Whether the sparse index of open locks holds this record."""
        if lock.open_status is None:
            return False
        answer = self.stack.boto3("dynamodb").query(
            TableName=self.stack.outputs["LocksTable"],
            IndexName="OpenLocks",
            KeyConditionExpression="openStatus = :open",
            ExpressionAttributeValues={":open": {"S": lock.open_status}},
        )
        return lock.lock_token in [item["lockToken"]["S"] for item in answer["Items"]]

    def put_lock(self, lock_token: str, **attributes: str | int) -> None:
        """Write a record by hand, whatever was there."""
        item = {name: {"N" if isinstance(v, int) else "S": str(v)} for name, v in attributes.items()}
        self.stack.boto3("dynamodb").put_item(
            TableName=self.stack.outputs["LocksTable"], Item=item | {"lockToken": {"S": lock_token}}
        )

    def put_open_lock_of_another(
        self, lock_token: str, execution_name: str, payload_hash: str | None
    ) -> None:
        """An old open record of this execution's ARN, with a callId that no execution of today has."""
        self.put_lock(
            lock_token,
            status="INPROGRESS",
            openStatus="INPROGRESS#0",
            lockedBy=self.arn(execution_name),
            callId="0" * 32,
            executionName=execution_name,
            requestId=execution_name,
            attempt=1,
            created="2020-01-01T00:00:00.000Z",
            expectedCompletion="2020-01-01T00:05:00.000Z",
            expiresAt="2099-01-01T00:00:00.000Z",
            payloadHash=str(payload_hash),
        )

    def hide_at_every_look(self, lock_token: str) -> None:
        """Let a completed record be gone whenever ReadLock looks, and there again right after."""
        item = self.raw_lock(lock_token)

        def hide(_call: Call, forward: Callable[[], Answer]) -> Answer:
            self.delete_lock(lock_token)
            answer = forward()
            self.stack.boto3("dynamodb").put_item(TableName=self.stack.outputs["LocksTable"], Item=item)
            return answer

        self.faults.plan("ReadLock", hide, key=lock_token, times=10)

    def raw_lock(self, lock_token: str) -> dict[str, Any]:
        """A record as DynamoDB has it, with attributes that no Lock knows."""
        answer = self.stack.boto3("dynamodb").get_item(
            TableName=self.stack.outputs["LocksTable"],
            Key={"lockToken": {"S": lock_token}},
            ConsistentRead=True,
        )
        return dict(answer["Item"])

    def change_lock(self, lock_token: str, **attributes: str | int) -> None:
        """Change attributes of a record by hand."""
        self.stack.boto3("dynamodb").update_item(
            TableName=self.stack.outputs["LocksTable"],
            Key={"lockToken": {"S": lock_token}},
            UpdateExpression="SET " + ", ".join(f"#{n} = :{n}" for n in attributes),
            ExpressionAttributeNames={f"#{n}": n for n in attributes},
            ExpressionAttributeValues={
                f":{n}": {"N" if isinstance(v, int) else "S": str(v)} for n, v in attributes.items()
            },
        )

    def delete_lock(self, lock_token: str) -> None:
        self.stack.boto3("dynamodb").delete_item(
            TableName=self.stack.outputs["LocksTable"], Key={"lockToken": {"S": lock_token}}
        )

    def arn(self, execution_name: str) -> str:
        machine = self.client.state_machine_arn
        return f"{machine.replace(':stateMachine:', ':execution:')}:{execution_name}"

    def execution(self, execution_name: str) -> dict[str, Any]:
        return self.stack.boto3("stepfunctions").describe_execution(executionArn=self.arn(execution_name))

    def closed(self, execution_name: str) -> dict[str, Any]:
        """The execution, once it is closed."""
        return self.eventually(
            lambda: (found := self.execution(execution_name))["status"] != "RUNNING" and found
        )

    def stop(self, execution_name: str) -> None:
        self.stack.boto3("stepfunctions").stop_execution(
            executionArn=self.arn(execution_name), error="Stopped", cause="by a test"
        )
        self.closed(execution_name)

    def executions(self, prefix: str) -> list[str]:
        """Names of all executions that begin so."""
        pages = (
            self.stack.boto3("stepfunctions")
            .get_paginator("list_executions")
            .paginate(stateMachineArn=self.client.state_machine_arn)
        )
        names = [one["name"] for page in pages for one in page["executions"]]
        return sorted(name for name in names if name.startswith(prefix))

    def states(self, execution_name: str) -> list[str]:
        """The states that an execution entered, in order."""
        events = self._history(self.arn(execution_name))
        return [e["stateEnteredEventDetails"]["name"] for e in events if "stateEnteredEventDetails" in e]

    def events(self, execution_arn: str) -> list[str]:
        """The types of an execution's events, in order."""
        return [event["type"] for event in self._history(execution_arn)]

    def _history(self, execution_arn: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.stack.boto3("stepfunctions").get_execution_history(
            executionArn=execution_arn, maxResults=1000
        )["events"]
        return found

    def run(self, request_id: str, payload: Mapping[str, Any], **options: Any) -> Receipt:
        """Start and wait."""
        token = options.get("lock_token")
        self.client.start(request_id, payload, **options)
        return self.client.wait(request_id, timeout_seconds=PATIENCE_SECONDS, lock_token=token)

    def eventually(self, question: Callable[[], Any]) -> Any:
        """Ask again and again until the answer is true."""
        return eventually(question, pause=0.05)
