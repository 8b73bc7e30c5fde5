"""The callback links' routes without a stack: one waiting step, a table in memory, a key, and events."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.links import Keys, sign
from steponce.callbacks.resolver import Callbacks
from steponce.callbacks.routes import routes
from steponce.callbacks.step import AwaitingStep
from tests.fakes.awaiting_steps_table import QuickTable
from tests.fakes.waiting_step import WaitingStep

ROOT = Path(__file__).parents[2]
POSTED = json.loads((ROOT / "events" / "answer_from_link.json").read_text())
FAR = "2999-01-01T00:00:00.000Z"


class Secrets:
    """Secrets Manager with one key; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> dict[str, str]:
        self.asked += 1
        return {"SecretString": f"{SecretId} {VersionStage}"}


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: str


class CallbackLinks:
    """The routes, and a step that waits."""

    def __init__(self) -> None:
        self.wait = WaitingStep()
        self.table = QuickTable()
        self.steps = AwaitingSteps(self.table, "steps")
        self.step = AwaitingStep.from_event(self.wait.handed[-1])
        self.steps.record(self.step)
        self.wait.submit()
        self.secrets = Secrets()
        self.keys = Keys(self.secrets, "key")
        self.verdicts: list[Verdict] = []
        self.app = routes(self.steps, self._resolve, self.keys)

    def link(self, *outcomes: str, step_id: str | None = None) -> str:
        """A link of ours."""
        return sign(self.keys, step_id or self.step.id, FAR, outcomes or ("success", "failure", "heartbeat"))

    def send(
        self,
        link: str,
        body: Any = None,
        *,
        method: str = "POST",
        kind: str = "application/json",
        **more: Any,
    ) -> Reply:
        """Send a link's event; a body that is no text is written as JSON; `more` are fields of the event."""
        path, _, query = link.partition("?")
        event = copy.deepcopy(POSTED)
        event["routeKey"] = f"{method} /callbacks/{{awaitingStepId}}"
        event["requestContext"]["http"] |= {"method": method, "path": path}
        event["rawPath"], event["rawQueryString"] = path, query
        event["queryStringParameters"] = dict(parse_qsl(query, keep_blank_values=True))
        event["headers"]["content-type"] = kind
        event["body"] = body if isinstance(body, str) or body is None else json.dumps(body)
        raw = self.app.resolve(event | more, None)
        return Reply(raw["statusCode"], raw["headers"], raw["body"])

    def _resolve(self, step_id: str, answer: Answer) -> Verdict:
        verdict = Callbacks(self.steps, self.wait.sfn).resolve(step_id, answer)
        self.verdicts.append(verdict)
        return verdict
