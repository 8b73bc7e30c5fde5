"""A step that waits on a running stack, and every way to answer it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from steponce import Client
from steponce.aws import times
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.links import Keys, sign
from steponce.callbacks.step import AwaitingStep
from tests.workflow.scene import VISA, Scene

CONFIRMED = VISA | {"confirm": True}
YES = {"outcome": "success", "output": {"confirmed": True}}
NO = {"outcome": "failure", "error": "Refused", "cause": "by the provider"}
BEAT = {"outcome": "heartbeat"}


@dataclass
class Waiting:
    """One request that waits for its confirmation."""

    scene: Scene
    name: str
    step: AwaitingStep

    @classmethod
    def begin(
        cls,
        scene: Scene,
        name: str | None = None,
        lock_token: str | None = None,
        client: Client | None = None,
    ) -> Waiting:
        """Start a request, and wait until its step is on record and its state waits."""
        name = name or scene.new_id("waits")
        (client or scene.client).start(name, CONFIRMED, lock_token=lock_token)
        step = scene.eventually(lambda: waiting_step(scene, name))
        scene.eventually(lambda: "TaskSubmitted" in scene.events(step.execution))
        return cls(scene, name, step)

    def record(self) -> AwaitingStep:
        found = steps(self.scene).get(self.step.id)
        assert found is not None
        return found

    def expire(self, in_seconds: float) -> None:
        """Let the step's time be over so soon, or be over already."""
        self.scene.stack.boto3("dynamodb").update_item(
            TableName=self.scene.stack.outputs["AwaitingStepsTable"],
            Key={"awaitingStepId": {"S": self.step.id}},
            UpdateExpression="SET expiresAt = :at",
            ExpressionAttributeValues={":at": {"S": times.to_text(times.after(times.now(), in_seconds))}},
        )

    def link(self, outcomes: tuple[str, ...] = ("success", "failure", "heartbeat"), **changed: str) -> str:
        """A genuine link, or one for another time or step."""
        keys = Keys(self.scene.stack.boto3("secretsmanager"), self.scene.stack.outputs["CallbackKey"])
        expires = changed.get("expires_at", times.to_text(times.after(times.now(), 60)))
        path = sign(keys, changed.get("step_id", self.step.id), expires, outcomes)
        return self.scene.stack.outputs["CallbacksUrl"] + path

    def post(self, answer: object, link: str | None = None) -> tuple[int, dict[str, Any]]:
        """Answer over HTTP, as a program does."""
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        status, text = http("POST", link or self.link(), body, "application/json")
        return status, json.loads(text)

    def submit(self, outcome: str, link: str | None = None) -> tuple[int, str]:
        """Answer over HTTP, as a button does."""
        body = urlencode({"outcome": outcome}).encode()
        return http("POST", link or self.link(), body, "application/x-www-form-urlencoded")

    def answer(self, answer: dict[str, Any]) -> str:
        """Answer by invoking the function; the verdict, once it can be known."""

        def told() -> object:
            said = invoke(self.scene, {"awaitingStepId": self.step.id, "answer": answer})
            return None if said.get("errorType") == "Unavailable" else said["verdict"]

        return str(self.scene.eventually(told))

    def answer_raw(self, answer: dict[str, Any]) -> None:
        """Answer with the task token itself, as an IAM caller may."""
        sfn = self.scene.stack.boto3("stepfunctions")
        token = self.record().task_token
        if answer["outcome"] == "success":
            sfn.send_task_success(taskToken=token, output=json.dumps(answer["output"]))
        else:
            sfn.send_task_failure(taskToken=token, error=answer["error"], cause=answer["cause"])


def steps(scene: Scene) -> AwaitingSteps:
    return AwaitingSteps(scene.stack.boto3("dynamodb"), scene.stack.outputs["AwaitingStepsTable"])


def waiting_step(scene: Scene, name: str) -> AwaitingStep | None:
    """The open step of one execution; by one scan, for the open index has ten shards to ask."""
    found = scene.stack.boto3("dynamodb").scan(
        TableName=scene.stack.outputs["AwaitingStepsTable"],
        ConsistentRead=True,
        FilterExpression="requestId = :id AND attribute_exists(openStatus)",
        ExpressionAttributeValues={":id": {"S": name}},
    )["Items"]
    return AwaitingStep.from_item(found[0]) if found else None


def invoke(scene: Scene, event: dict[str, Any]) -> dict[str, Any]:
    """Invoke the resolving function."""
    answer = scene.stack.boto3("lambda").invoke(
        FunctionName=scene.stack.outputs["ResolveAwaitingStepFunction"], Payload=json.dumps(event)
    )
    return dict(json.loads(answer["Payload"].read()))


def http(method: str, url: str, body: bytes | None = None, kind: str | None = None) -> tuple[int, str]:
    """One request; status and text."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=100)
    headers = {"Content-Type": kind} if kind else {}
    connection.request(method, f"{parts.path}?{parts.query}", body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text
