"""Judges what is going on with a request, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace

from steponce.aws import times
from steponce.executions import YOUNG, machine_of
from steponce.locks.record import Lock
from steponce.next_step import Action, NextStep
from steponce.recovery.owner import Work
from steponce.report.story import GONE, HIDDEN, Attempt, Diagnosis, Record, Waiting
from steponce.workflow import (
    COMPLETED,
    DUPLICATE_REFUSED,
    FAILED,
    INPROGRESS,
    OUTCOMES,
    RELEASED,
    TOO_LARGE,
)

_FOUND_ALIVE = "AlreadyInProgress"

_LOST = "States.Runtime"
"""The error of a state whose input lacks what it reads, as CompleteRequest's where a workflow was changed."""

_BY_HAND: tuple[Action, ...] = ("complete lock", "retry lock")
_SETTLING: frozenset[Action] = frozenset({"start request", "release lock", *_BY_HAND})


@dataclass(frozen=True)
class Advice:
    """
    What is going on with a request.

    Args:
        diagnosis: In a word.
        summary: In a sentence or two, with what to do next.
        next_steps: What to do next, in the order in which it makes sense.
    """

    diagnosis: Diagnosis
    summary: str
    next_steps: tuple[NextStep, ...] = ()


@dataclass(frozen=True)
class Case:
    """
    What the collector found of a request.

    Args:
        request_id: As the caller gave it.
        key: The lock token, if a start of the request must name it.
        record_key: The lock token, if `show` of the request that has made the record must name it.
        lock: The lock record as it was read. None if there is none.
        record: The same record for people. None if there is none.
        attempts: The request's executions, oldest first; at least one.
        holder: The execution of another request, if that one holds the lock.
        owner_is_stranger: Whether another execution now has the name of the lock's owner.
        is_answered: Whether the record tells this request's outcome.
        work: What is known of the work of the lock's owner, if that is closed and the record has no answer.
    """

    request_id: str
    key: str | None
    record_key: str | None
    lock: Lock | None
    record: Record | None
    attempts: list[Attempt]
    holder: Attempt | None
    owner_is_stranger: bool
    is_answered: bool
    work: Work

    def judge(self) -> Advice:
        """Judge the request by its record first, and by its executions where no record decides."""
        record, lock, newest = self.record, self.lock, self.attempts[-1]
        again = self._redriven_since_release
        if record is not None and again is not None and (again is newest or not newest.is_open):
            return self._beside(again, self._worked_again(record, again))
        if record is None or lock is None or record.expired or record.status == RELEASED:
            subject = self._running_or(newest)
            tells = self.is_answered or self._was_settled_after(subject)
            return self._beside(subject, self._without_record(record if tells else None, subject))
        if newest.is_open and not self.is_answered:
            return self._beside(newest, self._without_record(None, newest))
        open_owner = None if record.answers else self._attempt_under(record.locked_by)
        return self._beside(open_owner, self._by_lock(record, lock, newest))

    def _beside(self, subject: Attempt | None, advice: Advice) -> Advice:
        """
        Name the attempts that were redriven and work without the lock, beside the subject of the advice.

        While they work, no step is left that starts the request, or settles or frees its lock: the work could
        run twice at once. After their end a person has to find out whether it took effect.
        """
        others = [one for one in self.attempts if one is not subject]
        works = " ".join(_without_lock(one) for one in others if one.works_again)
        settles = any(step.action in _SETTLING for step in advice.next_steps)
        if works and settles:
            return replace(advice, summary=f"{works} What to do next depends on how it ends.", next_steps=())
        if works:
            return replace(advice, summary=f"{advice.summary} {works}")
        newest = self.attempts[-1]
        ended = " ".join(_ended_without_lock(one) for one in others if one.worked_again_after(newest))
        return replace(advice, summary=f"{ended} {advice.summary}") if ended and settles else advice

    def _attempt_under(self, execution_arn: str) -> Attempt | None:
        return next((one for one in self.attempts if one.execution_arn == execution_arn), None)

    def _by_lock(self, record: Record, lock: Lock, newest: Attempt) -> Advice:
        """Judge a request by a record that is not free."""
        another = record.request_id != self.request_id
        elsewhere = machine_of(record.locked_by) != machine_of(newest.execution_arn)
        if not self.is_answered:
            owner = machine_of(record.locked_by) if elsewhere and lock.is_of_an_execution else None
            return self._without_answer(record, newest, owner, is_another_id=another and not elsewhere)
        if lock.is_of_powertools:
            return self._by_powertools(record)
        if not lock.is_of_an_execution and record.on_open_index:
            return self._by_plain_python(record, lock)
        if elsewhere and not record.answers:
            return self._by_another_machine(record, machine_of(record.locked_by))
        holds = f"Request {record.request_id!r} has its lock token and answers for it. " if another else ""
        owners = [one for one in self.attempts if one.execution_arn == lock.locked_by]
        advice = self._by_record(record, self.holder or owners[0])
        return replace(advice, summary=holds + advice.summary)

    def _by_plain_python(self, record: Record, lock: Lock) -> Advice:
        """Judge a guard's lock. Nobody can ask its owner: first its lease decides, then a person."""
        settle = (
            "Find out from its log whether the work took effect. If it did, complete the lock with the "
            "result. If not, release the lock, and run the work again."
        )
        steps = (
            NextStep("complete lock", record.lock_token),
            NextStep("release lock", record.lock_token),
        )
        holder = f"plain Python ({record.locked_by})"
        if record.status == FAILED:
            error = record.error or "an error without a name"
            return Advice("waits for a person", f"The work of {holder} failed with {error}. {settle}", steps)
        if lock.is_leased(times.now_text()):
            return Advice(
                "running",
                f"Running in {holder}, which will be done by {record.lease_until}. Wait for it.",
                (self._request("wait for request"),),
            )
        return Advice(
            "unsettled",
            f"The lease of {holder} was over at {record.lease_until}, and its outcome is not on record. "
            f"{settle}",
            steps,
        )

    def _by_powertools(self, record: Record) -> Advice:
        """Judge a record of Powertools' own layer. Only that layer changes it, so people can only wait."""
        if record.status == COMPLETED:
            return Advice(
                "completed",
                "Completed by a function with Powertools' own DynamoDB layer. A later start gets that "
                f"result, {_until(record)} and as long as DynamoDB has not deleted it.",
            )
        until = f"It said that it would be done by {record.lease_until}. " if record.lease_until else ""
        return Advice(
            "overdue" if record.overdue else "running",
            f"In progress in a function with Powertools' own DynamoDB layer. {until}Only that layer ends "
            f"it, or DynamoDB, which deletes the record in the days after {record.expires_at}. Wait for it.",
            (self._request("wait for request"),),
        )

    def _by_another_machine(self, record: Record, machine: str) -> Advice:
        """Judge the lock of another machine's request. Only that machine's stack can settle it."""
        look = (
            f"Its lock token is that of request {record.request_id!r} of another machine ({machine}). Look "
            "at it with the stack of that machine."
        )
        steps = (NextStep("show request", record.request_id, lock_token=record.lock_token, machine=machine),)
        if record.status == FAILED:
            error = record.error or "an error without a name"
            return Advice("waits for a person", f"{look} It has FAILED with {error}.", steps)
        hidden = self.holder is not None and self.holder.status == HIDDEN
        end = " Its execution cannot be described from here, so it counts as alive." if hidden else ""
        return Advice("overdue" if record.overdue else "running", look + end, steps)

    def _by_record(self, record: Record, owner: Attempt) -> Advice:
        error = record.error or "an error without a name"
        if record.status == COMPLETED:
            gets = "this result" if record.unread is None else "its result only if that can be read then"
            return Advice(
                "completed",
                f"Completed at {record.actual_completion}. A later start with this payload gets {gets}, "
                f"{_until(record)}.",
            )
        if record.status == FAILED and not record.on_open_index:
            token = "" if self.key is self.record_key is None else " and another lock token"
            return Advice(
                "failed",
                f"Failed finally with {error} at {record.actual_completion}. A later start gets this error, "
                f"{_until(record)}. To try again, start a new request with another id{token}.",
            )
        if record.status == FAILED:
            return self._failed(record, owner, error)
        if record.status == INPROGRESS:
            return self._in_progress(record, owner)
        return Advice(
            "waits for a person",
            f"The record's status is {record.status!r}, which this version does not know. Another program "
            "writes to the table; look at the record.",
        )

    def _failed(self, record: Record, owner: Attempt, error: str) -> Advice:
        """Advise on a failure that is not a final answer."""
        failed = f"Failed with {error} at {record.actual_completion}."
        if owner.is_open and owner.redrive_count and not self.owner_is_stranger:
            return Advice(
                "waits for a person",
                f"{failed} {_runs_again(owner)} Wait for its end, or cancel it. Then find out how often the "
                "work took effect.",
                (NextStep("cancel request", record.request_id, lock_token=self.record_key),),
            )
        if self.work.done_by is not None:
            return Advice(
                "waits for a person",
                f"{failed} But the execution {self.work.done_by}, which is its work, has succeeded. So the "
                "work is done. Complete the lock with the output of that execution.",
                (NextStep("complete lock", record.lock_token),),
            )
        work, refused = self.work.open, ""
        if work is not None and work.execution_arn is not None:
            return Advice(
                "waits for a person",
                f"{failed} But the execution {work.execution_arn}, which it has started for its work, still "
                "runs. Wait for its end, or stop it, and look again. No command changes the lock before.",
            )
        if work is not None and work.hidden is not None:
            return Advice("waits for a person", f"{failed} {work.in_words}")
        again = "run it again."
        is_gone = owner.status == GONE or self.owner_is_stranger
        if is_gone:  # and its payload with it
            again = "release the lock, and start the request with its payload."
        if work is not None:
            refused = f" The work may run until {work.until} or later; both commands are refused until then."
        return Advice(
            "waits for a person",
            f"{failed} This is no final answer: it waits for a person, and nothing else runs under this lock "
            "token until then. Find out whether the work took effect. If it did, complete the lock with the "
            f"result. If not, {again}{refused}",
            (
                NextStep("complete lock", record.lock_token),
                NextStep("release lock" if is_gone else "retry lock", record.lock_token),
            ),
        )

    def _in_progress(self, record: Record, owner: Attempt) -> Advice:
        wait = (self._request("wait for request"),)
        if owner.status == GONE:
            if times.now() - times.from_text(record.created) < YOUNG:
                return Advice("running", "Running; too new to be described. Wait for it.", wait)
            return self._settle("can no longer be described")
        if self.owner_is_stranger:
            return self._settle("is gone, and another one has its name")
        if not owner.is_open:
            was_working = owner.has_worked and owner.last_state not in OUTCOMES
            has_lost = owner.error == _LOST and owner.last_state == "CompleteRequest"
            if has_lost or (owner.error in TOO_LARGE and was_working):
                return Advice(
                    "unwritten",
                    f"The work is done, but its result could not be recorded ({owner.error}). It must not "
                    "run again. Look the result up, and complete the lock with it.",
                    (NextStep("complete lock", record.lock_token),),
                )
            return self._settle(f"is {owner.status}, last in {owner.last_state or 'no state'}")
        waits_for, answer = _answer(owner)
        if record.overdue:
            return Advice(
                "overdue",
                f"Overdue since {record.expected_completion}, but its owner lives: it is in "
                f"{owner.place or 'no state yet'}. {waits_for or 'Find out there what delays it.'} "
                "Do not start it under another id. To end it, cancel it.",
                (*answer, NextStep("cancel request", record.request_id, lock_token=self.record_key)),
            )
        if waits_for:
            return Advice("running", f"Running normally, in {owner.place}. {waits_for}", answer)
        return Advice(
            "running",
            f"Running normally, in {owner.place or 'no state yet'}, and expected by "
            f"{record.expected_completion}. Wait for it.",
            wait,
        )

    def _without_record(self, record: Record | None, newest: Attempt) -> Advice:
        start = (self._request("start request"),)
        has_worked = record is None and self._has_untold_work
        gone = self._record_or("its record is gone")
        if newest.limited_until is not None and (newest.is_open or not has_worked):
            return self._rate_limited(newest, newest.limited_until)
        if newest.is_open and newest.has_worked:
            return Advice("running", _without_lock(newest), (self._request("wait for request"),))
        if newest.is_open:
            return Advice(
                "starting",
                f"Attempt {newest.number} runs and does not hold the lock yet. Wait for it.",
                (self._request("wait for request"),),
            )
        if newest.status == "SUCCEEDED" and record is None:
            return Advice(
                "expired",
                f"Its execution succeeded, but {gone}. The next start runs the work again.",
            )
        if record is not None and record.status == RELEASED and record.settled_by is not None:
            by, why = record.settled_by.by, record.settled_by.why
            return Advice(
                "released", f"Released by {by} ({why}), and the lock is free. Start it again.", start
            )
        if record is not None and record.status == RELEASED:
            return Advice(
                "released",
                f"Nothing happened ({record.error or 'no reason given'}), and the lock is free. "
                "Start it again.",
                start,
            )
        if record is not None:
            return Advice(
                "expired", f"Its record expired at {record.expires_at}. The next start runs the work again."
            )
        ended = f"Its execution ended {newest.status} with {newest.error or 'an error without a name'}"
        if has_worked:
            return Advice(
                "failed",
                f"{ended}, and {gone}. The work had begun, and the next start runs it again. Find out before "
                "whether it took effect.",
            )
        return Advice(
            "failed",
            f"{ended}, and {self._record_or('it has no record')}. Once the cause is gone, start it again.",
            start,
        )

    def _record_or(self, nothing: str) -> str:
        """Say whose record the screen shows, and its status. Without a record, give `nothing` back."""
        record, told = self.record, self._told
        if record is None:
            return nothing
        whose = f"request {record.request_id!r}"
        if told is not None:
            whose = f"attempt {told.number}"
        elif record.request_id == self.request_id:
            whose = "another request with this id"
        expired = f", expired at {record.expires_at}" if record.expired else ""
        return f"the record is that of {whose} ({record.status}{expired})"

    @property
    def _has_untold_work(self) -> bool:
        """Whether an attempt has begun the work since the one whose outcome the free record tells."""
        record, told = self.record, self._told
        until = 0
        if record is not None and told is not None and not told.has_worked_since(record.actual_completion):
            until = told.number
        return any(one.has_worked for one in self.attempts if one.number > until)

    @property
    def _told(self) -> Attempt | None:
        """The attempt of this request whose outcome the record tells, if that is free."""
        record = self.record
        if record is None or self.owner_is_stranger or not (record.expired or record.status == RELEASED):
            return None
        return self._attempt_under(record.locked_by)

    def _was_settled_after(self, newest: Attempt) -> bool:
        """Whether the newest attempt ended without the lock, and the record became free after that."""
        record, ended = self.record, newest.stopped
        settled = None if record is None or self._told is None else record.actual_completion
        return ended is not None and settled is not None and ended <= settled

    @property
    def _released(self) -> Attempt | None:
        """The attempt of this request whose lock was released: its work may run again."""
        return self._told if self.record is not None and self.record.status == RELEASED else None

    def _running_or(self, newest: Attempt) -> Attempt:
        """The attempt whose lock was released, if it runs and the newest does not. Else the newest."""
        released = self._released
        return released if released is not None and released.is_open and not newest.is_open else newest

    @property
    def _redriven_since_release(self) -> Attempt | None:
        """The attempt whose lock was released, if it was redriven since and has begun the work."""
        record, owner = self.record, self._released
        if record is None or owner is None:
            return None
        return owner if owner.has_worked_since(record.actual_completion) else None

    def _worked_again(self, record: Record, owner: Attempt) -> Advice:
        """Advise on a released request whose work may have run since. Its record does not tell."""
        released = "Released" if record.settled_by is None else f"Released by {record.settled_by.by}"
        if owner.is_open:
            return Advice(
                "released",
                f"{released}. {_runs_again(owner)} Wait for its end. Then find out how often the work took "
                "effect. If you cancel the request, that is its answer, whatever the work has done.",
                (self._request("wait for request"),),
            )
        return Advice(
            "released",
            f"{released}. Since then its execution was redriven, and ended {owner.status}. A start runs the "
            "work again, so find out before whether the work took effect. If it did, complete the lock with "
            "the result.",
            (NextStep("complete lock", record.lock_token), self._request("start request")),
        )

    def _rate_limited(self, newest: Attempt, until: str) -> Advice:
        """Judge a request that the rate limit has refused. It holds no lock."""
        is_over = until <= times.now_text()
        attempt = f" in attempt {newest.number}" if newest.number > 1 else ""
        refused = (
            f"RateLimited until {until}: its user has had all requests of that window. Nothing "
            f"happened{attempt}."
        )
        if newest.is_open:
            return Advice(
                "rate limited",
                f"{refused} The request waits for the end of the window, and its message then comes again.",
                (self._request("wait for request"),),
            )
        then = "The window is over. Start it again." if is_over else "Start it again then."
        return Advice("rate limited", f"{refused} {then}", (self._request("start request"),))

    def _without_answer(
        self, record: Record, newest: Attempt, other_machine: str | None, *, is_another_id: bool
    ) -> Advice:
        """Judge a request whose lock token another request has, which does not answer for it."""
        place = f" of {record.locked_by}"
        look = NextStep("inspect lock", record.lock_token, machine=other_machine)
        if is_another_id:
            place, look = "", NextStep("show request", record.request_id, lock_token=self.record_key)
        whose = f"its lock token belongs to request {record.request_id!r}{place}"
        if newest.status == "SUCCEEDED":
            return Advice(
                "expired",
                f"Its execution succeeded, but its record is gone, and {whose} now. Look at that one.",
                (look,),
            )
        # The start that had its payload corrected leaves no execution: the record answers it at once.
        same = (
            "" if newest.error == DUPLICATE_REFUSED else "A start with that one's payload gets its answer. "
        )
        return Advice(
            "turned away",
            f"It was turned away with {newest.error}: {whose}. Look at that one. {same}If yours is another "
            "operation, start it with another id and another lock token.",
            (look,),
        )

    def _settle(self, how: str) -> Advice:
        dead = f"The execution that holds its lock {how}, and its outcome is not on record."
        start, work = self._request("start request", check_owner=True), self.work.open
        tried = self._tried_in_vain
        if work is not None and work.hidden is not None:
            steps = () if tried else (start,)
            start_it = "" if tried else " A start with the same payload settles it if the functions may look."
            return Advice("unsettled", f"{dead} {work.hidden}{start_it}", steps)
        if work is not None:
            return Advice(
                "unsettled",
                f"{dead} {work.in_words} Wait until then, and look again.",
                (self._request(work.look),),
            )
        if tried and self.lock is not None and self.work.child_arn is not None:
            return Advice(
                "unsettled",
                f"{dead} Attempt {self.attempts[-1].number} has tried to settle it, and has found it alive. "
                "If another start does so, too, the stack's functions may not look at the execution "
                f"{self.work.child_arn}, which it has started for its work: name that one's state machine in "
                "OtherStateMachines. Or find out whether the work took effect, and settle it by "
                "hand: these commands record first how that one ended.",
                (start, *(NextStep(one, self.lock.lock_token) for one in _BY_HAND)),
            )
        return Advice(
            "unsettled",
            f"{dead} To settle it, start it with the same payload, and let that check the owner.",
            (start,),
        )

    @property
    def _tried_in_vain(self) -> bool:
        """Whether the newest attempt has found a dead owner of the lock alive."""
        newest = self.attempts[-1]
        owner = next((one for one in self.attempts if one.execution_arn == self._owner_arn), self.holder)
        stopped = None if owner is None else owner.stopped
        return newest.error == _FOUND_ALIVE and stopped is not None and (newest.stopped or "") > stopped

    @property
    def _owner_arn(self) -> str | None:
        return None if self.lock is None else self.lock.locked_by

    def _request(self, action: Action, *, check_owner: bool = False) -> NextStep:
        return NextStep(action, self.request_id, lock_token=self.key, check_owner=check_owner)


