"""Rules for Tasks that wait: time-outs, heartbeats and task tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steponce.lint.asl import as_object
from steponce.lint.facts import parse
from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Body, Machine, State, leaves
from steponce.lint.rule import Rules

WAITING = Rules("general")

_HEARTBEATS = {"HeartbeatSeconds", "HeartbeatSecondsPath"}
_LIMITS = {"TimeoutSeconds", "TimeoutSecondsPath"} | _HEARTBEATS
_CALL = {"callId", "callId.$"}
_CONTEXT_OF_MAP = ("$$.Map", "$states.context.Map")


@WAITING.rule("task-timeout", "warning")
def task_timeout(machine: Machine) -> Complaints:
    """
    A Task waits for an answer from outside, and neither the Task nor the machine has a time-out.

    It may wait for 99,999,999 seconds, which is three years. "If something goes wrong and the
    `TimeoutSeconds` field isn't specified for an Activity or Task state, an execution is stuck waiting for a
    response that will never come." Such Tasks are callbacks (`.waitForTaskToken`), activities and jobs
    (`.sync`). A heartbeat bounds the wait, too. A function ends after 15 minutes by itself, so the rule does
    not apply to its Task.

    Source: [Best practices](https://docs.aws.amazon.com/step-functions/latest/dg/sfn-best-practices.html).
    """
    if "TimeoutSeconds" in machine.body:
        return
    for state, call in machine.tasks():
        waits = call.pattern or call.integration == "activity"
        if waits and not _LIMITS & set(state.body):
            text = "it may wait for three years. Give it TimeoutSeconds, or HeartbeatSeconds."
            yield Complaint(state.name, text)


@WAITING.rule("heartbeat-timeout", "error")
def heartbeat_timeout(machine: Machine) -> Complaints:
    """
    A heartbeat is not shorter than the time-out, so a missing heartbeat is never noticed.

    `HeartbeatSeconds` must be "less than the number of seconds specified in the `TimeoutSeconds` field". AWS
    refuses such numbers when the machine is created. With paths, the execution fails when it enters the
    state. The rule finds two fields that read the same path, and a Pass state that writes both values.

    Source: [Task state](https://docs.aws.amazon.com/step-functions/latest/dg/state-task.html).
    """
    for refusal in machine.refusals:
        if refusal.kind == "heartbeat-timeout":
            yield Complaint(refusal.state, refusal.text)
    passes = [state for state in machine.all_states() if state.kind == "Pass" and not state.is_jsonata]
    for state, _ in machine.tasks():
        if not _HEARTBEATS & set(state.body):
            continue
        heartbeat, timeout = (state.body.get(f"{kind}SecondsPath") for kind in ("Heartbeat", "Timeout"))
        if isinstance(heartbeat, str) and heartbeat == timeout:
            text = f"heartbeat and time-out are both {heartbeat}. The heartbeat must be less."
            yield Complaint(state.name, text)
        else:
            yield from _written_by_a_pass(passes, state)


def _written_by_a_pass(passes: list[State], state: State) -> Complaints:
    for other in passes:
        heartbeat, timeout = (_seconds(state, other, kind) for kind in ("Heartbeat", "Timeout"))
        if heartbeat is not None and timeout is not None and heartbeat >= timeout:
            text = f"{other.name} gives it a heartbeat of {heartbeat} s and a time-out of {timeout} s."
            yield Complaint(state.name, f"{text} The heartbeat must be less.")


def _seconds(state: State, source: State, kind: str) -> int | None:
    """The number in a Pass state that a field of a Task reads; or the field's own number."""
    own = state.body.get(f"{kind}Seconds")
    if isinstance(own, int):
        return own
    wanted = parse(str(state.body.get(f"{kind}SecondsPath", "")))
    place = parse(str(source.body.get("ResultPath", "$")))
    if wanted is None or place is None or wanted[: len(place)] != place:
        return None
    value: Any = source.body.get("Result", source.body.get("Parameters"))
    for step in wanted[len(place) :]:
        value = as_object(value).get(step)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@WAITING.rule("heartbeat-unheard", "warning")
def heartbeat_unheard(machine: Machine) -> Complaints:
    """
    A Task has a heartbeat, but no task token with which a heartbeat could be sent.

    Only activity workers and callbacks (`.waitForTaskToken`) call `SendTaskHeartbeat`. Use `TimeoutSeconds`.

    Source: [SendTaskHeartbeat](https://docs.aws.amazon.com/step-functions/latest/apireference/API_SendTaskHeartbeat.html).
    """
    for state, call in machine.tasks():
        has_one = _HEARTBEATS & set(state.body)
        if has_one and call.integration in ("optimized", "sdk") and not call.waits_for_token:
            text = "it has a heartbeat, but no task token to send one with. Use TimeoutSeconds."
            yield Complaint(state.name, text)


@WAITING.rule("token-not-passed", "error")
def token_not_passed(machine: Machine) -> Complaints:
    """
    A callback does not pass on its task token, so nothing can answer it.

    It waits until its time-out. Pass `$$.Task.Token` in `Parameters`, or `$states.context.Task.Token` in
    `Arguments`.

    Source: [Wait for a callback](https://docs.aws.amazon.com/step-functions/latest/dg/connect-to-resource.html#connect-wait-token).
    """
    for state, call in machine.tasks():
        if call.waits_for_token and not _passes_token(state):
            text = "it waits for an answer, but passes its token to nobody. Pass $$.Task.Token in Parameters."
            yield Complaint(state.name, text)


@WAITING.rule("token-without-wait", "warning")
def token_without_wait(machine: Machine) -> Complaints:
    """
    A Task passes on its task token, but does not wait for an answer.

    The Task is over before an answer with the token can arrive. Let its Resource end with
    `.waitForTaskToken`.

    Source: [Context object](https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html).
    """
    for state, call in machine.tasks():
        read = [
            text
            for text in _texts(state.arguments)
            if "$$.Task.Token" in text or "context.Task.Token" in text
        ]
        if read and not call.waits_for_token and call.integration in ("optimized", "sdk"):
            text = "it passes its task token on, but does not wait. End its Resource with .waitForTaskToken."
            yield Complaint(state.name, text)


@WAITING.rule("shared-step", "error")
def shared_step(machine: Machine) -> Complaints:
    """
    The items of a Map wait for answers under one step name, so an answer may reach another item.

    `record_awaiting_step` keeps one record for each step name of a run. A second item that waits replaces the
    record of the first, and nobody can answer the first any more. Or it is refused with `StepNameTaken`.

    Put the item's index or id into the name. The Map's `ItemSelector` hands it on: `"index.$":
    "$$.Map.Item.Index"`. Then the name is `"step.$": "States.Format('approval-{}', $.index)"`. A state inside
    of a Map cannot read `$$.Map` itself: it fails with `States.Runtime`.

    The rule looks at callbacks whose `Payload` has a `callId`, which that function needs. It does not look at
    a `Payload` that is one expression.

    Source: [Callbacks](callbacks.md#states-of-your-own);
    [Context object](https://docs.aws.amazon.com/step-functions/latest/dg/input-output-contextobject.html):
    "You must define parameters from the Context object in the `ItemSelector` block of the main `Map` state".
    """
    for state in _in_maps(machine):
        payload = as_object(state.arguments.get("Payload"))
        step, read = payload.get("step"), payload.get("step.$", payload.get("step"))
        is_recorded = state.call is not None and state.call.waits_for_token and bool(_CALL & set(payload))
        if is_recorded and isinstance(step, str) and not step.startswith("{%"):
            text = f"each item of its Map waits under one step name, {step!r}. Add the item's index or id."
            yield Complaint(state.name, text)
        if is_recorded and isinstance(read, str) and any(name in read for name in _CONTEXT_OF_MAP):
            text = "its step name reads the Map's context, which is not there. Take it in the ItemSelector."
            yield Complaint(state.name, text)


def _in_maps(machine: Machine, *, inside: bool = False) -> Iterator[State]:
    """The states that each item of a Map goes through."""
    if inside:
        yield from machine.states.values()
    for inner in machine.inner:
        yield from _in_maps(inner, inside=inside or machine.states[inner.owner].kind == "Map")


def _passes_token(state: State) -> bool:
    texts = _texts(state.arguments)
    if state.is_jsonata:
        return any("$states.context" in text for text in texts) or isinstance(
            state.body.get("Arguments"), str
        )
    return any("$$.Task" in text or text == "$$" for text in texts)


def _texts(arguments: Body) -> list[str]:
    return [value for _, value in leaves(arguments) if isinstance(value, str)]
