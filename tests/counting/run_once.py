"""The workflow of this package, and what its tasks may be answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.counting.answers import HERE, Answer, Fails, Says
from tests.counting.drives import Drive, Subject

ASL = Path(__file__).parents[2] / "statemachines" / "run_once.asl.json"

FINAL = "CardDeclined"
REFUSED = "DynamoDB.ConditionalCheckFailedException"
OLD, LATER = "2020-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"
LIMITED = {"RateLimit": "2", "LimitRule": "2/day/customer", "UnlimitedField": "none"}
WINDOW = {
    "rule": LIMITED["LimitRule"],
    "key": "run-once#ann",
    "who": "ann",
    "windowStart": OLD,
    "member": "m",
    "ttl": "1",
    "resetsAt": OLD,
}
ENVELOPE: dict[str, Any] = {
    "requestId": "order-1",
    "lockToken": "t/order-1",
    "payload": {"amount": 500},
    "payloadHash": "hash",
    "requestedAt": OLD,
    "expectedCompletion": LATER,
    "expiresAt": LATER,
    "ttl": "1",
    "shard": "0",
    "callId": "us",
}

VALUES = {
    "WorkTimeoutSeconds": "60",
    "ConfirmationHeartbeatSeconds": "900",
    "ConfirmationExtensionSeconds": "2700",
    "RequestTimeout": "",
    "FinalErrors": FINAL,
    "RateLimit": "0",
    "LimitRule": "none",
    "UnlimitedField": "callId",
    "RefusedStatus": "NONE",
}


def record(**attributes: Any) -> Says:
    """A record of the table of locks, another execution's and open, but for these attributes."""
    whole = {
        "lockToken": "t/order-1",
        "status": "INPROGRESS",
        "callId": "another",
        "lockedBy": "arn:aws:states:us-east-1:123456789012:execution:other:order-0",
        "payloadHash": "hash",
        "attempt": 1,
        "expiresAt": LATER,
    } | attributes
    item = {
        name: {"N" if isinstance(value, int) else "S": str(value)}
        for name, value in whole.items()
        if value is not None
    }
    return Says({"Item": item})


PAID = {"status": "COMPLETED", "result": json.dumps({"paid": True})}
FOREIGN = {"callId": None, "lockedBy": None, "payloadHash": None, "attempt": None, "ttl": 1}
"""What a record of Powertools lacks and has."""


def failed(**failure: str) -> Says:
    """The record of a request that failed."""
    return record(status="FAILED", failure=json.dumps(failure))


def checked(verdict: str) -> Says:
    """What the function says of the lock's owner."""
    return Says({"verdict": verdict, "redriveCount": 0})


HELD = Says({"Attributes": {"attempt": {"N": "1"}}})

OURS = record(callId="us", lockedBy=HERE)
READ: list[Answer] = [
    Says({}),
    OURS,
    replace(OURS, redriven=True),
    record(status="UNKNOWN", **FOREIGN),
    record(**PAID, **FOREIGN),
    record(**FOREIGN),
    record(payloadHash="other"),
    record(**PAID),
    failed(Error="Declined", Cause="no funds"),
    failed(Error="Declined"),
    failed(),
    record(),
    record(status="UNKNOWN"),
    Fails("States.DataLimitExceeded"),
]
ANSWERS: dict[str, Sequence[Answer]] = {
    "AcquireLock": [HELD, Fails(REFUSED)],
    "DoWork": [
        Says({"chargeId": "ch_1"}),
        Fails("RetryLater"),
        Fails(FINAL),
        Fails("States.DataLimitExceeded"),
        Fails(),
        Fails("RetryLater", None),
        Fails(FINAL, None),
        Fails("States.Timeout", None),
        Fails(None, None),
    ],
    "AwaitConfirmation": [
        Says({"confirmed": True}),
        Fails(FINAL),
        Fails(FINAL, None),
        Fails("States.DataLimitExceeded"),
        Fails(),
        Fails("Refused", None),
        Fails(None, None),
    ],
    "ReadLock": READ,
    "CheckOwner": [checked(verdict) for verdict in ("settled", "unwritten", "idle", "alive")],
    "TakeOverLock": [HELD, Fails(REFUSED)],
    "ConfirmTakeover": [Says({"verdict": "gone"}), Says({"verdict": "alive"})],
}
PAYLOAD_ALONE = {"payload": {"amount": 500}}


