"""The installation with the part that waits: two functions, the event bus, the key and the answers' queue."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from random import Random
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.links import Keys
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.routes import routes
from steponce.errors import InvalidAnswer, StepAlreadyAnswered, Unavailable
from tests.fakes.errors import client_error
from tests.simulation.callbacks.verdicts import Verdicts
from tests.simulation.definition import Data
from tests.simulation.faults import Faults
from tests.simulation.installation import Installation
from tests.simulation.queue import Queue
from tests.simulation.turns import Died, Turns
from tests.simulation.wiring import SETTINGS, WIRING
from tests.unit.callback_links import POSTED
from tests.unit.triggers.world import Context

FUNCTION_SECONDS = 30
_WAITS = "lambda:invoke.waitForTaskToken"


class CallbackInstallation(Installation):
    """
    What is deployed, for one schedule. It also answers as the event bus, as Secrets Manager and as Lambda.

    Args:
        turns: The actors.
        random: The seed's choices.
        faults: What goes wrong.
        work: Does the work of DoWork.
        options: As `Installation` has them.

    Attributes:
        reported: Gets the detail of each event AwaitingStepRecorded.
        answers: The queue of answers.
        verdicts: Every verdict that was given.
        refused: Steps that were refused as answered already, while they waited.
    """

    lambda_fails, longest_start = 0.1, 30.0

    def __init__(
        self,
        turns: Turns,
        random: Random,
        faults: Faults,
        work: Callable[[dict[str, Any]], Data],
        **options: Any,
    ) -> None:
        super().__init__(turns, random, faults, work, **options)
        self.reported: Callable[[Mapping[str, Any]], None] = lambda _step: None
        self.answers = Queue(turns, random, faults, self._answer_from_queue)
        self.verdicts = Verdicts(turns, self.machine, self.dynamodb)
        self.refused: list[str] = []
        self._code["RecordAwaitingStepFunction"] = self._record
        self.machine.integrations = {**self.machine.integrations, _WAITS: self._invoke}
        self.services |= {"events": self, "secretsmanager": self, "lambda": self}
        self._ids = Random(random.random())

    @contextmanager
    def present(self) -> Iterator[None]:
        with (
            super().present(),
            mock.patch.object(self._resolver.callbacks, "resolve", self._resolve),
            mock.patch("uuid.uuid4", self._id),  # which is in the ids of steps
        ):
            yield

    def open(self, link: str) -> tuple[int, str]:
        """Look at the page behind a link."""
        return self._http("GET", link, None, "text/html")

    def post(self, link: str, body: str, kind: str) -> tuple[int, str]:
        """Answer by a link: the status and the text of the reply. Calls go wrong as those of AWS do."""
        arguments = {"method": "POST", "link": link, "body": body, "kind": kind}
        reply: tuple[int, str] = self.faults.call("post_answer", self._http, arguments, mortal=True)
        return reply

    def _id(self) -> uuid.UUID:
        return uuid.UUID(int=self._ids.getrandbits(128))

    @property
    def _resolver(self) -> Any:
        return self.functions["resolve_awaiting_step"]

    # -- The functions -----------------------------------------------------------------------------

    def _record(self, event: dict[str, Any]) -> Data:
        try:
            return self.functions["record_awaiting_step"].handler(event, Context())
        except StepAlreadyAnswered:
            if self._is_waited_for(event["taskToken"]):
                self.refused.append(f"{event['requestId']}/{event['step']}")
            raise

    def _is_waited_for(self, token: str) -> bool:
        """Whether the task with this token still waits. A call that fails after that has nobody to tell."""
        return any(one.token == token and one.over is None for one in self.machine.waits)

    def _resolve(self, step_id: str, answer: Answer) -> Verdict:
        """The real resolver. Each verdict is judged when it is given."""
        self.verdicts.ask(step_id, answer)
        try:
            verdict = Callbacks.resolve(self._resolver.callbacks, step_id, answer)
        except (Unavailable, InvalidAnswer):
            self.verdicts.give_none(step_id)
            raise
        except Exception as error:
            self.surprises.append(("resolve_awaiting_step", error))
            raise
        self.verdicts.give(step_id, answer, verdict)
        return verdict

    def _answer_from_queue(self, record: SQSRecord) -> None:
        if self._resolver.handler({"Records": [record.raw_event]}, Context())["batchItemFailures"]:
            raise Unavailable("It comes back.")

    def _http(self, method: str, link: str, body: str | None, kind: str) -> tuple[int, str]:
        """One request to the API, which invokes the function and waits for it."""
        path, _, query = link.removeprefix("https://callbacks").partition("?")
        event = deepcopy(POSTED)
        event["routeKey"] = f"{method} /callbacks/{{awaitingStepId}}"
        event["requestContext"]["http"] |= {"method": method, "path": path}
        event |= {"rawPath": path, "rawQueryString": query, "body": body}
        event |= {"queryStringParameters": dict(parse_qsl(query))}
        event["headers"]["content-type"] = kind
        returned, error = self._run(lambda: self._app(event).resolve(event, None))
        return (500, str(error)) if error else (returned["statusCode"], returned["body"])

    def _app(self, event: dict[str, Any]) -> Any:
        """The function's routes. A process serves one request at a time, so each has routes of its own."""
        keys = Keys(WIRING.client("secretsmanager"), SETTINGS["CallbackKey"])
        app = routes(self._resolver.steps, self._resolver.resolve, keys)
        app.current_event = APIGatewayProxyEventV2(event)  # else all have the newest, on their class
        return app

    def _run(self, function: Callable[[], Any]) -> tuple[Any, Exception | None]:
        """Run the resolving function for somebody who waits: what it returns, or what it raises."""
        actor = self.turns.actor
        before, actor.deadline = actor.deadline, self.turns.deadline_in(FUNCTION_SECONDS)
        try:
            return function(), None
        except Died:
            self.turns.go_on_if_alive()
            return None, TimeoutError()
        except (Unavailable, InvalidAnswer) as error:
            return None, error
        except Exception as error:
            self.surprises.append(("resolve_awaiting_step", error))
            return None, error
        finally:
            actor.deadline = before

    # -- AWS ---------------------------------------------------------------------------------------

    def put_events(self, *, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        """EventBridge, which may throttle an entry."""
        if self.faults.happens(0.03):
            return {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException"}]}
        for entry in Entries:
            self.reported(json.loads(entry["Detail"]))
        return {"FailedEntryCount": 0}

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> dict[str, Any]:
        """Secrets Manager, with a key that was never rotated."""
        if VersionStage == "AWSPREVIOUS":
            raise client_error("ResourceNotFoundException", SecretId)
        return {"SecretString": SecretId}

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        """Lambda, for the commands."""
        assert FunctionName == "ResolveAwaitingStepFunction"
        returned, error = self._run(lambda: self._resolver.handler(json.loads(Payload), Context()))
        if error:
            returned = {"errorType": type(error).__name__, "errorMessage": str(error)}
        failed = {"FunctionError": "Unhandled"} if error else {}
        return {"Payload": io.BytesIO(json.dumps(returned).encode())} | failed
