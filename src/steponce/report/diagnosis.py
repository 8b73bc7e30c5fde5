"""What is going on with a request, judged from what was found of it, and what to do next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from steponce.aws import times
from steponce.executions import YOUNG
from steponce.locks.record import Lock
from steponce.operator.locks import command
from steponce.report.story import GONE, HIDDEN, Attempt, Record, Situation
from steponce.workflow import (
    BEFORE_WORK,
    COMPLETED,
    FAILED,
    INPROGRESS,
    LOCK_HELD,
    OUTCOMES,
    RELEASED,
    TOO_LARGE,
)


@dataclass(frozen=True)
class Case:
    """
    What was found of a request.

    Args:
        request_id: As it was given.
        key: The lock token, if it was given.
        lock: The lock record as read, and `record`, the same for people; both None where there is none.
        attempts: The request's executions, oldest first; at least one.
        holder: Another request's execution, where it is that one which has the lock.
        owner_is_stranger: Whether the execution that has the owner's name is another one.
    """

    request_id: str
    key: str | None
    lock: Lock | None
    record: Record | None
    attempts: list[Attempt]
    holder: Attempt | None
    owner_is_stranger: bool

    def judge(self) -> tuple[Situation, str]:
        """What is going on, in a word, and with what to do next, in a sentence or two."""
        record, lock, newest = self.record, self.lock, self.attempts[-1]
        if record is None or lock is None or record.expired or record.status == RELEASED:
            return self._without_record(record, newest)
        another = record.request_id != self.request_id
        if another and self._was_turned_away(record, newest):
            return "turned away", (
                f"It was turned away with {newest.error}: its lock token belongs to request "
                f"{record.request_id!r}. Look at that one, or start yours with another key."
            )
        if lock.is_of_powertools:
            return self._by_powertools(record)
        if not lock.is_of_an_execution and record.on_open_index:
            return self._by_plain_python(record, lock)
        machine = record.locked_by.rpartition(":")[0]
        if machine != newest.execution_arn.rpartition(":")[0] and not record.answers:
            return self._by_another_machine(record, machine)
        holds = f"Request {record.request_id!r} has its lock token and answers for it. " if another else ""
        owners = [one for one in self.attempts if one.execution_arn == lock.locked_by]
        situation, summary = self._by_record(record, self.holder or owners[0])
        return situation, holds + summary

    def _by_plain_python(self, record: Record, lock: Lock) -> tuple[Situation, str]:
        """Nobody can ask it, stop it or start it again: its lease decides, then a person."""
        settle = (
            "Find out from its log whether the work took effect. If it did, write down the result: "
            f"{command('locks complete', record.lock_token, 'FILE')}. If not, free the lock, and run it "
            f"again: {command('locks release', record.lock_token)}"
        )
        holder = f"plain Python ({record.locked_by})"
        if record.status == FAILED:
            error = record.error or "an error without a name"
            return "waits for a person", f"The work of {holder} failed with {error}. {settle}"
        if lock.is_leased(times.now_text()):
            return "running", (
                f"Running in {holder}, which will be done by {record.lease_until}. Wait for it: "
                f"{self._command('wait')}"
            )
        return "unsettled", (
            f"The lease of {holder} was over at {record.lease_until}, and nobody has written down how it "
            f"ended. {settle}"
        )

    def _by_powertools(self, record: Record) -> tuple[Situation, str]:
        """Only that layer changes its records, so all that can be done is to wait."""
        if record.status == COMPLETED:
            return "completed", (
                "Completed by a function with Powertools' own DynamoDB layer. Whoever starts it gets that "
                f"result, {_until(record)} and as long as DynamoDB has not deleted it."
            )
        until = f"It said that it would be done by {record.lease_until}. " if record.lease_until else ""
        return "overdue" if record.overdue else "running", (
            f"In progress in a function with Powertools' own DynamoDB layer. {until}Only that layer ends it, "
            f"or DynamoDB, which deletes the record at {record.expires_at}. Wait for it: "
            f"{self._command('wait')}"
        )

    def _by_another_machine(self, record: Record, machine: str) -> tuple[Situation, str]:
        """What is to be done about its lock is for the other machine's stack to say."""
        look = (
            f"Its lock token is that of request {record.request_id!r} of another machine ({machine}). Look "
            f"at it with the stack of that machine: {command('show', record.request_id)} --stack NAME"
        )
        if record.status == FAILED:
            return (
                "waits for a person",
                f"{look} It has FAILED with {record.error or 'an error without a name'}.",
            )
        hidden = self.holder is not None and self.holder.status == HIDDEN
        end = (
            " From here nobody can tell whether its execution lives, so it counts as alive." if hidden else ""
        )
        return "overdue" if record.overdue else "running", look + end

    def _by_record(self, record: Record, owner: Attempt) -> tuple[Situation, str]:
        error = record.error or "an error without a name"
        if record.status == COMPLETED:
            return "completed", (
                f"Completed at {record.actual_completion}. Whoever starts it again with this payload gets "
                f"this result, {_until(record)}."
            )
        if record.status == FAILED and not record.on_open_index:
            return "failed", (
                f"Failed finally with {error} at {record.actual_completion}. Whoever starts it again gets "
                f"this error, {_until(record)}; to try again, start a new request with another id."
            )
        if record.status == FAILED:
            return "waits for a person", (
                f"Failed with {error} at {record.actual_completion}, which is no final answer: it waits for "
                "a person. Find out whether the work took effect; until the record is settled, nothing else "
                "runs under this lock token. If it did, write down the result: "
                f"{command('locks complete', record.lock_token, 'FILE')}. If not, run it again: "
                f"{command('locks retry', record.lock_token)}"
            )
        if record.status == INPROGRESS:
            return self._in_progress(record, owner)
        return "waits for a person", (
            f"The record's status is {record.status!r}, which this version does not know. Something else "
            "writes to the table; look at the record."
        )

    def _in_progress(self, record: Record, owner: Attempt) -> tuple[Situation, str]:
        if owner.status == GONE:
            if times.now() - times.from_text(record.created) < YOUNG:
                return "running", f"Running; too new to be described. Wait for it: {self._command('wait')}"
            return "unsettled", self._settle("can no longer be described")
        if self.owner_is_stranger:
            return "unsettled", self._settle("is gone, and another one has its name")
        if not owner.is_open:
            if owner.error in TOO_LARGE and owner.last_state not in BEFORE_WORK | OUTCOMES:
                return "unwritten", (
                    f"The work is done, but its result could not be written down ({owner.error}). "
                    "It is not to be run again. Look the result up, and write it down: "
                    f"{command('locks complete', record.lock_token, 'FILE')}"
                )
            return "unsettled", self._settle(f"is {owner.status}, last in {owner.last_state or 'no state'}")
        if record.overdue:
            return "overdue", (
                f"Overdue since {record.expected_completion}, but its owner lives: it is in "
                f"{owner.last_state or 'no state yet'}. {_answer(owner) or 'Look there at what keeps it.'} "
                f"Do not start it under another id; to end it: {command('cancel', record.request_id)}"
            )
        if answer := _answer(owner):
            return "running", f"Running normally, in {owner.last_state}. {answer}"
        return "running", (
            f"Running normally, in {owner.last_state or 'no state yet'}, and expected by "
            f"{record.expected_completion}. Wait for it: {self._command('wait')}"
        )

    def _without_record(self, record: Record | None, newest: Attempt) -> tuple[Situation, str]:
        if newest.is_open:
            return "starting", (
                f"Attempt {newest.number} runs and does not hold the lock yet. "
                f"Wait for it: {self._command('wait')}"
            )
        if record is not None and record.status == RELEASED and record.settled_by is not None:
            by, why = record.settled_by.by, record.settled_by.why
            return "released", (
                f"Released by {by} ({why}), and the lock is free. Start it again: {self._command('start')}"
            )
        if record is not None and record.status == RELEASED:
            return "released", (
                f"Nothing happened ({record.error or 'no reason given'}), and the lock is free. "
                f"Start it again: {self._command('start')}"
            )
        if record is not None:
            return "expired", (
                f"Its answer served until {record.expires_at}. The next start runs the work again."
            )
        if newest.status == "SUCCEEDED":
            return "expired", (
                "Its execution succeeded, but the record of it is gone. The next start runs the work again."
            )
        return "failed", (
            f"Its execution ended {newest.status} with {newest.error or 'an error without a name'}, and no "
            f"record answers for it. Once the cause is gone, start it again: {self._command('start')}"
        )

    def _was_turned_away(self, record: Record, newest: Attempt) -> bool:
        if newest.is_open or newest.status in ("SUCCEEDED", GONE):
            return False
        return newest.error not in LOCK_HELD and newest.error != record.error

    def _settle(self, how: str) -> str:
        return (
            f"The execution that holds its lock {how}, and nobody has written down how it ended. Settle it "
            f"with the same payload: {self._command('start', '--check-owner')}"
        )

    def _command(self, verb: str, *more: str) -> str:
        words = ["steponce", verb, shlex.quote(self.request_id)]
        words += ["FILE"] if verb == "start" else []
        words += ["--key", shlex.quote(self.key)] if self.key else []
        return " ".join([*words, *more])


def _answer(owner: Attempt) -> str:
    """How to answer the step that the owner waits for; empty if it waits for none."""
    step = owner.waits_for
    if step is None:
        return ""
    return (
        f"It waits for an answer to {step.step!r} until {step.expires_at}: "
        f"steponce callback succeed {step.awaiting_step_id}"
    )


def _until(record: Record) -> str:
    if record.expires_at is None or record.expires_at == times.NEVER:
        return "for ever"
    return f"until {record.expires_at}"
