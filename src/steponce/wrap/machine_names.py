"""The Names of state machines in a template. Each is there once in an account and region."""

from __future__ import annotations

import re
from itertools import chain, count
from typing import Any

from ruamel.yaml.comments import CommentedMap, TaggedScalar

from steponce.wrap import template_file
from steponce.wrap.errors import CannotWrap

_CHARACTERS = 80
"""That AWS takes for a Name."""

_ENDING = 50
"""Characters of them at most that a machine's logical id gets."""

_STACK = "${AWS::StackName}"
_ODD = re.compile(r"[^0-9A-Za-z_-]")
_PLACEHOLDER = re.compile(r"\$\{[^{}]*\}")
_WORD = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[^A-Z]+|[A-Z]")
_NAMED = {"AWS::Serverless::StateMachine": "Name", "AWS::StepFunctions::StateMachine": "StateMachineName"}


def free(template: CommentedMap, *endings: str) -> str:
    """
    The first Name that no machine of the template has, as the text of a `!Sub`.

    Args:
        template: The template, before it gets the machine.
        endings: What may follow the stack's name, the best first. The last one may get a number.
    """
    taken = _taken(template)
    numbered = (f"{endings[-1]}-{number}" for number in count(2))
    names = (f"{_STACK}-{ending}" for ending in chain(endings, numbered))
    return next(name for name in names if name not in taken)


def room(name: Any) -> str:
    """What a Name that begins with the stack's leaves for that one, as a sentence."""
    left = _CHARACTERS - len(_written(name).removeprefix(_STACK))
    return f"AWS takes {_CHARACTERS} characters for a Name, so the stack's has at most {left}."


def expect_known(name: Any, machine: str) -> None:
    """
    Refuse a Name that the installation's parameters cannot have. AWS takes more characters for it.

    Args:
        name: As far as it is text or `!Sub`; others are read by CloudFormation only.
        machine: The machine's logical id.

    Raises:
        CannotWrap: it has a character beyond those of logging.

    Source: CreateStateMachine API reference ("To enable logging with CloudWatch Logs, the name should only
    contain 0-9, A-Z, a-z, - and _").
    """
    if odd := sorted(set(_ODD.findall(_PLACEHOLDER.sub("", _written(name))))):
        raise CannotWrap(
            [
                f"The Name of {machine} has {' and '.join(odd)}, and the installation knows machines whose "
                "Names have only 0-9, A-Z, a-z, - and _. Rename it first: CloudFormation replaces it then."
            ]
        )


def _written(name: Any) -> str:
    if isinstance(name, CommentedMap):
        name = name.get("Fn::Sub")
    elif template_file.tag_of(name) not in (None, "!Sub"):
        return ""
    return template_file.shown(name) if isinstance(name, (str, TaggedScalar)) else ""


def of(machine: str) -> tuple[str, str]:
    """A short ending and a longer one by a machine's logical id: `orders`, and `orders-state-machine`."""
    short = machine.removesuffix("StateMachine") or machine
    return _dashed(short), _dashed(machine)


def _taken(template: CommentedMap) -> set[str]:
    """The Names of all machines, as far as they are text or `!Sub`."""
    return {
        _text(resource["Properties"].get(name))
        for kind, name in _NAMED.items()
        for resource in template_file.resources_of(template, kind).values()
        if resource.get("Properties") is not None
    }


def _text(name: Any) -> str:
    return template_file.shown(name.get("Fn::Sub") if isinstance(name, CommentedMap) else name)


def _dashed(name: str) -> str:
    return "-".join(_WORD.findall(name)).lower()[:_ENDING].rstrip("-")
