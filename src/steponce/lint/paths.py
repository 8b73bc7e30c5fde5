"""Rules for the paths that a state reads and passes on."""

from __future__ import annotations

import re

from steponce.lint.asl import TEMPLATES
from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Machine, leaves
from steponce.lint.missing_reads import OF_LOCKS, Expectations, missing_reads
from steponce.lint.protocol import states_of_work, takes_lock
from steponce.lint.rule import Rules

DATA = Rules("general")

_STEPS = r"(?:[^\s\[\]$]|(?<=\.)\$(?=\w)|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*"
_READS = re.compile(
    rf"\$\.(?=[A-Za-z_*\[]){_STEPS}|\$\$\.(?=[A-Z]){_STEPS}|\$(?=\[){_STEPS}|States\.[A-Z]\w*\(.*\)",
    re.DOTALL,
)


@DATA.rule("path-not-marked", "warning", reads_paths=True)
def path_not_marked(machine: Machine) -> Complaints:
    """
    A path stands under a key that does not end with `.$`, so it is passed on as text.

    `"orderId": "$.order.id"` passes the text of the path; `"orderId.$"` passes its value. "For key-value
    pairs where the value is selected using a path, the key name must end in `.$`."

    Source: [Parameters](https://docs.aws.amazon.com/step-functions/latest/dg/input-output-inputpath-params.html).
    """
    for state in machine.all_states():
        for key in () if state.is_jsonata else TEMPLATES:
            for field, value in leaves(state.body.get(key)):
                if isinstance(value, str) and not field.endswith(".$") and _READS.fullmatch(value):
                    text = f"{key} passes {value!r} on as text. Call the key {field + '.$'!r} to read it."
                    yield Complaint(state.name, text)


@DATA.rule("unguarded-path", "warning", reads_paths=True)
def unguarded_path(machine: Machine) -> Complaints:
    """
    A state reads a path that may be missing there.

    The execution fails with `States.Runtime`, which no Retry and no Catch matches. A path counts as missing
    only where the definition shows it:

    - the machine tests for it with `IsPresent`, and also reads it where that test has not been made;
    - `dynamodb:getItem` finds nothing, so there is no `Item`;
    - a Catch without `ResultPath` has replaced the input by `Error` and `Cause`;
    - the result of a call has replaced the input: that of `lambda:invoke` is in `Payload`;
    - `Parameters`, `ResultSelector` or `Result` made the object without this field.

    Test for it with `IsPresent` in a Choice before, or keep the input with a `ResultPath`. The rule does not
    check the execution's own input, since a definition does not show its fields. Of a machine that takes a
    lock, it checks the states of the work. For those around the work, `unproven-path` is stricter.

    Source: [Handling errors](https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html),
    `States.Runtime`.
    """
    found = missing_reads(machine, frozenset(), Expectations())
    if takes_lock(machine):  # around the work, unproven-path is stricter
        work = states_of_work(machine)
        found = (one for one in missing_reads(machine, frozenset(), OF_LOCKS) if one.state in work)
    for state, path in found:
        advice = "Test for it with IsPresent before, or keep the input with a ResultPath."
        yield Complaint(state, f"it reads {path}, which may be missing there. {advice}")
