"""
How an event reaches the targets of a rule: functions, queues and state machines. Others get nothing here.

A function is invoked asynchronously. An event that it has failed each time is given up with a line in the
engine's log, and a record of it goes to the function's destination.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from steponce.aws import times
from steponce.local import activity
from steponce.local.delivery.destinations import Destinations
from steponce.local.delivery.event_bus import Event
from steponce.local.runtime.asynchronous import Problem, try_until_done
from steponce.local.template.plan import RulePlan, TargetPlan

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageRequestTypeDef
    from mypy_boto3_stepfunctions import SFNClient

_log = logging.getLogger(__name__)

_MOST_AT_ONCE = 16

# A text in a template, if need be to the template's end; or a placeholder outside of all texts.
_TEXT_OR_PLACEHOLDER = re.compile(r'"(?:[^"\\]|\\.)*"?|<[^<>]+>')
_PLACEHOLDER = re.compile(r"<([^<>]+)>")


class Targets:
    """Sends events to functions, queues and state machines, on threads of its own."""

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: Callable[[str], str],
        lambda_client: LambdaClient,
        states: SFNClient,
        destinations: Destinations,
    ) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._lambda = lambda_client
        self._states = states
        self._destinations = destinations
        self._pool = ThreadPoolExecutor(_MOST_AT_ONCE)

    def deliver(self, rule: RulePlan, event: Event) -> None:
        """Send an event to every target of a rule, later."""
        for target in rule.targets:
            activity.begin()
            self._pool.submit(self._send, rule, target, event)

    def _send(self, rule: RulePlan, target: TargetPlan, event: Event) -> None:
        service = target.arn.split(":")[2]
        try:
            text = target_input(rule, target, event)
            if service == "sqs":
                self._to_queue(target, text)
            elif service == "lambda":
                self._to_function(rule, target, event, text)
            elif service == "states":
                self._to_machine(target, event, text)
        except Exception as error:  # whatever it is, nobody waits for this thread and would tell
            _log.error("Rule %s could not send event %s: %s", rule.name, event["id"], error)
        finally:
            activity.end()

    def _to_queue(self, target: TargetPlan, text: str) -> None:
        url = self._queue_url(target.arn.rpartition(":")[2])
        message: SendMessageRequestTypeDef = {"QueueUrl": url, "MessageBody": text}
        if target.group_id:
            message["MessageGroupId"] = target.group_id
        self._sqs.send_message(**message)

    def _to_machine(self, target: TargetPlan, event: Event, text: str) -> None:
        """Each delivery is an execution of its own: EventBridge's names are not the event's."""
        name = f"{event['id']}_{uuid.uuid4()}"
        self._states.start_execution(stateMachineArn=target.arn, name=name, input=text)

    def _to_function(self, rule: RulePlan, target: TargetPlan, event: Event, text: str) -> None:
        problem = try_until_done(lambda: self._invoke(target.arn, text))
        if problem is None:
            return
        error = problem.get("errorType", "it failed")
        _log.error("Rule %s gave up event %s for %s: %s", rule.name, event["id"], target.arn, error)
        self._destinations.give_up(target.arn, json.loads(text), problem)

    def _invoke(self, arn: str, text: str) -> Problem | None:
        """Invoke a function; the answer is what went wrong."""
        try:
            answer = self._lambda.invoke(FunctionName=arn, Payload=text)
        except (ClientError, BotoCoreError) as error:
            return {"errorType": str(error)}
        return dict(json.loads(answer["Payload"].read())) if "FunctionError" in answer else None


def target_input(rule: RulePlan, target: TargetPlan, event: Event) -> str:
    """What the target gets: the event, a constant, or what its template makes of the event."""
    if target.constant is not None:
        return target.constant
    if target.template is None:
        return json.dumps(event)
    return transformed(target.template, _found(target.paths, event) | _predefined(rule, event))


def transformed(template: str, values: Mapping[str, Any]) -> str:
    """
    The template with its placeholders replaced: inside of a text by text, elsewhere by JSON.

    An object or a list inside of a text loses its quotes. moto's own replaces text by bare words, and
    breaks the JSON.

    Raises:
        ValueError: an object or a list inside of a text of a JSON template. AWS sends nothing then, since
            it keeps the quotes there.

    Source: EventBridge User Guide, "Input transformation".
    """
    is_json = template.lstrip()[:1] in ("{", "[")

    def inside(match: re.Match[str]) -> str:
        value = values[match.group(1)]
        if is_json and isinstance(value, dict | list):
            raise ValueError(f"the InputTemplate has {match.group()} in quotes, and its value is JSON")
        return json.dumps(_bare(value))[1:-1]

    def replaced(match: re.Match[str]) -> str:
        if match.group().startswith('"'):
            return _PLACEHOLDER.sub(inside, match.group())
        return json.dumps(values[match.group()[1:-1]])

    return _TEXT_OR_PLACEHOLDER.sub(replaced, template)


def _bare(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace('"', "")


def _found(paths: Mapping[str, str], event: Event) -> dict[str, Any]:
    """What each path finds first; what finds nothing is an empty text."""
    from jsonpath_ng.ext.parser import parse

    found = {name: parse(path).find(event) for name, path in paths.items()}
    return {name: matches[0].value if matches else "" for name, matches in found.items()}


def _predefined(rule: RulePlan, event: Event) -> dict[str, Any]:
    """
    The variables that a template may use without a path.

    `aws.events.event` has no detail, and AWS spells its `detail-type` as `detailType`.

    Source: EventBridge User Guide, "Input transformation", Predefined variables.
    """
    head = {"detailType" if key == "detail-type" else key: event[key] for key in event if key != "detail"}
    return {
        "aws.events.rule-arn": rule.arn,
        "aws.events.rule-name": rule.name,
        "aws.events.event.ingestion-time": times.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "aws.events.event": head,
        "aws.events.event.json": event,
    }
