"""
The template's part of a wrapped machine.

It is made of the template that new applications begin with, so that there is one to maintain.
"""

from __future__ import annotations

from steponce.scaffold import installation, sources
from steponce.scaffold.render import render
from steponce.wrap import source
from steponce.wrap.wrapped import Wrapped

TO_FILL_IN = "FILL_IN"
"""Stands for a value that only the user knows."""

NAME = "${AWS::StackName}-run-once"
"""Of the state machine and its log group."""

NAME_OF_CHILD = "NAME_OF_YOUR_STATE_MACHINE"
CHILD = f"arn:${{AWS::Partition}}:states:${{AWS::Region}}:${{AWS::AccountId}}:execution:{NAME_OF_CHILD}:*"
"""The executions of the machine that is started."""

CAPABILITIES = (
    "The template nests a stack whose template has a Transform. So `sam deploy` needs CAPABILITY_AUTO_EXPAND "
    "beside CAPABILITY_IAM: add it to the capabilities in samconfig.toml, or wherever you name them."
)
"""What a person must change who deploys the template."""

_APPLICATION = "application/{{cookiecutter.project_slug}}/template.yaml"
_WORK, _WORKFLOW = "  # -- Your work", "  # -- The workflow around it"
_FUNCTION = "DoWorkFunction"
_SUBSTITUTIONS = "      DefinitionSubstitutions:\n"
_STATEMENTS = "            Statement:\n"
_FIRST_OF_ROLE = f"{_STATEMENTS}              - {{"
_WORK_TIMEOUT = (
    "    Default: 60\n    MinValue: 1\n    MaxValue: 900\n"
    "    Description: Time-out of one try of the work.\n",
    "    Default: 900\n    MinValue: 1\n    MaxValue: 900\n"
    "    Description: How long a function of the work may still run after its execution was stopped.\n",
)
_NAME_FOR_STACK = f'        StateMachineName: !Sub "{NAME}"\n'
_OTHERS_FOR_STACK = (
    f"        OtherStateMachines: {TO_FILL_IN} # its ARN, so that its executions may be described\n"
)
_RULE = (
    "arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:rule/"
    "StepFunctionsGetEventsForStepFunctionsExecutionRule"
)
_STATEMENTS_AROUND = f"""\
              - {{ Effect: Allow, Action: states:StartExecution, Resource: {TO_FILL_IN} }} # its ARN
              - Effect: Allow
                Action: [states:DescribeExecution, states:StopExecution]
                Resource: !Sub "{CHILD}"
              - Effect: Allow # by this rule AWS tells the workflow of the machine's end
                Action: [events:PutTargets, events:PutRule, events:DescribeRule]
                Resource: !Sub "{_RULE}"
"""
_STATEMENTS_INLINE = "              # and here the statements that your machine's role has now\n"


def template(wrapped: Wrapped, uri: str) -> str:
    """
    A template with the wrapped machine, its role and the installation.

    `FILL_IN` stands for what is not known: the values of the machine's own placeholders.

    Args:
        wrapped: The wrapped definition.
        uri: Where its file is, as seen from the template.
    """
    from steponce.wrap.template_file import scalar

    text = (sources.root() / _APPLICATION).read_text(encoding="utf-8")
    text = render(text, {"project_slug": "your-application", "callback": "no", "http": "no"})
    before, _, rest = text.partition(_WORK)
    text = before + _WORKFLOW + rest.partition(_WORKFLOW)[2]
    text = "".join(line for line in text.splitlines(keepends=True) if _FUNCTION not in line)
    text = _replaced(text, "statemachines/run_once.asl.json", scalar(uri))
    text = _with_substitutions(text, wrapped)
    statements = _STATEMENTS_INLINE if wrapped.form == "inline" else _STATEMENTS_AROUND
    text = _replaced(text, _FIRST_OF_ROLE, _FIRST_OF_ROLE.replace(_STATEMENTS, _STATEMENTS + statements))
    text = _replaced(text, *_WORK_TIMEOUT)
    if wrapped.form == "inline":
        return text
    text = _replaced(text, _NAME_FOR_STACK, _NAME_FOR_STACK + _OTHERS_FOR_STACK)
    return _without_parameter(text, "FinalErrors")


def decisions(wrapped: Wrapped) -> list[str]:
    """What a person still has to decide about the template."""
    found = [
        f"Add the template's part to your template, and replace each {TO_FILL_IN} by a value.",
        f"That part nests the folder {installation.FOLDER}, which was not written. If it is not beside your "
        "template yet, let the command init write an application elsewhere, and copy the folder from there.",
        CAPABILITIES,
    ]
    if wrapped.form == "inline":
        found.append("The role has the permissions of the workflow. Add those that your machine's role has.")
    return found


def _with_substitutions(text: str, wrapped: Wrapped) -> str:
    """The workflow's substitutions, under their names in the definition, and the machine's own."""
    before, _, rest = text.partition(_SUBSTITUTIONS)
    lines = rest.splitlines(keepends=True)
    end = next(place for place, line in enumerate(lines) if not line.startswith("        "))
    given = []
    for line in lines[:end]:
        name = line.strip().partition(":")[0]
        if name in wrapped.substitutions:
            given.append(line.replace(name, wrapped.substitutions[name], 1))
    known = {name.strip().partition(":")[0] for name in given}
    theirs = sorted(source.placeholders(source.write(wrapped.definition)) - known)
    given += [f"        {name}: {TO_FILL_IN}\n" for name in theirs]
    return before + _SUBSTITUTIONS + "".join(given) + "".join(lines[end:])


def _without_parameter(text: str, name: str) -> str:
    head, _, rest = text.partition(f"  {name}:\n")
    lines = rest.splitlines(keepends=True)
    end = next(place for place, line in enumerate(lines) if not line.startswith("    "))
    return head + "".join(lines[end:])


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ValueError(f"the template of new applications has {old!r} {text.count(old)} times")
    return text.replace(old, new)
