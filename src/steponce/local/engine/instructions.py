"""What the owner of a stack tells the engine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from steponce.local.template.plan import ApiPlan, Deliveries, FunctionPlan, RoutePlan

ENGINE_LOG = "engine.log"
PROBLEM = "problem"
"""The key of the engine's last message, if it fails. Its log may be gone when that is read."""


def api_service(number: int) -> str:
    """Under which name the engine tells the address of an HTTP API: of the first one under `http`."""
    return "http" if number == 0 else f"http-{number + 1}"


@dataclass(frozen=True)
class Instructions:
    """What the owner knows only when it knows the addresses."""

    functions: list[FunctionPlan]
    apis: list[ApiPlan]
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
        apis = [
            ApiPlan(plan["name"], [RoutePlan(**route) for route in plan["routes"]])
            for plan in fields.pop("apis")
        ]
        deliveries = Deliveries.from_fields(fields.pop("deliveries"))
        return cls(functions=functions, apis=apis, deliveries=deliveries, **fields)
