"""Reads state machines' definitions from their own files or from a template."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import click

from steponce.cli.target import Unreachable, needs_local
from steponce.lint.definitions import STANDARD
from steponce.lint.json_or_yaml import Unreadable, read_text
from steponce.lint.lines import line_of

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
    try:
        content = read_text(_text(file))
        if not _is_definition(content):
            return _from_template(Path(file), machine, parameters, region)
    except Unreadable as error:
        raise click.UsageError(f"{file}:{error.line}: {error}") from None
    except ModuleNotFoundError as error:
        raise Unreachable(needs_local(error)) from None
    if machine is not None or parameters:
        raise click.UsageError(f"--machine and --parameter go with a template, and {file} is a definition.")
    return Definition(None, content)


@dataclass(frozen=True)
class Rendering:
    """
    A definition that a file may give a state machine.

    Attributes:
        machine: The name that its template has for it; None if it has a file of its own.
        content: What the definition says.
        kind: STANDARD or EXPRESS.
        values: The template's parameters that do not have their usual values.
        file: The path of the file with the states, as a person would type it here.
        text: What is in this file.
        begin: The line on which this machine begins there.
    """

    machine: str | None
    content: Any
    kind: str
    values: Mapping[str, str]
    file: str
    text: str
    begin: int


def read_renderings(file: str, parameters: Mapping[str, str], region: str) -> list[Rendering]:
    """
    Read every state machine of a file, with each choice that its parameters have.

    Args:
        file: A path, as for `read_definition`.
        parameters: Values of the template's parameters that are not to vary.
        region: What the template gets as AWS::Region.

    Raises:
        click.UsageError: the file cannot be read, or has no state machine.
        Unreadable: it is not what it must be.
        Unreachable: what reads templates, or YAML, is not installed.
    """
    text = _text(file)
    try:
        content = read_text(text)
        if _is_definition(content):
            if parameters:
                raise click.UsageError(f"--parameter goes with a template, and {file} is a definition.")
            return [Rendering(None, content, STANDARD, {}, file, text, 1)]
        return _of_template(file, text, parameters, region)
    except ModuleNotFoundError as error:
        raise Unreachable(needs_local(error)) from None


def _of_template(file: str, text: str, parameters: Mapping[str, str], region: str) -> list[Rendering]:
    from steponce.local import TemplateError
    from steponce.local.template.reader import read_renderings

    try:
        found = read_renderings(file, parameters=parameters, stack_name=_STACK, region=region)
    except TemplateError as error:
        raise Unreadable(str(error)) from None
    renderings = []
    for one in found:
        own = text if one.file is None else _text(str(one.file))
        path = file if one.file is None else os.path.relpath(one.file)
        begin = line_of(text, one.machine) if one.file is None else 1
        renderings.append(
            Rendering(one.machine, json.loads(one.text), one.kind, one.values, path, own, begin)
        )
    return renderings


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error}.") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Unreadable("It is not UTF-8. Save it in that encoding.", line) from None


def _is_definition(content: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(content, dict) and "States" in content


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
