"""`steponce lint`: finds mistakes in state machines."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import click

from steponce.cli.definition_file import Rendering, read_renderings
from steponce.cli.keys import expecting
from steponce.cli.output import DONE, FAILED, counted, for_people, plain
from steponce.cli.parameters import template_parameters
from steponce.lint import RULES, Finding, lint
from steponce.lint.json_or_yaml import Unreadable
from steponce.lint.lines import line_of
from steponce.lint.sarif import Located, sarif

UNREADABLE = "unreadable"
"""The id of a finding about a file that cannot be read. It cannot be ignored."""


def _known(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    known = sorted(rule.id for rule in RULES)
    for name in given:
        if name not in known:
            raise click.BadParameter(f"there is no rule {name}. There are: {', '.join(known)}.")
    return given


@click.command("lint")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--ignore",
    multiple=True,
    callback=_known,
    metavar="ID",
    help="A rule to leave out; may be given more than once.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings, too.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json", "sarif"]),
    help="How to write the findings.  [default: text on a terminal, else json]",
)
@click.option(
    "--region",
    default="us-east-1",
    show_default=True,
    callback=expecting("Give a region, like us-east-1."),
    help="AWS::Region of a template.",
)
@template_parameters
def lint_files(
    files: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    kind: str | None,
    region: str,
    parameters: dict[str, str],
) -> int:
    """
    Find what AWS refuses in state machines, and what loses or repeats work.

    FILE is a definition in Amazon States Language, or a SAM or CloudFormation template; JSON or YAML. In a
    template, every state machine is read with each value of the parameters that have AllowedValues. The exit
    code is 1 if there is an error, and with --strict also if there is a warning.
    """
    found: dict[tuple[str, str | None, Finding], Located] = {}
    skipped: dict[str, dict[str, None]] = {}
    for file in files:
        try:
            renderings = read_renderings(file, parameters, region)
        except Unreadable as error:
            finding = Finding("", UNREADABLE, "error", str(error))
            found[file, None, finding] = Located(file, error.line, None, finding)
            continue
        for rendering in renderings:
            report = lint(rendering.content, ignored=ignore, kind=rendering.kind)
            skipped.setdefault(rendering.file, {}).update(dict.fromkeys(report.skipped))
            for finding in report.findings:
                key = (rendering.file, rendering.machine, finding)
                found.setdefault(key, _located(rendering, finding))
    listed = sorted(found.values(), key=lambda one: (one.file, one.line))
    _write(kind or ("text" if for_people() else "json"), files, listed, _notes(skipped))
    counting = {"error", "warning"} if strict else {"error"}
    return FAILED if any(one.finding.severity in counting for one in listed) else DONE


def _located(rendering: Rendering, finding: Finding) -> Located:
    state = finding.state.partition(".")[0]
    line = line_of(rendering.text, state, rendering.begin) if state else rendering.begin
    return Located(rendering.file, line, rendering.machine, finding, dict(rendering.values))


def _notes(skipped: Mapping[str, Collection[str]]) -> list[str]:
    return [
        f"{file}: rules about paths are skipped in {counted(len(states), 'state')} in JSONata: "
        f"{', '.join(states)}."
        for file, states in skipped.items()
        if states
    ]


def _write(kind: str, files: tuple[str, ...], found: list[Located], notes: list[str]) -> None:
    errors = sum(one.finding.severity == "error" for one in found)
    if kind == "text":
        for one in found:
            click.echo(_line(one))
        for note in notes:
            click.echo(plain(note).plain)
        counts = f"{counted(errors, 'error')}, {counted(len(found) - errors, 'warning')}"
        click.echo(f"{counts} in {counted(len(files), 'file')}.")
        return
    if kind == "sarif":
        click.echo(json.dumps(sarif(found, UNREADABLE)))
        return
    answer = {
        "findings": [_fields(one) for one in found],
        "errors": errors,
        "warnings": len(found) - errors,
        "notes": notes,
    }
    click.echo(json.dumps(answer))


def _line(one: Located) -> str:
    finding = one.finding
    text = f"{one.file}:{one.line}: {finding.severity}: {finding.message}{_when(one)} [{finding.rule}]"
    return plain(text).plain


def _when(one: Located) -> str:
    values = ", ".join(f"{name}={value}" for name, value in one.values.items())
    return f" This is with {values}." if values else ""


def _fields(one: Located) -> dict[str, object]:
    return {
        "file": one.file,
        "line": one.line,
        "machine": one.machine,
        "state": one.finding.state or None,
        "rule": one.finding.rule,
        "severity": one.finding.severity,
        "message": one.finding.message,
        "with": dict(one.values),
    }
