"""Finds which workflow of the stack a command is for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from steponce.cli.shell import Named, commands
from steponce.cli.target import Stack, Target, invocation
from steponce.client import Client
from steponce.executions import runs_on
from steponce.locks.record import Lock
from steponce.next_step import NextStep
from steponce.operator.machines import machine_of_lock, machine_of_request
from steponce.request.machine import Machine
from steponce.request.workflows import Workflow, Workflows


@dataclass(frozen=True)
class Machines:
    """
    The workflows of a command's stack.

    Args:
        target: The stack that the command is for, as its options say.
        stack: The same, found.
        workflows: The workflows that its Outputs name.
    """

    target: Target
    stack: Stack
    workflows: Workflows

    @classmethod
    def reach(cls, target: Target) -> Machines:
        """
        Find a command's stack, and its workflows.

        Raises:
            MachineNotFound, MachineAmbiguous: --machine fits none of them, or several.
            SteponceError: as `Target.reach`.
        """
        stack = target.reach()
        found = cls(target, stack, Workflows.from_outputs(stack.outputs))
        if target.machine is not None:
            found.go_on_with(found.workflows.choose(target.machine).arn)
        else:
            found.go_on_with(None)
        return found

    @property
    def are_several(self) -> bool:
        """Whether the stack has several workflows."""
        return len(self.workflows) > 1

    @cached_property
    def first(self) -> Client:
        """
        The client of the first of these workflows, for what concerns the table alone.

        The settings of the others are not read: a malformed Output of one of them does no harm.
        """
        if self.target.machine is not None:
            return self.stack.client(machine=self.workflows.choose(self.target.machine).arn)
        if not self.are_several:
            return self.stack.client()
        return self.stack.client(machine=next(iter(self.workflows)).arn)

    @property
    def of_each_table(self) -> list[Client]:
        """A client of one workflow of each lock table, as `first` if all share one."""
        found = {self.first.machine.locks.table: self.first}
        for one in list(self.workflows)[1:] if self.target.machine is None else []:
            if one.settings.get("LocksTable") not in found:
                client = self.first.of(one)
                found[client.machine.locks.table] = client
        return list(found.values())

    @cached_property
    def clients(self) -> list[Client]:
        """A client of each workflow that the command may be for, by the same connections."""
        others = list(self.workflows)[1:] if self.target.machine is None else []
        return [self.first, *(self.first.of(one) for one in others)]

    @property
    def machines(self) -> list[Machine]:
        """The machines of these clients."""
        return [client.machine for client in self.clients]

    def to_start(self) -> Client:
        """The client of the workflow that a start is for: the stack's own, unless --machine names another."""
        if len(self.workflows) <= 1 and self.target.machine is None:
            return self.stack.client()
        workflow = self.workflows.choose(self.target.machine)
        self.go_on_with(workflow.arn)
        return self.stack.client(machine=workflow.arn)

    def of_request(self, request_id: str, lock_token: str | None = None) -> Client:
        """The client of the workflow that knows a request; errors as `machine_of_request`."""
        if len(self.clients) == 1:
            return self.clients[0]
        return self._client(machine_of_request(self.machines, request_id, lock_token=lock_token))

    def of_lock(self, key: str, *, by_token: bool) -> tuple[Client, Lock]:
        """A record, and the client of the workflow that holds or held it; errors as `machine_of_lock`."""
        machine, lock = machine_of_lock(self.machines, key, by_token=by_token)
        return self._client(machine), lock

    def chosen(self) -> list[Workflow]:
        """The workflow that --machine names, else all."""
        if self.target.machine is None:
            return list(self.workflows)
        return [self.workflows.choose(self.target.machine)]

    def is_chosen(self, execution_arn: str) -> bool:
        """Whether an execution may be listed: --machine leaves out those of other state machines."""
        return self.target.machine is None or runs_on(self.chosen()[0].arn, execution_arn)

    @property
    def named(self) -> Named:
        """The state machine that the next commands name."""
        return invocation().named

    def commands(self, steps: Iterable[NextStep]) -> list[str]:
        """Write next steps as commands, for this stack and the machine that was found."""
        return commands(steps, self.target.options, self.named)

    def _client(self, machine: Machine) -> Client:
        self.go_on_with(machine.arn)
        return next(one for one in self.clients if one.machine is machine)

    def go_on_with(self, arn: str | None) -> None:
        """Let the next commands, also those of errors, name this state machine if the stack has several."""
        names = self.workflows.names()
        found = names.get(arn) if arn is not None and self.are_several else None
        running = invocation()
        running.named = replace(running.named, typed=self.target.machine, found=found, known=names)
