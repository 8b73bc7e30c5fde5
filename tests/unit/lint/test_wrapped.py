"""What `steponce wrap` makes of a machine that is right keeps every rule about locks."""

from __future__ import annotations

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


def test_a_machine_that_the_workflow_starts_has_no_findings():
    """It is an execution with a name, so it may be started again."""
    assert () == lint(wrap_around(RIGHT[0].read_text()).definition).findings
