"""Those who ask for work, and the operators who settle what waits for a person."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

from botocore.exceptions import ClientError

from steponce import Receipt
from steponce.locks.table import Locks
from steponce.operator.cancel import cancel
from steponce.operator.cancellable import find_running
from steponce.operator.locks import Operator
from steponce.operator.records import open_locks
from steponce.workflow import FAILED, INPROGRESS
from tests.simulation.faults import PASSING
from tests.simulation.installation import Installation
from tests.simulation.machine import MACHINE
from tests.simulation.requests import Ask, Order, has
from tests.simulation.work import WORK_TIMEOUT_SECONDS
from tests.unit.triggers.world import QUEUE


class Askers:
    """
    Callers with a client, senders of messages, and people who start an execution by hand.

    Args:
        here: Where they ask.
        asks: All that is asked.
    """

    def __init__(self, here: Installation, asks: list[Ask]) -> None:
        self._here, self._asks = here, asks
        self._ways = {"caller": self._call, "message": self._send, "hand": self._start_by_hand}

    def plan(self, order: Order, request_id: str, after: float, *, more_messages: bool = False) -> None:
        """
        Let somebody ask for this work, after so many seconds. A caller's clock may be wrong.

        Those who ask late, when records expire, send more messages, and so do all if letters are put back.
        """
        random = self._here.random
        payload = order.payloads[random.random() > 0.9]
        kind = random.choice(("caller", "message", "message" if more_messages else "caller", "hand"))
        ask = Ask(request_id, order, payload, is_message=kind == "message")
        self._asks.append(ask)
        wrong_by = random.choice((0, 0, 0, random.uniform(-200, 200)))
        self._here.turns.spawn(
            f"{kind} {request_id}",
            lambda: self.ask(kind, ask),
            after=after + random.uniform(0, 20),
            clock_error=timedelta(seconds=wrong_by if kind == "caller" else 0),
        )

    def ask(self, kind: str, ask: Ask) -> None:
        """Ask as a caller, by a message or by hand."""
        ask.asked = self._here.turns.now
        self._ways[kind](ask)

    def _call(self, ask: Ask) -> None:
        for _ in range(self._here.random.randint(1, 4)):
            try:
                is_running = self._start(ask)
                if is_running and self._here.random.random() < 0.5:
                    self._wait(ask)
            except PASSING as error:
                self._hear(ask, error, repr(error))
            self._here.turns.take(self._here.random.choice((0, 1, 30, 400)))

    def _start(self, ask: Ask) -> bool:
        """Start the request. Returns whether it runs."""
        token, look = ask.order.token, self._here.random.random() < 0.2
        receipt = self._here.client.start(ask.request_id, ask.payload, lock_token=token, check_owner=look)
        self._hear(ask, receipt, f"{receipt.status} {receipt.error or ''} duplicate={receipt.duplicate}")
        return receipt.status == "RUNNING"

    def _wait(self, ask: Ask) -> None:
        seconds, token = self._here.random.uniform(1, 200), ask.order.token
        client, payload = self._here.client, ask.payload
        receipt = client.wait(ask.request_id, timeout_seconds=seconds, lock_token=token, payload=payload)
        self._hear(ask, receipt, f"after waiting {receipt.status} {receipt.error or ''}")

    def _send(self, ask: Ask) -> None:
        body = {"id": ask.request_id, "token": ask.order.token, "payload": ask.payload}
        self._here.queue.send_message(QueueUrl=QUEUE, MessageBody=json.dumps(body), MessageAttributes={})

    def _start_by_hand(self, ask: Ask) -> None:
        given = {"payload": ask.payload, "lockToken": ask.order.token}
        try:
            self._here.machine.start_execution(
                stateMachineArn=MACHINE, name=ask.request_id, input=json.dumps(given)
            )
        except ClientError:
            self._asks.remove(ask)

    def _hear(self, ask: Ask, answer: Receipt | Exception, told: str) -> None:
        told = re.sub(r"\d{4}-\d\d-\d\dT", "", told)  # each run of a seed has days of its own
        self._here.turns.note(f"hears {told}")
        ask.answers.append(answer)


class Operators:
    """
    Operators who release, retry, complete and cancel what they find, and think for a while at the prompt.

    Args:
        here: Where they work.
        locks: The lock table.
        orders: All work, by lock token.
        asks: All that is asked.
    """

    def __init__(
        self, here: Installation, locks: Locks, orders: Mapping[str, Order], asks: Sequence[Ask]
    ) -> None:
        self._here, self._locks, self._orders, self._asks = here, locks, orders, asks

    def operate(self) -> None:
        """One operator, with some commands."""
        machine = self._here.client.machine
        operator = Operator(machine, by="ops", work_timeout_seconds=WORK_TIMEOUT_SECONDS)
        for _ in range(self._here.random.randint(1, 4)):
            try:
                if self._here.random.random() < 0.3:
                    self._cancel(self._here.random.choice(self._asks))
                else:
                    for lock in list(open_locks(machine, FAILED, INPROGRESS)):
                        self._settle(operator, lock.lock_token)
            except PASSING as error:
                self._here.turns.note(f"is told {error!r}"[:200])
            self._here.turns.take(self._here.random.choice((5, 60, 600)))

    def _settle(self, operator: Operator, token: str) -> None:
        lock = self._locks.get(token)
        if lock is None or lock.status not in (FAILED, INPROGRESS) or lock.ttl is not None:
            return
        action = self._here.random.choice(("release", "retry", "complete"))
        self._here.turns.note(f"prepares to {action} {token}")
        lock, order = operator.prepare(action, lock), self._orders[token]
        given = operator.payload_of(lock) if action == "retry" else {}
        self._here.turns.take(self._here.random.choice((0, 5, 900)))  # at the prompt
        self._here.turns.note(f"says yes to {action}")
        if action == "complete":
            payload = next(one for one in order.payloads if has(lock, one))
            result = {"payload": payload, "by": "ops"}
            order.settled.append(result)
            operator.complete(lock, json.dumps(result), "looked it up")
            return
        order.permissions += 1
        if action == "release":
            operator.release(lock, "nothing happened")
        else:
            operator.retry(lock, given, "nothing happened")

    def _cancel(self, ask: Ask) -> None:
        self._here.turns.note(f"cancels {ask.request_id}")
        machine = self._here.client.machine
        running = find_running(machine, ask.request_id)
        for one in self._asks:
            if one.order is ask.order:
                one.was_cancelled = True
        cancel(machine, running, by="ops", why="not wanted")
