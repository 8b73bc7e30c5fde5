"""What goes wrong: as for all requests, and mostly at the calls about steps that wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simulation.faults import Faults, is_read
from tests.simulation.wiring import STEPS

_OPERATIONS = {"get_execution_history", "invoke", "post_answer", "put_events"}


class CallbackFaults(Faults):
    """The faults of one schedule."""

    most = (0, 1, 2, 4, 8, 16)

    def chance(self, operation: str, arguments: Mapping[str, Any]) -> float:
        """A call about callbacks goes wrong ten times as often as another."""
        is_about_callbacks = (
            arguments.get("TableName") == STEPS
            or operation in _OPERATIONS
            or operation.startswith("send_task_")
        )
        return (0.2 if is_about_callbacks else 0.02) * (0.5 if is_read(operation) else 1)
