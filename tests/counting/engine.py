"""
The embedded engine's interpreter, whose tasks get the answers of a script.

No call leaves the process. It is taken where botocore would send it, so it is the request that a service
would get. The engine's patches stay in a process for good, so this wants a process of its own.
"""

from __future__ import annotations

import io
import itertools
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from botocore.response import StreamingBody
from moto.core.config import default_user_config

from steponce.local import moto_patches
from tests.counting.answers import HERE, Answer, Fails, Machine, states
from tests.counting.drives import Drive
from tests.counting.integrations import Request
from tests.counting.integrations import install as install_integrations
from tests.patience import PATIENCE_SECONDS, eventually

ACCOUNT, REGION = "123456789012", "us-east-1"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/test"
NOWHERE = "http://127.0.0.1:9"
REDRIVEN = "2026-01-31T12:00:00.000Z"
TASK = {"clusterArn": "cluster", "taskArn": "task"}

FIRST_ANSWERS: dict[str, dict[str, Any]] = {
    "StartExecution": {"executionArn": f"arn:aws:states:{REGION}:{ACCOUNT}:execution:child:1"},
    "RunTask": {"tasks": [TASK]},
    "StartJobRun": {"JobRunId": "1"},
    "StartQueryExecution": {"QueryExecutionId": "1"},
}
"""What is in any answer of an operation, since the engine reads it."""

FOLLOW_UPS: dict[str, dict[str, Any]] = {
    "DescribeExecution": {"status": "SUCCEEDED", "input": "{}", "output": '{"isKnown": true}'},
    "DescribeTasks": {"tasks": [{**TASK, "lastStatus": "STOPPED"}]},
    "GetJobRun": {"JobRun": {"JobRunState": "SUCCEEDED"}},
    "GetQueryExecution": {"QueryExecution": {"QueryExecutionId": "1"}},
    "ListObjectsV2": {"Contents": [{"Key": "incoming/1"}]},
    "PutObject": {},
}
"""What is answered beside a task's first call: how far a job is, which items a Map has."""

Script = Callable[[str], Answer | None]
"""Answers the next call of a state; None if there is nothing to say, and the execution is stopped."""

Branches = list[tuple[set[str], set[str]]]
"""Of each branch of a Parallel, its states, and those that end it."""


@dataclass
class Run:
    """
    One execution.

    Attributes:
        script: What its tasks are answered.
        beside: The branches around each state that is in one of several.
        requests: What its tasks sent.
        events: Of the execution, and of those that a distributed Map started.
        children: How many those are.
        status: How it ended.
        error: The name of its error.
    """

    script: Script
    beside: Mapping[str, Branches]
    requests: list[Request] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    children: int = 0
    status: str = "RUNNING"
    error: str | None = None
    _failing: set[str] = field(default_factory=set)

    @property
    def entered(self) -> tuple[str, ...]:
        """The states in the order in which they were entered, those of children last."""
        key = "stateEnteredEventDetails"
        return tuple(event[key]["name"] for event in self.events if key in event)

    @property
    def types(self) -> list[str]:
        """Of the events."""
        return [event["type"].value for event in self.events]

    def wait_for_other_branches(self, state: str, history: Any) -> None:
        """
        Let the other branches of a Parallel end, or come to a failure of their own.

        A failure stops them, on AWS as here; how far they come is then a matter of luck.
        """
        self._failing.add(state)
        branches = self.beside.get(state, [])
        eventually(lambda: self._are_over(branches, history.get_event_history()), pause=0.001)

    def _are_over(self, branches: Branches, events: list[dict[str, Any]]) -> bool:
        key = "stateExitedEventDetails"
        left = {event[key]["name"] for event in events if key in event}
        return all(left & ends or self._failing & names for names, ends in branches)