def _runs_again(owner: Attempt) -> str:
    """That an execution runs whose record was settled before it was redriven."""
    return (
        f"Since then its execution was redriven, and is in {owner.place}. Nothing that it does changes "
        "the record."
    )


def _ended_without_lock(one: Attempt) -> str:
    """That an attempt worked without the lock, and what must be known before anything else is done."""
    return (
        f"Attempt {one.number} ({one.execution_arn}) was redriven, and ended {one.status} at {one.stopped}, "
        "without the lock. Find out first whether its work took effect."
    )


def _without_lock(one: Attempt) -> str:
    """That an attempt works without the lock, and the way out."""
    redriven = "was redriven, and " if one.redrive_count else ""
    return (
        f"Attempt {one.number} ({one.execution_arn}) {redriven}is in {one.place}. It does not hold the "
        "lock, and nothing that it does changes the record. Wait for its end, or stop it in Step Functions, "
        "and look again."
    )


def _answer(owner: Attempt) -> tuple[str, tuple[NextStep, ...]]:
    """The steps whose answers the owner waits for, and how to answer them. Both may be empty."""
    steps = owner.waits_for
    return " ".join(map(_wait, steps)), tuple(NextStep("answer step", one.awaiting_step_id) for one in steps)


def _wait(step: Waiting) -> str:
    """A sentence on a step that waits for its answer."""
    if step.expired:
        return f"The time for an answer to {step.step!r} was over at {step.expires_at}."
    until = f"It waits for an answer to {step.step!r} until {step.answer_by or step.expires_at}"
    if step.answer_by is not None and step.answer_by < step.expires_at:
        return f"{until}, and with heartbeats until {step.expires_at}."
    return f"{until}."


def _until(record: Record) -> str:
    if record.expires_at is None or record.expires_at == times.NEVER:
        return "for ever"
    return f"until {record.expires_at}"
