"""The state machines of a template, after their substitutions, as AWS would create them or refuse to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from steponce.lint.definitions import complaints
from steponce.local.errors import TemplateError, not_supported
from steponce.local.template.intrinsics import Resolver
from steponce.local.template.nested import NestedStacks
from steponce.local.template.physical_names import STATE_MACHINE, PhysicalNames
from steponce.local.template.plan import MachinePlan
from steponce.local.template.resources import Resources
from steponce.local.template.scalars import as_text
from steponce.local.template.substitutions import substitute

_OF_A_MACRO = re.compile(r'\s*\{\s*"Fn::Transform"')
"""How a definition begins that a macro makes. The SAM transform has turned it into text."""


class Machines:
    """
    What a template's state machines are, with any values of its parameters.

    Args:
        template: After the SAM transform.
        names: Where physical names come from.
        file_of: The file of a resource's DefinitionUri by logical id; None where the template has the text.
        nested: The stacks that the template nests.
    """

    def __init__(
        self,
        template: Mapping[str, Any],
        names: PhysicalNames,
        file_of: Callable[[str], Path | None],
        nested: NestedStacks | None = None,
    ) -> None:
        self._template = template
        self._names = names
        self._file_of = file_of
        self._nested = nested

    def with_values(self, values: Mapping[str, str]) -> list[MachinePlan]:
        """
        The state machines that exist with these values of the parameters.

        Raises:
            TemplateError: AWS would not create one of them.
        """
        return list(self.by_logical_id(values).values())

    def by_logical_id(self, values: Mapping[str, str]) -> dict[str, MachinePlan]:
        """The same as `with_values`, by the names that the template has for them."""
        machines = dict(self._read(values, self._nested))
        for machine in machines.values():
            _expect_valid(machine)
        return machines

    def renderings(self, values: Mapping[str, str]) -> dict[str, MachinePlan]:
        """
        The same as `by_logical_id`, also for machines that AWS would not create.

        Outputs of nested stacks have stand-ins, because their templates need not be there.
        """
        return dict(self._read(values, None))

    def expect_other_choices(self, values: Mapping[str, str]) -> None:
        """
        Make sure of every other value of each parameter that has AllowedValues, one parameter at a time.

        Raises:
            TemplateError: with one of them AWS would not create a machine.
        """
        # An output of a nested stack has a stand-in, because reading its template takes a while.
        seen = {(machine.definition, machine.kind) for _, machine in self._read(values, None)}
        for name, declared in self._template.get("Parameters", {}).items():
            for choice in map(as_text, declared.get("AllowedValues", [])):
                for _, machine in self._read({**values, name: choice}, None):
                    if (machine.definition, machine.kind) not in seen:
                        _expect_valid(machine, f" with {name}={choice}")
                    seen.add((machine.definition, machine.kind))

    def _read(
        self, values: Mapping[str, str], nested: NestedStacks | None
    ) -> Iterator[tuple[str, MachinePlan]]:
        resolver = Resolver(self._template, values, self._names, nested)
        resources = Resources(self._template, resolver, self._names)
        for logical_id, name, properties in resources.of_kind(STATE_MACHINE):
            text = self._text(logical_id, properties)
            given = properties.get("DefinitionSubstitutions", {})
            path = self._file_of(logical_id)
            is_yaml = path is not None and path.suffix in (".yaml", ".yml")
            definition = substitute(logical_id, text, given, is_yaml=is_yaml)
            kind = properties.get("StateMachineType", "STANDARD")
            arn = self._names.arn(STATE_MACHINE, name)
            written = (text, *map(str, given.values()))
            unused = sorted(key for key in given if not any(f"${{{key}}}" in part for part in written))
            yield logical_id, MachinePlan(logical_id, name, arn, definition, kind, tuple(unused))

    def _text(self, logical_id: str, properties: Mapping[str, Any]) -> str:
        path = self._file_of(logical_id)
        if path is not None:
            return path.read_text(encoding="utf-8")
        if "Definition" in properties:
            return json.dumps(properties["Definition"])
        if "DefinitionString" not in properties:
            raise TemplateError(not_supported(f"a definition on S3 ({logical_id}). Name a local file."))
        text = str(properties["DefinitionString"])
        if _OF_A_MACRO.match(text):
            raise TemplateError(
                not_supported(f"a definition that Fn::Transform makes ({logical_id}). Name a local file.")
            )
        return text


def _expect_valid(machine: MachinePlan, when: str = "") -> None:
    if found := complaints(machine.definition, machine.kind):
        raise TemplateError(
            f"AWS would refuse the state machine {machine.name}{when}: {' '.join(found)} "
            "Mend its definition; nothing was created."
        )
