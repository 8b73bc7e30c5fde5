"""The Names of state machines in a template. Each is there once in an account and region."""

from __future__ import annotations

from itertools import chain, count
from typing import Any

from ruamel.yaml.comments import CommentedMap

from steponce.wrap import template_file

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
    names = (f"${{AWS::StackName}}-{ending}" for ending in chain(endings, numbered))
    return next(name for name in names if name not in taken)


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
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in name).strip("-")