@dataclass(frozen=True)
class Start:
    """
    What comes before the lock.

    Args:
        prepared: Whether the input is an envelope already; else PrepareRequest makes it.
        fields: What its envelopes have beside the others.
        values: Of the placeholders.
    """

    prepared: bool
    fields: Sequence[Mapping[str, Any]] = ({},)
    values: Mapping[str, str] = field(default_factory=dict)

    def drive(self, answers: Mapping[str, Sequence[Answer]] | None = None, **more: Any) -> Drive:
        """The machine with such envelopes, and with `more` in them."""
        envelopes = [{**ENVELOPE, **more, **fields} for fields in self.fields]
        given: Sequence[Any] = envelopes if self.prepared else [PAYLOAD_ALONE]
        prepares = {"PrepareRequest": [Says(envelope) for envelope in envelopes]}
        values = {**VALUES, **self.values}
        return Drive(ASL.read_text(), values, given, {**ANSWERS, **prepares, **(answers or {})})

    def drives(self) -> list[Drive]:
        """
        With work alone, with a confirmation, and where a duplicate is refused.

        Each with an envelope that has tried for the lock before, too: nothing keeps a caller from that.
        """
        refusing = replace(self, values={**self.values, "RefusedStatus": "COMPLETED"})
        return [
            drive
            for tried in ({}, {"tries": {"count": 1}})
            for drive in (
                self.drive(**tried),
                self.drive(CONFIRMED, payload={"confirm": True}, **tried),
                refusing.drive(REFUSED_DUPLICATES, **tried),
            )
        ] + [
            self.drive(CONTENDED, tries={"count": 5}),
            self.drive(CONTENDED, tries={"count": 4}),
            replace(self.drive(CONTENDED), rounds=4),
        ]


CONFIRMED: dict[str, Sequence[Answer]] = {
    "DoWork": ANSWERS["DoWork"][:1],
    "ReadLock": [Says({}), OURS, record()],
    "CheckOwner": [checked("settled"), checked("idle")],
    "ConfirmTakeover": [Says({"verdict": "gone"})],
}
REFUSED_DUPLICATES: dict[str, Sequence[Answer]] = {
    "AcquireLock": [Fails(REFUSED)],
    "ReadLock": [Says({}), record(), record(**PAID), record(**PAID, **FOREIGN)],
    "CheckOwner": [checked("settled"), checked("idle")],
    "TakeOverLock": [Fails(REFUSED)],
}
CONTENDED: dict[str, Sequence[Answer]] = {
    "AcquireLock": [Fails(REFUSED)],
    "ReadLock": [Says({}), record()],
    "CheckOwner": [checked("settled"), checked("idle")],
    "TakeOverLock": [Fails(REFUSED)],
}
DONE: dict[str, Sequence[Answer]] = {"AcquireLock": [HELD], "DoWork": ANSWERS["DoWork"][:1]}
NOT_COUNTED: dict[str, Sequence[Answer]] = {"CountRequest": [Fails(REFUSED)]}
OF_MESSAGES = [{"redelivery": {"tries": 1}}, {}]

ENVELOPES = Start(prepared=True)
BY_HAND = Start(prepared=False)
COUNTED_HERE = Start(prepared=True, fields=[{"limit": WINDOW}], values=LIMITED)
COUNTED_HERE_BY_HAND = replace(COUNTED_HERE, prepared=False)
COUNTED_BEFORE = Start(prepared=False, fields=[{"limit": {**WINDOW, "verdict": "counted"}}], values=LIMITED)
REFUSED_HERE = Start(prepared=True, fields=[{"limit": WINDOW, **one} for one in OF_MESSAGES], values=LIMITED)
REFUSED_HERE_BY_HAND = replace(REFUSED_HERE, prepared=False)
REFUSED_BEFORE = Start(
    prepared=False,
    fields=[{"limit": {**WINDOW, "verdict": "refused"}, **one} for one in OF_MESSAGES],
    values=LIMITED,
)

BEGINNINGS: dict[str, tuple[tuple[str, ...], list[Drive]]] = {
    "an envelope": (("AcquireLock",), ENVELOPES.drives()),
    "counted": (("CountRequest",), [*COUNTED_HERE.drives(), REFUSED_HERE.drive(NOT_COUNTED)]),
    "by hand": (
        ("PrepareRequest", "IsRequestCounted", "AcquireLock"),
        [*BY_HAND.drives(), COUNTED_BEFORE.drive(DONE)],
    ),
    "by hand, counted": (
        ("PrepareRequest", "IsRequestCounted", "CountRequest"),
        [*COUNTED_HERE_BY_HAND.drives(), REFUSED_HERE_BY_HAND.drive(NOT_COUNTED)],
    ),
    "by hand, refused": (("PrepareRequest", "IsRequestCounted", "IsCallerWaiting"), [REFUSED_BEFORE.drive()]),
}
WHOLE = "an envelope"
SUBJECTS = [
    Subject(
        f"run_once, {name}",
        drives,
        begins=("IsRequestPrepared", *beginning),
        usual=name == WHOLE,
        is_small=False,
        ends_like=None if name == WHOLE else f"run_once, {WHOLE}",
    )
    for name, (beginning, drives) in BEGINNINGS.items()
]
