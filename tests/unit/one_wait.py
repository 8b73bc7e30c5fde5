"""One waiting step, as Step Functions runs it; a table; and what can go wrong at the boundary of a call."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from types import CodeType
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from steponce.aws import times
from steponce.callbacks.answer import Answer
from tests.rules.documents import template

BEGINNING = datetime(2026, 1, 31, 12, tzinfo=UTC)
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:run-once:order-1"
_RUNS = count()
CRASH = '{"errorMessage": "the bus is full", "errorType": "RuntimeError"}'


class Wait:
    """
    An execution with one state that waits for a token, beside a sibling branch that waits for another.

    Args:
        retries: How often the state is retried after a time-out or when its function raises.
    """

    def __init__(self, retries: int = 1) -> None:
        self._call_id = f"call-{next(_RUNS)}"
        self.events: list[dict[str, Any]] = []
        self.answers: list[tuple[int, Answer]] = []
        self.handed: list[dict[str, Any]] = []
        self._entry_of: dict[str, int] = {}
        self.tokens: list[str] = []
        self.token: str | None = None
        self.retries_left = retries
        self.entries = self.tries = 0
        self.is_inside = self.is_open = self.is_known = True
        self.is_submitted = False
        self.shown: int | None = None
        self.throttled = False
        self.refuses: Answer | None = None
        self._last = self._add("ExecutionStarted", 0)
        self._sibling = self._add("TaskStateEntered", self._last)
        self._sibling = self._scheduled("token-of-the-sibling", self._sibling)
        self.enter()
        details = {"output": '"for the sibling"'}
        self._sibling = self._add("TaskSucceeded", self._sibling, taskSucceededEventDetails=details)

    # -- What the workflow does ------------------------------------------------------------------

    def enter(self) -> None:
        """The workflow enters the state, for the first time or again."""
        self.entries, self.tries, self.is_inside = self.entries + 1, 0, True
        self._last = self._add("TaskStateEntered", self._last)
        self.retry()

    def retry(self) -> None:
        """The next try of the state begins, with a token of its own."""
        self.token = f"token-{len(self.tokens):04}"
        self.tokens.append(self.token)
        self._entry_of[self.token] = self.entries
        self.handed.append(self._handed_over(self.token))
        self.tries, self.is_submitted = self.tries + 1, False
        self._last = self._scheduled(self.token, self._last)

    def submit(self) -> None:
        """The recording function returns."""
        if self.token is not None and not self.is_submitted:
            self._last = self._add("TaskSubmitted", self._last, taskSubmittedEventDetails={})
            self.is_submitted = True

    def crash(self) -> None:
        """The recording function raises."""
        if self.token is None or self.is_submitted:
            return
        self._end("TaskFailed", taskFailedEventDetails={"error": "RuntimeError", "cause": CRASH})
        self._retry_or_leave()

    def time_out(self) -> None:
        """Nobody has answered, or the heartbeat has stopped."""
        if self.token is None:
            return
        self._end("TaskTimedOut", taskTimedOutEventDetails={"error": "States.Timeout"})
        self._retry_or_leave()

    def abort(self) -> None:
        """The sibling branch fails, which a Catch of the whole Parallel handles."""
        failed = self._add("TaskFailed", self._sibling, taskFailedEventDetails={"error": "Boom"})
        self.token, self.is_inside = None, False
        self._add("TaskStateAborted", self._last)
        self._last = self._add("ParallelStateExited", failed)

    def fail_to_start(self, kind: str) -> None:
        """The function could not even be called."""
        self._end(kind)
        self.retries_left -= 1

    def lag(self, events: int = 0) -> None:
        """From now on the history shows nothing new, and not even the newest events."""
        self.shown = len(self.events) - events

    def stop(self) -> None:
        """Somebody stops the execution."""
        if self.is_open:
            self._add("ExecutionAborted", 0)
        self.token, self.is_inside, self.is_open = None, False, False

    def vanish(self) -> None:
        """Step Functions forgets the execution."""
        self.token, self.is_inside, self.is_open, self.is_known = None, False, False, False

    def finish(self) -> None:
        """The execution runs to its end."""
        self._add("ExecutionSucceeded", self._last)
        self.is_open = False

    @property
    def got(self) -> list[Answer]:
        """All answers that the workflow got."""
        return [answer for _, answer in self.answers]

    def got_with(self, token: str) -> list[Answer]:
        """The answers that it got while it was in the state, which this token let it wait in."""
        return [answer for entry, answer in self.answers if entry == self._entry_of[token]]

    @property
    def is_between_tries(self) -> bool:
        """Whether a retry is to come."""
        return self.is_inside and self.token is None

    def take(self, token: str, answer: Answer) -> None:
        """An answer or heartbeat arrives with a token, from whomever."""
        if self.throttled:
            raise refusal("ThrottlingException", token)
        if not self.is_known:
            raise refusal("TaskDoesNotExist", token)
        if token not in self.tokens:
            raise refusal("InvalidToken", token)
        if token != self.token:
            raise refusal("TaskTimedOut", token)
        if answer == self.refuses:
            raise refusal("ValidationException", token)
        if answer.outcome == "heartbeat":
            return
        self.answers.append((self.entries, answer))
        if answer.outcome == "success":
            self._end("TaskSucceeded", taskSucceededEventDetails={"output": json.dumps(answer.output)})
        else:
            details = {"error": answer.error, "cause": answer.cause}
            present = {name: text for name, text in details.items() if text is not None}
            self._end("TaskFailed", taskFailedEventDetails=present)
        self._leave()

    def _handed_over(self, token: str) -> dict[str, Any]:
        """What the state hands to the recording function."""
        return {
            "step": "confirmation",
            "taskToken": token,
            "enteredAt": times.to_text(BEGINNING + timedelta(hours=self.entries)),
            "retryCount": self.tries,
            "timeoutSeconds": 3600,
            "execution": EXECUTION,
            "requestId": "order-1",
            "lockToken": "run-once/order-1",
            "callId": self._call_id,
            "attempt": 1,
        }

    def _end(self, kind: str, **details: Any) -> None:
        self._last, self.token = self._add(kind, self._last, **details), None

    def _retry_or_leave(self) -> None:
        self.retries_left -= 1
        if self.retries_left < 0:
            self._leave()

    def _leave(self) -> None:
        self._last, self.is_inside = self._add("TaskStateExited", self._last), False

    def _scheduled(self, token: str, previous: int) -> int:
        parameters = json.dumps({"FunctionName": "record", "Payload": {"taskToken": token}})
        scheduled = self._add("TaskScheduled", previous, taskScheduledEventDetails={"parameters": parameters})
        return self._add("TaskStarted", scheduled, taskStartedEventDetails={})

    def _add(self, kind: str, previous: int, **details: Any) -> int:
        self.events.append(
            {"id": len(self.events) + 1, "previousEventId": previous, "type": kind} | dict(details)
        )
        return len(self.events)

    # -- The API ---------------------------------------------------------------------------------

    def send_task_success(self, taskToken: str, output: str) -> None:  # noqa: N803 - the API's name
        self.take(taskToken, Answer("success", json.loads(output)))

    def send_task_failure(
        self,
        taskToken: str,  # noqa: N803 - the API's name
        error: str | None = None,
        cause: str | None = None,
    ) -> None:
        self.take(taskToken, Answer("failure", error=error, cause=cause))

    def send_task_heartbeat(self, taskToken: str) -> None:  # noqa: N803 - the API's name
        self.take(taskToken, Answer("heartbeat"))

    def get_paginator(self, name: str) -> Wait:
        assert "get_execution_history" == name
        return self

    def paginate(self, executionArn: str) -> Iterator[dict[str, Any]]:  # noqa: N803 - the API's name
        """Three events a page, as many as can be seen already."""
        assert executionArn == EXECUTION
        if not self.is_known:
            raise refusal("ExecutionDoesNotExist", executionArn)
        shown = self.events[: self.shown]
        for first in range(0, len(shown), 3):
            yield {"events": shown[first : first + 3]}


def refusal(code: str, about: str = "") -> ClientError:
    """What boto3 raises when AWS says no. AWS's messages may quote what they are about."""
    return ClientError({"Error": {"Code": code, "Message": f"Invalid: '{about}'"}}, "SendTaskSuccess")


