"""
The engine's controls for tests, over HTTP: faults, the stack's time, and rest.

    POST   /faults       plan a fault (the fields of `Fault`) -> {"id"}
    DELETE /faults/ID    withdraw it -> {"reached"}
    GET    /time         -> {"aheadSeconds"}
    POST   /time         {"seconds"}: let this much time pass -> {"aheadSeconds"}
    DELETE /messages     empty all queues
    POST   /quiet        {"patienceSeconds"}: wait until nothing runs, then kill what still runs -> {"begun"}
"""

from __future__ import annotations

import json
from typing import Any

from werkzeug.wrappers import Request, Response

from steponce.local import activity, stack_time
from steponce.local.moto_patches import faults, queues
from steponce.local.runtime.functions import LambdaApi

# What was killed is over as soon as its process is reaped.
_AFTER_FORCE_SECONDS = 10.0


class ControlsApi:
    """
    Answers the requests of `steponce.local.controls`.

    Args:
        functions: The embedded functions, if they are.
    """

    def __init__(self, functions: LambdaApi | None) -> None:
        self._functions = functions

    def answer(self, request: Request) -> Response:
        """Answer one HTTP request."""
        fields = json.loads(request.get_data() or b"{}")
        match request.method, request.path.strip("/").split("/"):
            case "POST", ["faults"]:
                fault = faults.Fault(**fields)
                faults.plan(fault)
                said: dict[str, Any] = {"id": fault.id}
            case "DELETE", ["faults", fault_id]:
                said = {"reached": faults.drop(fault_id)}
            case "GET", ["time"]:
                said = {"aheadSeconds": stack_time.ahead_seconds()}
            case "POST", ["time"]:
                stack_time.move(float(fields["seconds"]))
                said = {"aheadSeconds": stack_time.ahead_seconds()}
            case "DELETE", ["messages"]:
                queues.empty()
                said = {}
            case "POST", ["quiet"]:
                said = {"begun": self._quiet(float(fields["patienceSeconds"]))}
            case _:
                return Response(status=404)
        return Response(json.dumps(said), content_type="application/json")

    def _quiet(self, patience_seconds: float) -> int:
        if not activity.is_quiet_within(patience_seconds):
            if self._functions:
                self._functions.kill_busy()
            activity.is_quiet_within(_AFTER_FORCE_SECONDS)
        return activity.begun()
