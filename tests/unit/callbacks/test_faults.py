"""A call that dies, loses its answer or is repeated, at each of its calls to AWS."""

from __future__ import annotations

from itertools import count, product
from typing import Any

import pytest

from tests import covering
from tests.unit.callbacks.happenings import FAULTS, MEANWHILE
from tests.unit.callbacks.scene import BEAT, NO, YES, FaultAt, waiting

pytestmark = pytest.mark.usefixtures("day_after")


BEFORE = ["nothing", "a time-out, and a retry", "another raw answer", "a stop"]


def stumble_everywhere(fault: str, before: str, **options: Any) -> None:
    """One call meets a fault, something happens, and another call finds what the first one left."""
    for first, meanwhile, after in product((YES, NO, BEAT), MEANWHILE, (YES, NO)):
        for position in count(1):
            scene, gate = waiting(**options), FaultAt(position, fault)
            for happening in MEANWHILE[before]:
                happening(scene)
            verdict = scene.resolve(first, gate)
            assert fault != "repeat" or before != "nothing" or verdict == "accepted"
            for happening in MEANWHILE[meanwhile]:
                happening(scene)
            scene.resolve(after)
            scene.settle()
            if gate.calls < position:
                break


@covering.rows(
    "before,fault",
    {f"{before}-{fault}": (before, fault) for before, fault in product(BEFORE, FAULTS)},
    [lambda row: row[0], lambda row: row[1]],
)
def test_a_resolver_may_fail_at_every_call(before: str, fault: str):
    """Died, cut off, or repeated by boto3, before or after a call took effect: the next call mends it."""
    stumble_everywhere(fault, before)
