"""What must be true of steps that wait, at the end of every schedule, beside what is true of all requests."""

from __future__ import annotations

import json
from collections.abc import Iterator

from steponce.callbacks.answer import Answer
from steponce.callbacks.step import ANSWERED, LATE, AwaitingStep
from tests.simulation import judge as requests
from tests.simulation.callbacks.schedule import CallbackSchedule
from tests.simulation.callbacks.verdicts import got


def judge(schedule: CallbackSchedule) -> list[str]:
    """Every broken promise, in words."""
    return [*_complaints(schedule), *requests.judge(schedule)]


def _complaints(schedule: CallbackSchedule) -> Iterator[str]:
    here = schedule.installation
    records = here.verdicts.records()
    if here.verdicts.open():
        yield f"stuck: {here.verdicts.open()} are listed as open"
    for step in records:
        yield from _about_record(schedule, step)
    schedule.ask_again()
    yield from here.verdicts.complaints
    yield from schedule.outside.told
    for step in records:
        yield from _about_verdicts(schedule, step)
    yield from _about_outputs(schedule)
    yield from _about_commands(schedule, records)
    missing = here.verdicts.reported - {step.id for step in records}
    if missing:
        yield f"lost: these steps were reported, and have no record: {missing}"
    if here.refused:
        yield f"refused: these steps count as answered, and were not: {here.refused}"
    if here.answers.waiting:
        yield f"lost: answers stay in the queue: {here.answers.waiting}"


def _about_record(schedule: CallbackSchedule, step: AwaitingStep) -> Iterator[str]:
    """Nothing waits for ever, and the record says what the workflow got."""
    answers = schedule.installation.verdicts.answers(step)
    if len(answers) > 1:
        yield f"twice: the workflow got {len(answers)} answers to {step.id}"
    if step.status not in (ANSWERED, LATE):
        yield f"stuck: {step.id} is {step.status}"
    elif answers != ([step.answer] if step.answer else []):
        yield f"wrong record: {step.id} is {step.status} with {step.answer}, and the workflow got {answers}"


def _about_verdicts(schedule: CallbackSchedule, step: AwaitingStep) -> Iterator[str]:
    """The answer that the workflow got is the one that was accepted, if any was, and no other."""
    given = [
        one
        for one in schedule.installation.verdicts.given
        if one.step_id == step.id and one.answer.outcome != "heartbeat"
    ]
    accepted = [one.answer for one in given if one.verdict == "accepted"]
    if len(accepted) > 1:
        yield f"twice: {len(accepted)} answers to {step.id} were accepted"
    settled = {one.answer for one in given if one.verdict in ("accepted", "duplicate")}
    if len(settled) > 1:
        yield f"contradiction: {len(settled)} answers to {step.id} count as the one that arrived"
    for one in given:
        if one.verdict == "conflict" and one.answer in settled:
            yield f"contradiction: {one.answer} to {step.id} has arrived, and conflicts"


def _about_outputs(schedule: CallbackSchedule) -> Iterator[str]:
    """A step is never answered with another step's answer."""
    for waiting in schedule.installation.machine.waits:
        if not waiting.answer:
            continue
        whom = [waiting.given["requestId"], waiting.given["step"], waiting.given["attempt"]]
        named = _named(got(waiting))
        if named not in ([], whom) and not _is_command(named, whom):
            yield f"wrong step: {whom} got what was meant for {named}"


def _about_commands(schedule: CallbackSchedule, records: list[AwaitingStep]) -> Iterator[str]:
    """A command for a request that comes again is for the same step of it."""
    steps = {step.id: step for step in records}
    meant: dict[tuple[object, ...], set[str]] = {}
    for one in schedule.installation.verdicts.given:
        named = _named(one.answer)
        if len(named) == 2 and one.step_id in steps:
            step = steps[one.step_id]
            meant.setdefault((*named, step.call_id, step.attempt), set()).add(step.step)
    for named, names in meant.items():
        if len(names) > 1:
            yield f"wrong step: the answer for {named[:2]} went to {names}"


def _is_command(named: list[object], whom: list[object]) -> bool:
    """Whether an answer was meant for the step of this request, whichever that was."""
    return len(named) == 2 and named[0] == whom[0]


def _named(answer: Answer) -> list[object]:
    """For whom an answer was meant: a step, or the request of a command. Some do not say it."""
    told = answer.output
    if answer.outcome == "failure":
        told = json.loads(answer.cause) if answer.cause and answer.cause.startswith("{") else {}
    return list((told or {}).get("for", []))