class Engine:
    """The interpreter of this process."""

    def __init__(self) -> None:
        logging.disable()
        threading.excepthook = lambda _: None  # a thread may find its execution stopped
        default_user_config["stepfunctions"] = {"execute_state_machine": True}
        moto_patches.install()
        # These import moto's interpreter, which must not come before the patches.
        from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration import (
            distributed_iteration_component as distributed,
        )
        from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import (
            WaitFunction,
        )
        from moto.stepfunctions.parser.models import stepfunctions_parser_backends

        from steponce.local.moto_patches import faults, services, status

        self._faults, self._status = faults, status
        services._session(REGION).events.register_first("before-call", self._answer)
        install_integrations(self._ask, self._call)
        services.route(dict.fromkeys(("aws", "dynamodb", "lambda", "states"), NOWHERE), REGION)
        self._backend = stepfunctions_parser_backends[ACCOUNT][REGION]
        WaitFunction._wait_interval = lambda *_, **__: None
        self._drive = Drive("")
        self._script_parallels()
        self._histories: list[Any] = []
        distributed.EventManager = self._new_history(distributed.EventManager)
        self._runs: dict[str, Run] = {}
        self._beside: dict[str, dict[str, Branches]] = {}
        self._numbers = itertools.count()

    def make(self, definition: Machine) -> str:
        """Create a state machine; its ARN."""
        # moto reads this number only with a point.
        text = re.sub(r'("ToleratedFailurePercentage": \d+)(?=[,}])', r"\1.0", json.dumps(definition))
        made = self._backend.create_state_machine(
            name=f"machine-{next(self._numbers)}", definition=text, roleArn=ROLE
        )
        self._beside[made.arn] = dict(_branches(definition))
        return str(made.arn)

    def run(self, machine: str, given: Any, script: Script, drive: Drive) -> Run:
        """Run it once, to its end."""
        self._drive = drive
        name = f"run-{next(self._numbers)}"
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:{name}"
        run = self._runs[arn] = Run(script, self._beside[machine])
        self._histories.clear()
        ended = threading.Event()
        with self._status.at_the_end(arn, ended.set):
            execution = self._backend.start_execution(machine, name, json.dumps(given))
            assert ended.wait(PATIENCE_SECONDS), execution.get_event_history()
        run.status, run.error = execution.status, execution.error
        run.events = self._backend.get_execution_history(arn)["events"]
        for history in self._histories:
            run.events += history.get_event_history()
        records = execution.exec_worker.env.map_run_record_pool_manager.get_all()
        run.children = sum(record.execution_counter.total.get() for record in records)
        del self._runs[arn], self._backend.describe_state_machine(machine).executions[:]
        return run

    def _new_history(self, make: Callable[[], Any]) -> Callable[[], Any]:
        """moto keeps the events of a distributed Map's executions in one that it shows to nobody."""

        def history() -> Any:
            self._histories.append(made := make())
            return made

        return history

    def _script_parallels(self) -> None:
        """A Parallel may fail by itself once its branches have ended, and may pass on null."""
        from moto.stepfunctions.parser.asl.component.state.exec.state_parallel.state_parallel import (
            StateParallel,
        )

        evaluate, output = StateParallel._eval_execution, StateParallel._construct_error_output_value

        def eval_execution(state: Any, env: Any) -> None:
            evaluate(state, env)
            arn = env.states.context_object.context_object_data["Execution"]["Id"]
            answer = self._runs[arn].script(state.name)
            if isinstance(answer, Fails):
                raise self._faults.FailureEventException(_failure_of_parallel(env, answer))

        def error_output(failure_event: Any) -> Any:
            (said,) = failure_event.event_details.values()
            given = {"Error": said.get("error", self._drive.no_name), "Cause": said.get("cause")}
            return output(failure_event) if self._drive.says_why else given

        StateParallel._eval_execution = eval_execution
        StateParallel._construct_error_output_value = staticmethod(error_output)

    def _answer(self, model: Any, params: Mapping[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        """What botocore takes for the service's answer."""
        task, env = getattr(self._faults._here, "task", None) or (None, None)
        if task is None:
            return _http(model, FOLLOW_UPS[model.name])
        request = (model.service_model.service_name, model.name, _body(params))
        if not task.resource.resource_arn.endswith(".waitForTaskToken"):
            return _http(model, self._call(request))
        token = env.states.context_object.context_object_data["Task"]["Token"]
        self._send(token, self._ask(request))
        return _http(model, {})

    def _call(self, request: Request) -> Any:
        """Send a request of this thread's task. Returns its output, or raises its error."""
        task, env = self._faults._here.task
        answer = self._ask(request)
        context = env.states.context_object.context_object_data
        if isinstance(answer, Fails):
            fault = self._faults.Fault(
                self._faults.FAIL,
                context["StateMachine"]["Id"],
                context["State"]["Name"],
                error=answer.error,
                cause=answer.cause,
            )
            raise self._faults.FailureEventException(self._faults._failure(task, env, fault))
        if answer.redriven:
            context["Execution"]["RedriveTime"] = REDRIVEN
        return json.loads(json.dumps(answer.output).replace(HERE, context["Execution"]["Id"]))

    def _ask(self, request: Request | None = None) -> Answer:
        """The script's answer for this thread's task. An activity sends no request."""
        _, env = self._faults._here.task
        self._faults._here.task = None  # what this try calls after it are follow-ups
        context = env.states.context_object.context_object_data
        run, state = self._runs[context["Execution"]["Id"]], context["State"]["Name"]
        run.requests += [request] if request else []
        answer = run.script(state)
        if answer is None:
            fault = self._faults.Fault(self._faults.FAIL, context["StateMachine"]["Id"], state)
            self._faults._stop(env, fault)
        if isinstance(answer, Fails):
            run.wait_for_other_branches(state, env.event_manager)
        return answer

    def _send(self, token: str, answer: Answer) -> None:
        if isinstance(answer, Fails):
            self._backend.send_task_failure(token, answer.error, answer.cause)
        else:
            self._backend.send_task_success(token, json.dumps(answer.output))


def _failure_of_parallel(env: Any, answer: Fails) -> Any:
    """As the engine has the failure of a branch."""
    from moto.stepfunctions.parser.api import HistoryEventType
    from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
    from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent
    from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails

    said = {"error": answer.error, "cause": answer.cause}
    return FailureEvent(
        env,
        CustomErrorName(answer.error),
        HistoryEventType.ExecutionFailed,
        EventDetails(executionFailedEventDetails=said),
    )


def _branches(machine: Machine) -> Iterator[tuple[str, Branches]]:
    for _, state, _ in states(machine):
        found = [
            (set(branch["States"]), {name for name, one in branch["States"].items() if one.get("End")})
            for branch in state.get("Branches", [])
        ]
        if len(found) > 1:
            yield from ((name, found) for names, _ in found for name in names)


def _body(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is sent, be it a form or JSON; nothing if it is neither."""
    body = params.get("body")
    if isinstance(body, Mapping):
        return body
    try:
        return dict(json.loads(body or b"{}"))
    except (ValueError, TypeError):
        return {}


def _http(model: Any, output: Any) -> tuple[Any, dict[str, Any]]:
    answer = {"ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}, "RequestId": "r"}}
    if model.name == "Invoke":
        text = json.dumps(output).encode()
        body = StreamingBody(io.BytesIO(text), len(text))
        answer |= {"StatusCode": 200, "ExecutedVersion": "$LATEST", "Payload": body}
    else:
        answer |= deepcopy(FIRST_ANSWERS.get(model.name, {}) | (output or {}))  # moto renames the fields
    return SimpleNamespace(status_code=200, headers={}), answer
