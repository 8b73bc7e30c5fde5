"""
Findings for code scanners: SARIF 2.1.0.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

from steponce.lint.check import RULES
from steponce.lint.findings import Finding

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


@dataclass(frozen=True)
class Located:
    """
    A finding with its place.

    Attributes:
        file: The path of the file with the state.
        line: The line on which the state begins, from 1 on.
        machine: The machine's logical id in a template; None without one.
        finding: What was found.
        values: The template's parameters with which it was found first, if not with the usual ones.
    """

    file: str
    line: int
    machine: str | None
    finding: Finding
    values: Mapping[str, str] = field(default_factory=dict)


def sarif(found: Sequence[Located], unreadable: str) -> dict[str, Any]:
    """
    A SARIF log with one run.

    Args:
        found: The findings.
        unreadable: The id of findings about files that cannot be read, which belong to no rule.
    """
    rules = [_rule(rule.id, rule.explanation, rule.severity) for rule in RULES]
    rules.append(_rule(unreadable, "A file cannot be read, or a template cannot be resolved.", "error"))
    driver = {"name": "steponce", "version": version("steponce"), "rules": rules}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(one) for one in found]}],
    }


def _rule(name: str, explanation: str, severity: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": " ".join(explanation.partition("\n\n")[0].split())},
        "fullDescription": {"text": explanation},
        "help": {"text": explanation, "markdown": explanation},
        "defaultConfiguration": {"level": severity},
    }


def _result(one: Located) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": PurePath(one.file).as_posix()},
            "region": {"startLine": one.line},
        }
    }
    names = [part for part in (one.machine, one.finding.state) if part]
    if names:
        location["logicalLocations"] = [{"name": names[-1], "fullyQualifiedName": "/".join(names)}]
    return {
        "ruleId": one.finding.rule,
        "level": one.finding.severity,
        "message": {"text": one.finding.message},
        "locations": [location],
    }
