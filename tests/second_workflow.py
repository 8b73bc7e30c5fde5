"""A new application with a second workflow on its installation, made as docs/several-workflows.md says."""

from __future__ import annotations

import re
from pathlib import Path

from steponce.scaffold import application
from steponce.scaffold.application import Choices
from tests.rules.documents import ROOT

COPIED = {
    "DoWorkFunction": "RefundFunction",
    "RunOnceStateMachine": "RefundsStateMachine",
    "RunOnceRole": "RefundsRole",
    "PolicyName: RunOnce": "PolicyName: Refunds",
    "StateLogs": "RefundsLogs",
    "-run-once": "-refunds",
    "functions/do_work": "functions/refund",
    "Steponce.Outputs.PrepareRequestFunctionArn": "RefundsRequests.Outputs.PrepareRequestFunctionArn",
}
"""What the copies of the workflow and its work have in the place of what."""

_BEGIN, _END = "  # -- Your work ", "  # -- steponce itself"


def write(folder: Path, name: str, work: str, *, handed: str = "") -> Path:
    """
    Write the application.

    Args:
        folder: Where to; it does not exist yet.
        name: Of the stack.
        work: The code of the second workflow's function.
        handed: Lines of parameters more for the second workflow's stack.

    Returns:
        Its template.
    """
    application.init(folder, Choices(name))
    (folder / "functions" / "refund").mkdir()
    (folder / "functions" / "refund" / "app.py").write_text(work)
    stack, others, output = _in_the_document()
    template = folder / "template.yaml"
    text = template.read_text()
    copies = text[text.index(_BEGIN) : text.index(_END)]
    for old, new in COPIED.items():
        assert old in copies
        copies = copies.replace(old, new)
    # The placeholder of the work in the definition keeps its name; what stands in its place is another.
    copies = copies.replace("RefundFunctionArn:", "DoWorkFunctionArn:")
    text = text.replace(_END, f"{copies}{stack}{handed}\n{_END}")
    name_line = '        StateMachineName: !Sub "${AWS::StackName}-run-once"\n'
    assert 1 == text.count(name_line)
    text = text.replace(name_line, name_line + others)
    template.write_text(text.rstrip("\n") + "\n" + output)
    return template


def _in_the_document() -> tuple[str, str, str]:
    """What the page tells to add: the nested stack, a parameter of the installation, and an Output."""
    page = (ROOT / "docs" / "several-workflows.md").read_text(encoding="utf-8")
    section = page.partition("\n## A second workflow\n")[2].partition("\n## ")[0]
    stack, others, output = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    return stack, others, output
