"""The machines that come with this package, beside its workflow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steponce.scaffold import workflow
from tests.counting import run_once
from tests.counting.answers import Answer, Says
from tests.counting.drives import Drive, Subject

EXAMPLES = Path(__file__).parents[2] / "examples"

CHANGE: dict[str, Any] = {
    "id": "1",
    "detail-type": "Customer Changed",
    "detail": {"customerId": "c", "version": 1, "name": "Ann", "email": "ann@example.com"},
}
DELETION = {**CHANGE, "detail-type": "Customer Deleted", "detail": {**CHANGE["detail"], "forgetAt": 1}}
KEEP_CUSTOMER = Subject(
    "customer_record/keep_customer",
    [
        Drive(
            (EXAMPLES / "customer_record/statemachines/keep_customer.asl.json").read_text(),
            inputs=[CHANGE, DELETION, {}, {**CHANGE, "detail-type": "Customer Moved"}],
        )
    ],
)


def with_work(example: str) -> str:
    """The workflow with one of the examples' states for its work."""
    definition = json.loads(run_once.ASL.read_text())
    definition["States"] |= json.loads((EXAMPLES / f"states/{example}.asl.json").read_text())
    for name in ("IsConfirmationWanted", "AwaitConfirmation", "RecordFinalError"):
        del definition["States"][name]  # nothing leads there now
    return json.dumps(definition)


def fresh(text: str, payloads: Sequence[Any] = ({},), **answers: Sequence[Answer]) -> list[Drive]:
    """A workflow whose lock is free; the paths that find it held are run_once's own."""
    given = [{**run_once.ENVELOPE, "payload": payload} for payload in payloads]
    shared = {**run_once.ANSWERS, "AcquireLock": [run_once.HELD]}
    drive = Drive(text, run_once.VALUES, given, {**shared, **answers})
    return [drive, replace(drive, says_why=False)]


FREE = ("IsRequestPrepared", "AcquireLock", "DoWork")
SUBJECTS = [
    KEEP_CUSTOMER,
    *(
        Subject(f"states/{example}", fresh(with_work(example), DoWork=[Says({})]), begins=FREE, usual=False)
        for example in ("start_machine", "update_if_mine")
    ),
    Subject("a new application", fresh(workflow.definition(callback=False)), begins=FREE, usual=False),
    Subject(
        "a new application with a callback",
        fresh(workflow.definition(callback=True), [{}, {"confirm": True}]),
        begins=FREE,
        usual=False,
    ),
]