class Died(Exception):
    """The resolver's process is gone."""


class Boundary:
    """A client whose every call passes a gate, before and after; `repeat` makes boto3's own retry."""

    def __init__(self, client: Any, gate: Callable[[str], str | None]) -> None:
        self._client = client
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(**arguments: Any) -> Any:
            wanted = self._gate(name)
            if wanted == "die before":
                raise Died
            if wanted == "repeat":
                method(**arguments)
            answer = method(**arguments)
            if wanted == "die after":
                raise Died
            if wanted == "lose answer":
                raise ReadTimeoutError(endpoint_url="https://aws")
            return answer

        return call if name != "get_paginator" else method


def create_table(dynamodb: Any) -> None:
    """The table of waiting steps, as the template has it."""
    properties = template()["Resources"]["AwaitingStepsTable"]["Properties"]
    wanted = ("BillingMode", "KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes")
    dynamodb.create_table(TableName="steps", **{name: properties[name] for name in wanted})


class QuickTable:
    """DynamoDB for one record, some hundred times faster than moto; a test holds it against moto."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}

    def get_item(self, TableName: str, Key: Any, ConsistentRead: bool) -> dict[str, Any]:  # noqa: N803
        """A consistent read."""
        assert ConsistentRead, TableName
        item = self.items.get(Key["awaitingStepId"]["S"])
        return {} if item is None else {"Item": dict(item)}

    def update_item(self, **call: Any) -> dict[str, Any]:
        """A conditional update."""
        key, names = call["Key"], call["ExpressionAttributeNames"]
        values = call["ExpressionAttributeValues"]
        item = self.items.get(key["awaitingStepId"]["S"], {})
        plain = {name: next(iter(value.values())) for name, value in (item | values).items()}
        if not eval(_condition(call["ConditionExpression"]), {}, {"has": plain}):  # noqa: S307 - our own text
            raise refusal("ConditionalCheckFailedException")
        sets, _, removed = call["UpdateExpression"].removeprefix("SET ").partition(" REMOVE ")
        new = key | item
        for part in sets.split(", "):
            name, value = part.split(" = ")
            new[names.get(name, name)] = values[value]
        for name in filter(None, removed.split(", ")):
            new.pop(names.get(name, name), None)
        self.items[key["awaitingStepId"]["S"]] = new
        return {"Attributes": dict(new)}


@cache
def _condition(expression: str) -> CodeType:
    """A condition as Python: what is missing compares as unequal, since each starts with the status."""
    text = re.sub(r"attribute_not_exists\((\w+)\)", r"('\1' not in has)", expression)
    text = text.replace("#status", "status").replace(" IN ", " in ").replace(" = ", " == ")
    text = text.replace(" AND ", " and ").replace(" OR ", " or ")
    text = re.sub(r"(?<!['\w:])(:?(?!and\b|or\b|in\b|not\b|has\b)[a-zA-Z]\w*)", r"has.get('\1')", text)
    return compile(text, expression, "eval")


class Schedule:
    """Who makes the next call: the one that is at it, but for some switches."""

    def __init__(self, switches: dict[int, int]) -> None:
        self._switches = switches
        self.choices: list[int] = []

    def choose(self, ready: list[int], current: int | None) -> int:
        """The next to go; records how many others there were."""
        ordered = sorted(ready, key=lambda one: (one != current, one))
        position = len(self.choices)
        self.choices.append(len(ordered))
        return ordered[self._switches.get(position, 0) % len(ordered)]


def schedules(run: Callable[[Schedule], None], switches: int) -> int:
    """Run with every schedule that leaves whoever is at it at most so often; how many there were."""
    waiting, count = [dict[int, int]()], 0
    while waiting:
        chosen = waiting.pop()
        schedule = Schedule(chosen)
        run(schedule)
        count += 1
        if len(chosen) < switches:
            first = max(chosen, default=-1) + 1
            waiting += [
                chosen | {position: other}
                for position, options in enumerate(schedule.choices[first:], first)
                for other in range(1, options)
            ]
    return count


def together(schedule: Schedule, *actors: Callable[[Callable[[str], None]], None]) -> None:
    """Run actors as threads of which one at a time moves, from one call's boundary to the next."""
    turns = [threading.Semaphore(0) for _ in actors]
    paused = threading.Semaphore(0)
    done = [False] * len(actors)
    failures: list[BaseException] = []

    def live(number: int) -> None:
        def gate(_name: str) -> None:
            paused.release()
            turns[number].acquire()

        turns[number].acquire()
        try:
            actors[number](gate)
        except BaseException as error:
            failures.append(error)
        done[number] = True
        paused.release()

    threads = [threading.Thread(target=live, args=(number,)) for number in range(len(actors))]
    for thread in threads:
        thread.start()
    current: int | None = None
    while ready := [number for number, is_done in enumerate(done) if not is_done]:
        current = schedule.choose(ready, current)
        turns[current].release()
        paused.acquire()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
