"""The parts of a new application's template that a changed one needs, under names that are free in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from ruamel.yaml.comments import CommentedMap

from steponce.wrap import template_file
from steponce.wrap.errors import CannotWrap

STACK = "Steponce"
WORKFLOW, ROLE, LOGS = "RunOnceStateMachine", "RunOnceRole", "StateLogs"

_SECTIONS = ("Parameters", "Conditions", "Resources")
_OF_A_FURTHER = {WORKFLOW: "Once", ROLE: "OnceRole", LOGS: "OnceLogs"}
_PREPARES = "Outputs.PrepareRequestFunctionArn"
"""The function completes a request by the settings of its workflow, so each workflow has one of its own."""


def requests_of(machine: str) -> str:
    """The nested stack by which requests reach a further machine."""
    return f"{machine}Requests"


@dataclass(frozen=True)
class Parts:
    """
    Parameters, conditions and resources.

    Args:
        template: All of them.
        names: The name that each has now, if it is another.
    """

    template: CommentedMap
    names: Mapping[str, str]

    @classmethod
    def beside(cls, theirs: CommentedMap, text: str, machine: str | None) -> Self:
        """
        The parts of a template that go well with theirs.

        Args:
            theirs: The template that gets them.
            text: The template that has them.
            machine: The machine that joins an installation: its parameters are not the installation's. None
                if there is none.

        Raises:
            CannotWrap: a name is taken, whatever is put before it.
        """
        if machine is not None:
            text = text.replace(f"{STACK}.{_PREPARES}", f"{requests_of(machine)}.{_PREPARES}")
        ours = template_file.read(text)
        taken = {name for section in _SECTIONS for name in theirs.get(section, {})}
        if machine is None:
            names = {name: STACK + name for section in _SECTIONS for name in ours[section] if name in taken}
        else:
            names = {name: machine + name for section in _SECTIONS[:2] for name in ours[section]}
            names |= {name: machine + ending for name, ending in _OF_A_FURTHER.items()}
        again = sorted(taken & set(names.values()))
        if again:
            raise CannotWrap([f"The template has {', '.join(again)} already. Rename it first."])
        template_file.rename(ours, names)
        for section in _SECTIONS:
            parts = {names.get(name, name): part for name, part in ours[section].items()}
            ours[section] = CommentedMap(parts)
        return cls(ours, names)

    def name(self, part: str) -> str:
        """The name that one of them has now."""
        return self.names.get(part, part)

    def resource(self, part: str) -> CommentedMap:
        """A resource, by its former name."""
        found: CommentedMap = self.template["Resources"][self.name(part)]
        return found

    def statements(self) -> list[CommentedMap]:
        """The permissions of the workflow's role."""
        (policy,) = self.resource(ROLE)["Properties"]["Policies"]
        return list(policy["PolicyDocument"]["Statement"])
