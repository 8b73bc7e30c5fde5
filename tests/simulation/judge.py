"""What must be true at the end of every schedule."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from steponce import Receipt
from steponce.errors import SteponceError
from steponce.limits.record import member_of
from steponce.locks.record import Lock
from steponce.workflow import ANSWERING_STATES, COMPLETED, INPROGRESS, RELEASED
from tests.simulation.installation import End
from tests.simulation.queue import Message
from tests.simulation.requests import Ask, Order, answers
from tests.simulation.schedule import Schedule


def judge(schedule: Schedule) -> list[str]:
    """Every broken promise, in words."""
    return list(_complaints(schedule))


def _complaints(schedule: Schedule) -> Iterator[str]:
    for name, error in [*schedule.turns.crashes, *schedule.installation.surprises]:
        yield f"crash: {name}: {error!r}"
    counted = schedule.counted()
    if any(len(members) > schedule.rules.rate_limit for members in counted):
        yield f"too many: a window has counted {counted}"
    for order in schedule.orders.values():
        if (
            order.effects
            and schedule.rules.rate_limit
            and member_of(order.token) not in set().union(*counted)
        ):
            yield f"too many: {order.token} was not counted"
        lock = schedule.record(order.token)
        yield from _about_effects(schedule, order)
        yield from _about_record(schedule, order, lock)
        yield from _about_answers(schedule, order, lock)
        for ask in (one for one in schedule.asks if one.order is order and one.is_message):
            yield from _about_message(schedule, ask, lock)
            yield from _about_repetitions(schedule, ask)


def _about_effects(schedule: Schedule, order: Order) -> Iterator[str]:
    """Work runs once, and again only if a person allowed it, or the parameter did."""
    attempts = [effect.attempt for effect in order.effects]
    if attempts != sorted(attempts) and not schedule.records_expire:  # a deleted record counts anew
        yield f"stale: an old attempt of {order.token} acted after a new one: {attempts}"
    if schedule.when_outcome_unknown == "hold" and len(attempts) > 1 + _allowed(order):
        yield f"twice: {order.token} had {len(attempts)} effects, and {_allowed(order)} were allowed"
    if len({effect[:2] for effect in order.effects}) < len(attempts):
        yield f"twice: one attempt of {order.token} acted twice: {attempts}"


def _allowed(order: Order) -> int:
    return order.permissions + order.renewals


def _about_record(schedule: Schedule, order: Order, lock: Lock | None) -> Iterator[str]:
    """Nothing stays in progress, but for what the next request takes over. What waits can be found."""
    if lock is None:
        if order.effects and not schedule.records_expire:
            yield f"lost: {order.token} had an effect, and has no record"
        return
    holds = schedule.when_outcome_unknown == "hold"
    if holds and lock.status == INPROGRESS:
        yield f"held unseen: {order.token} stays in progress, by {lock.locked_by}"
    if (lock.open_status is None) != (lock.ttl is not None):
        yield f"held unseen: {order.token} is {lock.status}, {lock.open_status}, ttl {lock.ttl}"
    if lock.status == COMPLETED and json.loads(lock.result or "null") not in [
        *schedule.results(order),
        *order.settled,
    ]:
        yield f"wrong answer: the record of {order.token} has {lock.result}"
    if holds and lock.status == RELEASED and len(order.effects) > _allowed(order):
        yield f"twice: {order.token} is free, and has had an effect"


def _about_answers(schedule: Schedule, order: Order, lock: Lock | None) -> Iterator[str]:
    """Everyone gets the same answer, and nobody gets that of another payload."""
    completed, final = [], schedule.when_outcome_unknown == "hold" and not _allowed(order)
    for ask in (one for one in schedule.asks if one.order is order):
        last = schedule.status(ask)
        for answer in [*ask.answers, last]:
            if not isinstance(answer, Receipt) or answer.status != "COMPLETED":
                continue
            completed.append(answer.result)
            if answer.result.get("payload") != ask.payload and answer is not last:
                yield f"wrong answer: {ask.request_id} with {ask.payload} got {answer.result}"
        yield from _about_last_answer(schedule, ask, last, lock)
    known = {json.dumps(result, sort_keys=True) for result in completed}
    if final and len(known) > 1:
        yield f"wrong answer: {order.token} has several results: {sorted(known)}"
    for result in completed:
        if result not in [*schedule.results(order), *order.settled]:
            yield f"wrong answer: {order.token} never had the result {result}"


def _about_last_answer(
    schedule: Schedule, ask: Ask, last: Receipt | SteponceError, lock: Lock | None
) -> Iterator[str]:
    """In the end `status` tells what the record says."""
    is_forgotten = schedule.records_expire or schedule.forgetting.machine_is_new
    if not isinstance(last, Receipt):
        if any(isinstance(one, Receipt) for one in ask.answers) and not is_forgotten:
            yield f"lost: {ask.request_id} was started, and now it is {last!r}"
        return
    if last.status == "RUNNING" and (lock is None or lock.status != INPROGRESS):
        yield f"wrong answer: {ask.request_id} runs, and nothing does"
    if lock is not None and last.status == COMPLETED and lock.status != COMPLETED:
        yield f"wrong answer: {ask.request_id} is completed, and its record {lock.status}"


def _about_message(schedule: Schedule, ask: Ask, lock: Lock | None) -> Iterator[str]:
    """
    A message is answered, or waits in the dead-letter queue, or was cancelled.

    If a letter of it was put back, it was answered since.
    """
    queue = schedule.installation.queue
    if queue.waiting:
        yield f"lost: messages stay in the queue: {queue.waiting}"
    if any(_asks_for(letter, ask) for letter in queue.dead) or ask.was_cancelled or answers(lock, ask):
        return
    put_back = [at for letter, at in queue.put_back if _asks_for(letter, ask)]
    if not any(at >= max(put_back, default=at) for at in _times_of_answers(schedule, ask)):
        since = ", since its letter was put back" if put_back else ""
        yield f"lost: the message of {ask.request_id} has no answer{since}, and is nowhere"


def _asks_for(letter: Message, ask: Ask) -> bool:
    return letter.asks_for == (ask.request_id, ask.payload)


def _times_of_answers(schedule: Schedule, ask: Ask) -> Iterator[datetime]:
    """
    When it had an answer. A person may have released the lock since, or its record expired.

    Its execution may have ended without an answer, and another request's was on record when its end was
    examined.
    """
    yield from _answered(schedule, ask)
    for given, lock, at in schedule.installation.looked_up:
        if _is_of(given, ask) and answers(lock, ask):
            yield at
    if ask.was_answered is not None:
        yield ask.was_answered


def _about_repetitions(schedule: Schedule, ask: Ask) -> Iterator[str]:
    """
    A message that was answered does not run again when it is resent, though its answer has expired.

    If it is delivered once more as it was first sent, it does: a record must outlive redelivery by a queue.
    A function that its execution has abandoned may take effect after that execution's end.
    """
    tries = {end: int(end.given["redelivery"]["tries"]) for end in _ends(schedule, ask)}
    resent = {end.given["callId"] for end in tries if tries[end] > 0}
    sent = [one.asked for one in schedule.asks if _is_same_message(one, ask) and one.asked is not None]
    if ask.order.permissions:
        return
    for effect in (one for one in ask.order.effects if one.call_id in resent):
        firsts = [end.at for end in tries if tries[end] == 0 and end.at < effect.at]
        began = max([*firsts, *(at for at in sent if at < effect.at)], default=effect.at)
        if firsts and any(
            began <= answered < effect.at for answered in _answered(schedule, ask, effect.call_id)
        ):
            yield f"twice: the message of {ask.request_id} was answered, and came again"


def _is_same_message(one: Ask, other: Ask) -> bool:
    return one.is_message and (one.request_id, one.payload) == (other.request_id, other.payload)


def _answered(schedule: Schedule, ask: Ask, besides: str = "") -> Iterator[datetime]:
    """When a message was answered, the end of the execution with the callId `besides` left out."""
    for one in schedule.installation.deliveries:
        told = (one.outcome.request_id, one.payload, one.outcome.disposition)
        if told == (ask.request_id, ask.payload, "replayed") and answers(one.lock, ask):
            yield one.at
    for end in _ends(schedule, ask):
        is_answer = end.status == "SUCCEEDED" or not ANSWERING_STATES.isdisjoint(end.states)
        if is_answer and end.given["callId"] != besides:
            yield end.at


def _ends(schedule: Schedule, ask: Ask) -> Iterator[End]:
    """The ends of the executions that a message has started."""
    for end in schedule.installation.ends:
        if _is_of(end.given, ask):
            yield end


def _is_of(given: Mapping[str, Any], ask: Ask) -> bool:
    """Whether an execution with this input carried this message."""
    asked = (given.get("requestId"), given.get("payload"))
    return asked == (ask.request_id, ask.payload) and "redelivery" in given
