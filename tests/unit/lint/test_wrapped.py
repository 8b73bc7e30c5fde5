"""What `steponce wrap` makes of a machine that is right keeps every rule about locks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steponce.lint import lint
from steponce.wrap import wrap_around, wrap_inline

from .planted import RIGHT

IN_A_DISTRIBUTED_MAP = "map_s3_objects"
"""Can be wrapped only around."""

INLINE = [path for path in RIGHT if not path.name.startswith(IN_A_DISTRIBUTED_MAP)]


@pytest.mark.parametrize("path", INLINE, ids=lambda path: path.name.partition(".")[0])
def test_a_machine_inside_of_the_workflow_has_no_findings(path: Path):
    """Its states may be any; those around them are the workflow's."""
    assert () == lint(wrap_inline(path.read_text()).definition).findings


def test_a_warning_in_your_own_states_stays_a_warning():
    """A wrap does not change these states, and they are the work."""
    found = {"Type": "Task", "Resource": "arn:aws:states:::dynamodb:getItem", "ResultPath": "$.found"}
    key = {"TableName": "t", "Key": {"id": {"S.$": "$.id"}}, "ConsistentRead": True}
    use = {"Type": "Pass", "Parameters": {"name.$": "$.found.Item.name.S"}, "End": True}
    own = {"StartAt": "Look", "States": {"Look": {**found, "Parameters": key, "Next": "Use"}, "Use": use}}
    before, after = (lint(one).findings for one in (own, wrap_inline(json.dumps(own)).definition))
    assert [("unguarded-path", "warning", "Use")] == [(one.rule, one.severity, one.state) for one in before]
    assert [one.message for one in before] == [one.message for one in after]
    assert [("unguarded-path", "warning", "Use")] == [(one.rule, one.severity, one.state) for one in after]


def test_a_machine_that_the_workflow_starts_has_no_findings():
    """It is an execution with a name, so it may be started again."""
    assert () == lint(wrap_around(RIGHT[0].read_text()).definition).findings
