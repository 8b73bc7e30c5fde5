"""CloudFormation refuses a template whose resources need each other: none of them could be made first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar

from steponce.wrap.errors import CannotWrap
from steponce.wrap.parts import STACK
from steponce.wrap.template_file import shown, tag_of, variables

_FUNCTIONS = ("Ref", "Fn::GetAtt", "Fn::Sub")
_OF_OTHER_RESOURCES = ("Events", "DeploymentPreference")
"""Properties of which SAM makes resources of their own, which need this one, and not the reverse."""


def expect_none(template: CommentedMap) -> None:
    """
    Refuse a template whose installation needs a machine that needs the installation.

    Raises:
        CannotWrap: it does. The message has the way from one to the other.
    """
    every = template["Resources"]
    ways = [[STACK]]
    seen: set[str] = set()
    for way in ways:
        for name in _needs(every[way[-1]]):
            if name == STACK:
                raise CannotWrap([_refusal([*way, STACK])])
            if name in every and name not in seen:
                seen.add(name)
                ways.append([*way, name])


def _refusal(way: list[str]) -> str:
    return (
        f"CloudFormation would refuse the template, because its resources need each other: "
        f"{' -> '.join(way)}. Give {way[1]} a Name (text, !Sub or !Ref). If OtherStateMachines of {STACK} "
        "refers to it, write its ARN with that name there."
    )


def _needs(resource: Any) -> Iterator[str]:
    """The names to which a resource refers."""
    if not isinstance(resource, CommentedMap):
        return
    first = resource.get("DependsOn")
    yield from (one for one in (first if isinstance(first, list) else [first]) if isinstance(one, str))
    for name, value in (resource.get("Properties") or {}).items():
        if name not in _OF_OTHER_RESOURCES:
            yield from _names(value)


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, TaggedScalar):
        yield from _named(str(tag_of(value)), value)
    elif isinstance(value, CommentedSeq):
        yield from _named(str(tag_of(value)), value)
        for one in value:
            yield from _names(one)
    elif isinstance(value, CommentedMap):
        for key, one in value.items():
            if key in _FUNCTIONS:
                yield from _named(f"!{key.removeprefix('Fn::')}", one)
            yield from _names(one)


def _named(function: str, argument: Any) -> Iterator[str]:
    """The names in the argument of a function, short or long, that refers to something."""
    first = argument[0] if isinstance(argument, CommentedSeq) and argument else argument
    if function == "!Sub":
        own = argument[1] if isinstance(argument, CommentedSeq) and len(argument) > 1 else None
        yield from variables(shown(first)) - set(own if isinstance(own, CommentedMap) else ())
    elif function in ("!Ref", "!GetAtt"):
        yield shown(first).partition(".")[0]
