"""
Runs what the embedded engine leaves out.

Activities, HTTP calls, and jobs of Athena, ECS and Glue get the answers of a script, and a library evaluates
JSONata. moto's own code does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from jsonata import Jsonata

from tests.counting.answers import Answer, Fails

Request = tuple[str, str, Mapping[str, Any]]
"""Service, operation and body of a call."""

SERVICES = ("athena", "ecs", "glue", "transcribe")
"""Services that the local stack does not have."""


def install(ask: Callable[[], Answer], call: Callable[[Request], Any]) -> None:
    """
    Change moto for the whole process. Call this once, after the patches of the local stack.

    Args:
        ask: Gives the script's answer for the task of this thread.
        call: Sends a request of the task of this thread. Returns its output, or raises its error.
    """
    from steponce.local.moto_patches import integrations, services
    from steponce.local.moto_patches.patching import replace_everywhere

    services._ENDPOINT_OF.update(dict.fromkeys(SERVICES, "aws"))
    replace_everywhere(integrations.eval_jsonata_expression, eval_jsonata_expression)
    _work_on_activities(ask)
    _wait_for_jobs()
    _call_http(call)


def eval_jsonata_expression(expression: str) -> Any:
    """The value of an expression in plain JSON."""
    return json.loads(json.dumps(Jsonata(expression).evaluate(None)))


def _work_on_activities(ask: Callable[[], Answer]) -> None:
    """Answer each task of an activity at once, as its worker would."""
    from moto.stepfunctions.parser.asl.eval.callback import callback

    class Worked(callback.ActivityCallbackEndpoint):
        def setup_heartbeat_endpoint(self, heartbeat_seconds: int) -> Any:
            endpoint = super().setup_heartbeat_endpoint(heartbeat_seconds)
            endpoint.notify()  # the answer is there already
            return endpoint

    def add_activity_task(pool: Any, callback_id: str, activity_input: str, **_: Any) -> Any:
        endpoint = pool._pool[callback_id] = Worked(callback_id, activity_input)
        endpoint.notify_activity_task_start(None)
        answer = ask()
        if isinstance(answer, Fails):
            endpoint.notify(callback.CallbackOutcomeFailure(callback_id, answer.error, answer.cause))
        else:
            endpoint.notify(callback.CallbackOutcomeSuccess(callback_id, json.dumps(answer.output)))
        return endpoint

    callback.CallbackPoolManager.add_activity_task = add_activity_task


def _wait_for_jobs() -> None:
    """Let moto run `.sync` for Athena and Glue."""
    from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
        state_task_service_glue as glue,
    )
    from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
        state_task_service_unsupported as unsupported,
    )
    from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.resource import (
        ResourceCondition,
    )

    from steponce.local.moto_patches.services import boto_client_for

    def resolver(_task: Any, env: Any, resource_runtime_part: Any, **_: Any) -> Callable[[], Any]:
        client = boto_client_for(resource_runtime_part.region, "athena")
        query = env.stack.pop()["QueryExecutionId"]
        return lambda: client.get_query_execution(QueryExecutionId=query)

    # At the end of any job moto removes a task token, which it does not make for jobs of Glue.
    glue._SUPPORTED_INTEGRATION_PATTERNS.add(ResourceCondition.WaitForTaskToken)
    unsupported._SUPPORTED_INTEGRATION_PATTERNS.add(ResourceCondition.Sync)
    unsupported.StateTaskServiceUnsupported._build_sync_resolver = resolver


def _call_http(call: Callable[[Request], Any]) -> None:
    """Send an HTTP Task's request to the script. moto would look for an operation of an SDK."""
    from moto.stepfunctions.parser.asl.component.state.exec.state_task.service import (
        state_task_service_unsupported as unsupported,
    )

    kind = unsupported.StateTaskServiceUnsupported
    service_task, normalise_parameters = kind._eval_service_task, kind._normalise_parameters
    normalise_response = kind._normalise_response

    def eval_service_task(task: Any, env: Any, normalised_parameters: Any, **others: Any) -> None:
        if task.resource.service_name == "http":
            env.stack.append(call(("http", "Invoke", normalised_parameters)))
        else:
            service_task(task, env=env, normalised_parameters=normalised_parameters, **others)

    def unless_http(normalise: Callable[..., None]) -> Callable[..., None]:
        def normalised(task: Any, *given: Any, **named: Any) -> None:
            if task.resource.service_name != "http":
                normalise(task, *given, **named)

        return normalised

    kind._eval_service_task = eval_service_task
    kind._normalise_parameters = unless_http(normalise_parameters)
    kind._normalise_response = unless_http(normalise_response)
