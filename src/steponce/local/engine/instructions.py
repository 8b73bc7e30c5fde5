"""What the owner of a stack tells the engine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from steponce.local.template.plan import Deliveries, FunctionPlan, RoutePlan

ENGINE_LOG = "engine.log"
PROBLEM = "problem"
"""The key of the engine's last message, if it fails. Its log may be gone when that is read."""
CLOCK = "clock"
"""The file of the stack's time, among the logs."""


@dataclass(frozen=True)
class Instructions:
    """What the owner knows only when it knows the addresses."""

    functions: list[FunctionPlan]
    routes: list[RoutePlan]
    deliveries: Deliveries
    region: str
    worker_endpoints: dict[str, str]
    interpreter_endpoints: dict[str, str]

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Instructions:
        """The reverse of `to_json`."""
        fields: dict[str, Any] = json.loads(line)
        functions = [FunctionPlan(**plan) for plan in fields.pop("functions")]
        routes = [RoutePlan(**plan) for plan in fields.pop("routes")]
        deliveries = Deliveries.from_fields(fields.pop("deliveries"))
        return cls(functions=functions, routes=routes, deliveries=deliveries, **fields)
