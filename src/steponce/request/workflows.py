"""
Reads from a stack's Outputs which workflows it has, and each one's settings.

The stack's own workflow has one Output for each setting. A further workflow has one Output whose name ends in
`Workflow`: a JSON object with the same settings by the same names, in camelCase, each a text. An empty text
means that the setting is not given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from steponce.errors import InvalidSetting, MachineAmbiguous, MachineNotFound, shown
from steponce.executions import runs_on, unqualified
from steponce.request.settings import RequestRules

OWN = "RunOnceStateMachineArn"
"""The Output with the state machine of the stack's own workflow."""

ENDING = "Workflow"
"""The ending of the name of a workflow's own Output."""

_ARN = "StateMachineArn"
_OF_THE_STACK = ("LocksTable", "OpenShards", "ResultBucket")
"""Settings that workflows of one stack may share. A workflow may have its own."""


@dataclass(frozen=True)
class Workflow:
    """
    One workflow of a stack.

    Args:
        start_arn: The ARN that StartExecution gets: the state machine, or an alias or a version of it.
        settings: Its settings, by the names of the stack's Outputs.
        output: The Output that names it.
    """

    start_arn: str
    settings: Mapping[str, str] = field(repr=False)
    output: str = OWN

    @property
    def arn(self) -> str:
        """Its state machine's ARN, without an alias or a version."""
        return unqualified(self.start_arn)

    @property
    def name(self) -> str:
        """The state machine's name."""
        return self.arn.rpartition(":")[2]

    def rules(self) -> RequestRules:
        """
        Its rules for lock tokens, hashes and times.

        Raises:
            InvalidSetting: a setting is missing or malformed. The message names the Output.
        """
        try:
            return RequestRules.from_settings(self.settings)
        except InvalidSetting as error:
            if self.output == OWN:
                raise
            raise InvalidSetting(f"The Output {self.output}: {error}") from None

    def setting(self, name: str) -> str:
        """
        One setting that must be there.

        Raises:
            InvalidSetting: it is missing.
        """
        if not self.settings.get(name):
            raise InvalidSetting(f"The Outputs say no {name} for the state machine {self.arn}. Add it.")
        return self.settings[name]

    @classmethod
    def read(cls, output: str, text: str, outputs: Mapping[str, str]) -> Self | None:
        """Read an Output whose name ends in `Workflow`. None if it is something else of the user's."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(given, dict):
            return None
        own = {name[:1].upper() + name[1:]: _text(value) for name, value in given.items()}
        if not own.get(_ARN):
            return None
        shared = {name: outputs[name] for name in _OF_THE_STACK if name in outputs}
        return cls(own[_ARN], shared | {name: value for name, value in own.items() if value}, output)


@dataclass(frozen=True)
class Workflows:
    """
    The workflows of a stack.

    Args:
        own: The stack's own, which is meant if no machine is named. None if it has none.
        others: All others, by the names of their Outputs.
    """

    own: Workflow | None
    others: tuple[Workflow, ...] = ()

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str]) -> Self:
        """
        Find the workflows that a stack's Outputs name.

        Settings are checked later, so that a malformed one of one workflow does not affect the others.
        """
        own = Workflow(outputs[OWN], outputs) if outputs.get(OWN) else None
        found = {own.arn: own} if own else {}
        for output in sorted(outputs):
            if not output.endswith(ENDING):
                continue
            workflow = Workflow.read(output, outputs[output], outputs)
            if workflow is not None:
                found.setdefault(workflow.arn, workflow)
        return cls(own, tuple(one for one in found.values() if one is not own))

    def __iter__(self) -> Iterator[Workflow]:
        """All of them, the stack's own first."""
        yield from [self.own] if self.own else []
        yield from self.others

    def __len__(self) -> int:
        return len(self.others) + (self.own is not None)

    def names(self) -> dict[str, str]:
        """By ARN: how to name each state machine. By its name, or by its ARN if two have that name."""
        plain = [one.name for one in self]
        return {one.arn: one.name if plain.count(one.name) == 1 else one.arn for one in self}

    def choose(self, machine: str | None = None) -> Workflow:
        """
        Choose a workflow.

        Args:
            machine: The name or ARN of its state machine. None: the stack's own, else the only one.

        Raises:
            MachineNotFound: there is none of this name. The message names those that there are.
            MachineAmbiguous: the name fits several, or several are there and none was named.
        """
        found = self._fitting(machine)
        if len(found) == 1:
            return found[0]
        names = ", ".join(self.names().values())
        if not found and machine is not None and len(self):
            raise MachineNotFound(
                f"The stack has no workflow with the state machine {shown(machine)}. It has: {names}. "
                "Name one of these."
            )
        if not found:
            raise MachineNotFound(
                f"The stack's Outputs name no workflow: there is no {OWN}, and none ends in {ENDING}. If its "
                "template nests one of steponce, name the nested stack, or pass its Outputs on."
            )
        if machine is None:
            raise MachineAmbiguous(f"The stack has several workflows. Name the state machine: {names}.")
        fitting = ", ".join(one.arn for one in found)
        raise MachineAmbiguous(
            f"{shown(machine)} is the name of several state machines. Give an ARN: {fitting}."
        )

    def of_execution(self, execution_arn: str) -> Workflow | None:
        """The workflow that an execution belongs to. None if it is none of these."""
        return next((one for one in self if runs_on(one.arn, execution_arn)), None)

    def _fitting(self, machine: str | None) -> list[Workflow]:
        if machine is None:
            return [self.own] if self.own else list(self)
        return [one for one in self if machine in (one.arn, one.start_arn, one.name)]


def _text(value: Any) -> str:
    """A setting as Outputs have it: a text."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)
