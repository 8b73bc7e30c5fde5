"""What a Task calls, read from its Resource."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

Integration = Literal["optimized", "sdk", "function", "activity", "other"]

_PATTERNS = (".waitForTaskToken", ".sync:2", ".sync")
_ARN = re.compile(r"arn:(?:\$\{[^}]*\}|[^:$])*:(?P<service>[^:]*):[^:]*:[^:]*:(?P<rest>.+)", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """
    Attributes:
        integration: An optimized integration, one by the AWS SDK, a function's own ARN, or an activity.
        service: Like dynamodb, or lambda.
        action: Like updateItem.
        pattern: How it waits: waitForTaskToken, sync, sync:2, or empty.
    """

    integration: Integration
    service: str
    action: str
    pattern: str

    @classmethod
    def of(cls, resource: Any) -> Call | None:
        """Read a Resource; None if it is no ARN."""
        found = _ARN.fullmatch(resource) if isinstance(resource, str) else None
        if found is None:
            return None
        service, rest = found["service"], found["rest"]
        if service == "lambda":
            return cls("function", "lambda", "invoke", "")
        if rest.startswith("activity:"):
            return cls("activity", "states", "activity", "")
        if service != "states":
            return cls("other", service, rest, "")
        pattern = next((one for one in _PATTERNS if rest.endswith(one)), "")
        parts = rest.removesuffix(pattern).split(":")
        integration: Integration = "sdk" if parts[0] == "aws-sdk" else "optimized"
        return cls(integration, ":".join(parts[:-1]).removeprefix("aws-sdk:"), parts[-1], pattern[1:])

    def __str__(self) -> str:
        name = f"{self.service}:{self.action}"
        return f"{'aws-sdk:' * (self.integration == 'sdk')}{name}{'.' * bool(self.pattern)}{self.pattern}"

    def does(self, *names: str) -> bool:
        """Whether it is one of these actions, such as `dynamodb:getItem`, in any integration."""
        return f"{self.service}:{self.action}" in names

    @property
    def waits_for_token(self) -> bool:
        return self.pattern == "waitForTaskToken"
