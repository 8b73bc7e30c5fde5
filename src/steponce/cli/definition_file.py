"""Reads a state machine's definition from its own file or from a template."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steponce.cli.target import Unreachable, needs_local

if TYPE_CHECKING:
    from steponce.local.template.plan import MachinePlan

_STACK = "stack"
"""Begins the names of a template's resources that have none of their own."""


@dataclass(frozen=True)
class Definition:
    """A definition, and the name that its template has for it; None if it has a file of its own."""

    machine: str | None
    content: dict[str, Any]


def read_definition(file: str, machine: str | None, parameters: Mapping[str, str], region: str) -> Definition:
    """
    Read a definition.

    Args:
        file: A path to Amazon States Language or to a SAM or CloudFormation template, in JSON or YAML.
        machine: Which one of a template, by its logical id or its name. None if there is only one.
        parameters: Values of the template's parameters; the others have their defaults.
        region: What the template gets as AWS::Region.

    Raises:
        click.UsageError: the file, the machine or a parameter is not what it must be.
        Unreachable: what reads templates is not installed.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} cannot be read: {error}.") from None
    try:
        content = _own_definition(text)
        if content is None:
            return _from_template(path, machine, parameters, region)
    except ModuleNotFoundError as error:
        raise Unreachable(needs_local(error)) from None
    if machine is not None or parameters:
        raise click.UsageError(f"--machine and --parameter go with a template, and {file} is a definition.")
    return Definition(None, content)


def _own_definition(text: str) -> dict[str, Any] | None:
    """The text as a definition; None if it is something else."""
    try:
        content = json.loads(text)
    except ValueError:
        import yaml

        try:
            content = yaml.safe_load(text)
        except yaml.YAMLError:  # a template's short functions are no plain YAML, for example
            return None
    return content if isinstance(content, dict) and "States" in content else None


def _from_template(path: Path, machine: str | None, parameters: Mapping[str, str], region: str) -> Definition:
    from steponce.local import TemplateError
    from steponce.local.template.reader import read_machines

    try:
        machines = read_machines(path, parameters=parameters, stack_name=_STACK, region=region)
    except TemplateError as error:
        raise click.UsageError(str(error)) from None
    found = _chosen(path, machine, machines)
    if machines[found].kind == "EXPRESS":
        raise click.UsageError(
            f"{found} is an Express workflow. AWS bills its duration, which a definition does not say."
        )
    return Definition(found, json.loads(machines[found].definition))


def _chosen(path: Path, machine: str | None, machines: Mapping[str, MachinePlan]) -> str:
    """The logical id of the machine that is meant."""
    if not machines:
        raise click.UsageError(f"{path} has no state machine with these parameters.")
    named = [key for key, plan in machines.items() if machine in (None, key, plan.name)]
    if len(named) != 1:
        raise click.UsageError(f"Choose one with --machine: {', '.join(sorted(machines))}.")
    return named[0]
