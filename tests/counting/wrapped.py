"""The machines of tests/machines, as they are and wrapped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from steponce.wrap import source, wrap_around, wrap_inline
from tests.counting import run_once
from tests.counting.answers import TOO_LARGE, Answer, Fails, Says
from tests.counting.drives import Drive, Subject
from tests.machines import Case
from tests.machines.around import AROUND, AS_IT_IS
from tests.machines.inline import INLINE

FINAL = "OutOfStock"
ANY_ERROR: list[Answer] = [Fails("RetryLater"), Fails(FINAL), Fails(TOO_LARGE), Fails()]
ANY_ANSWER: list[Answer] = [Fails("Rejected"), *ANY_ERROR, Fails("Odd", None), Fails(None, None)]
TOKEN: list[Answer] = [Says({"by": "ann"}), *ANY_ANSWER]
OUTPUTS: dict[str, dict[str, Sequence[Answer]]] = {
    "saga": {"BookFlight": [Says({}), *ANY_ERROR]},
    "approval": {"Ask": TOKEN},
    "approval in a map": {"Wait": TOKEN},
}
INPUTS = {
    "map": [{"items": ["a"]}],
    "iterator": [{"items": ["a"]}],
    "distributed": [{"items": ["a"]}],
    "nested": [{"orders": [{"bad": False}]}, {"orders": [{"bad": True}]}],
    "continued": [{"last": True}, {"last": False}],
    "absent path": [{}, {"absent": 1}],
}


def inputs_of(case: Case, inputs: Sequence[Any] = ()) -> list[Any]:
    """These, or those of the case; with an id each."""
    return [{**one, "id": "1"} for one in inputs or INPUTS.get(case.name, case.inputs or [{}])]


def original(case: Case, *inputs: Any) -> Drive:
    """The machine as it is."""
    return Drive(json.dumps(case.definition), {}, inputs_of(case, inputs), OUTPUTS.get(case.name, {}))


def wrapped(case: Case, *inputs: Any) -> Drive:
    """The machine in the workflow, or started by it; the lock is free."""
    given = [{**run_once.ENVELOPE, "payload": one} for one in inputs_of(case, inputs)]
    answers = {"AcquireLock": [run_once.HELD], **OUTPUTS.get(case.name, {})}
    values = {**run_once.VALUES, "FinalErrors": FINAL}
    return Drive(partial(wrapped_text, case), values, given, answers)


def wrapped_text(case: Case) -> str:
    """What `steponce wrap` writes."""
    text = json.dumps(case.definition)
    made = wrap_inline(text) if case.form == "inline" else wrap_around(text)
    return source.write(made.definition)


FREE = ("IsRequestPrepared", "AcquireLock", "DoWork")
"""What the paths begin with that are driven; those that find the lock held are run_once's own."""

NAMELESS = ("context", "fail without a name")
"""They have a Fail without a name, and AWS does not say what the workflow gets of it."""

USUAL = ("parallel", "poller", "approval", "nested", "distributed")
USUAL_WRAPPED = ("hello",)
CASES = [*INLINE, *AROUND]
ORIGINALS = [
    Subject(case.name, [original(case)], usual=case.name in USUAL) for case in CASES if case is not AS_IT_IS
]
WRAPPED = [
    Subject(
        f"{case.name}, wrapped",
        [
            wrapped(case),
            replace(wrapped(case), says_why=False),
            *([replace(wrapped(case), says_why=False, no_name="")] if case.name in NAMELESS else []),
        ],
        begins=FREE,
        usual=case.name in USUAL_WRAPPED,
        is_small=False,
    )
    for case in CASES
]
ITEMS = {
    "map": {"items": ["a", "b", "c"]},
    "iterator": {"items": ["a", "b", "c"]},
    "distributed": {"items": ["a", "b", "c"]},
    "approval in a map": {"items": ["a", "b", "c"]},
    "nested": {"orders": [{"bad": False}] * 3},
}
THREE_ITEMS = [
    Subject(
        f"{case.name}, {form}, three items",
        [replace(make(case, ITEMS[case.name]), items=3, may_fail=False)],
        begins=begins,
        usual=form == "as it is" and case.name in USUAL,
        is_partial=True,
    )
    for case in CASES
    if case.name in ITEMS
    for form, make, begins in [("as it is", original, ()), ("wrapped", wrapped, FREE)]
    if form == "as it is" or case.form == "inline"
]

SUBJECTS = [*ORIGINALS, *WRAPPED, *THREE_ITEMS]
