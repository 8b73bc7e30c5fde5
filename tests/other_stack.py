"""A new application that uses another stack's installation, made as docs/several-workflows.md says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.rules.documents import ROOT

BEGIN = "  # -- steponce itself"
"""The part of a new application's template that has the installation."""

_NAME_LINE = '        StateMachineName: !Sub "${AWS::StackName}-run-once"\n'
_ARN = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:"


def share(folder: Path, other: Path, machine: str) -> None:
    """
    Take the page's steps.

    Args:
        folder: The application that has the installation.
        other: A new application, which is to use it.
        machine: The name of the other application's state machine.
    """
    outputs, nested, given = _blocks()
    template = folder / "template.yaml"
    text, arn = template.read_text(), _ARN + machine
    known = re.search(r"OtherStateMachines: !Sub \"(.*)\"", text)
    if known:
        text = text.replace(known[1], f"{known[1]},{arn}")
    else:
        text = text.replace(_NAME_LINE, f'{_NAME_LINE}        OtherStateMachines: !Sub "{arn}"\n')
    assert arn in text
    template.write_text(text.rstrip("\n") + "\n" + outputs)

    template = other / "template.yaml"
    text = template.read_text()
    text = text[: text.index(BEGIN)] + nested
    prepares = "Outputs.PrepareRequestFunctionArn"
    text = text.replace(f"!GetAtt Steponce.{prepares}", f"!GetAtt Requests.{prepares}")
    text = text.replace("!GetAtt Steponce.Outputs.", "!Ref ").replace(
        "\nConditions:", f"{given}\nConditions:", 1
    )
    for condition in _conditions():
        text = re.sub(f"^  {condition}: .*\n", "", text, flags=re.MULTILINE)
    template.write_text(text + "\nOutputs:\n  Workflow: { Value: !GetAtt Requests.Outputs.Workflow }\n")


def _conditions() -> list[str]:
    """The names of those that the page tells to delete."""
    return re.findall(r"`(Has\w+)`", _section())


def _blocks() -> tuple[str, str, str]:
    """What the page tells to add: the first stack's Outputs; the other's nested stack, and its parameters."""
    outputs, nested, given = re.findall(r"```yaml\n(.*?)```", _section(), re.DOTALL)
    return outputs, nested, given


def _section() -> str:
    page = (ROOT / "docs" / "several-workflows.md").read_text(encoding="utf-8")
    return page.partition("\n## A workflow in another stack\n")[2].partition("\n## ")[0]


def names_of_parameters() -> list[str]:
    """The names of the other stack's parameters that are the first one's Outputs."""
    return re.findall(r"^  (\w+):", _blocks()[2], re.MULTILINE)
