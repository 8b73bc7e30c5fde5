"""
Which tool finds which planted fault; `python -m tests.unit.lint.tools` runs them all and stores it.

asl-validator is npm's, from tests/real.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from statelint.linter import Linter

from steponce.lint import lint
from tests.rules.documents import ROOT

from .planted import FAULTS, RIGHT, SPOILT

PLACE = Path(__file__).with_name("found.json")
VALIDATOR = ROOT / "tests" / "real" / "node_modules" / ".bin" / "asl-validator"

Complaints = dict[str, list[str]]
"""By the name of a machine, what a tool says of it."""


class Outcome(TypedDict):
    """The faults with the tools that find them; and by tool, the machines that are right and called wrong."""

    faults: list[dict[str, Any]]
    alarms: dict[str, list[str]]


def stored() -> Outcome:
    """What the tools found when they last ran."""
    outcome: Outcome = json.loads(PLACE.read_text())
    return outcome


def definitions() -> dict[str, Any]:
    """All machines that are right, by their names, and all with a fault, by their numbers."""
    right = {path.name.partition(".")[0]: json.loads(path.read_text()) for path in [*RIGHT, *SPOILT]}
    return right | {str(place): fault.planted() for place, fault in enumerate(FAULTS)}


def by_statelint(machines: Mapping[str, Any]) -> Complaints:
    """The linter of the language's specification, in Python; as with --ignore=FLOAT."""
    said = {name: [str(text) for text in Linter.validate(machine)] for name, machine in machines.items()}
    return {name: [text for text in texts if "should be a Float" not in text] for name, texts in said.items()}


def by_asl_validator(machines: Mapping[str, Any]) -> Complaints:
    """npm's linter, which the Serverless Framework uses."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.asl.json" for name in machines}
        for name, path in paths.items():
            path.write_text(json.dumps(machines[name]))
        command = [str(VALIDATOR), *(part for path in paths.values() for part in ("--json-path", str(path)))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    said: Complaints = {name: [] for name in machines}
    current = ""
    for line in (done.stdout + done.stderr).splitlines():
        current = next((name for name, path in paths.items() if str(path) in line), current)
        if current and line.strip() and not line.rstrip().endswith(" is valid"):
            said[current].append(line.replace(str(paths[current]), "").strip())
    return said


def by_cfn_lint(machines: Mapping[str, Any]) -> Complaints:
    """What `sam validate --lint` runs, with each machine in a template of CloudFormation."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {str(Path(folder) / f"{name}.json"): name for name in machines}
        for path, name in paths.items():
            Path(path).write_text(json.dumps(_template(machines[name])))
        program = Path(sys.executable).with_name("cfn-lint")
        command = [str(program), "--format", "json", "--regions", "us-east-1", "--", *paths]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    said: Complaints = {name: [] for name in machines}
    for match in json.loads(done.stdout):
        said[paths[match["Filename"]]].append(match["Rule"]["Id"] + " " + match["Message"])
    return said


def _template(machine: Any) -> dict[str, Any]:
    role = "arn:aws:iam::123456789012:role/any"
    properties = {"RoleArn": role, "Definition": machine}
    return {"Resources": {"Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}}}


def by_steponce(machines: Mapping[str, Any]) -> Complaints:
    """Our own, warnings too."""
    return {name: [one.message for one in lint(machine).findings] for name, machine in machines.items()}


TOOLS: dict[str, Callable[[Mapping[str, Any]], Complaints]] = {
    "statelint": by_statelint,
    "asl-validator": by_asl_validator,
    "cfn-lint": by_cfn_lint,
    "steponce lint": by_steponce,
}


def faults_found(said: Complaints) -> Iterator[bool]:
    """Of each fault, whether a tool says of it what it does not say of the machine that is right."""
    for place, fault in enumerate(FAULTS):
        yield bool(set(said[str(place)]) - set(said[fault.machine]))


def alarms(said: Complaints) -> list[str]:
    """The machines that are right, of which the tool complains."""
    return [name for name, texts in said.items() if texts and not name.isdecimal()]


def outcome() -> Outcome:
    """What all tools find now."""
    machines = definitions()
    said = {name: tool(machines) for name, tool in TOOLS.items()}
    found = {name: list(faults_found(texts)) for name, texts in said.items()}
    rows = [
        {
            "rule": fault.rule,
            "machine": fault.machine,
            "what": fault.what,
            "found": [name for name in TOOLS if found[name][place]],
        }
        for place, fault in enumerate(FAULTS)
    ]
    return {"faults": rows, "alarms": {name: alarms(texts) for name, texts in said.items()}}


if __name__ == "__main__":
    PLACE.write_text(json.dumps(outcome(), indent=2) + "\n")
