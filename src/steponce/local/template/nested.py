"""The stacks that a template nests in itself, from template files of this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from steponce.local.errors import TemplateError
from steponce.local.template.physical_names import NESTED_STACK, PhysicalNames
from steponce.local.template.plan import Plan
from steponce.local.template.resources import Resources
from steponce.local.template.scalars import as_text
from steponce.local.template.support import REMOTE

Read = Callable[[Path, Mapping[str, str], str], Plan]
"""Reads a template file with values of its parameters, for a stack of this name."""

_around: ContextVar[tuple[Path, ...]] = ContextVar("around", default=())
"""The files of the nested stacks that are being read, the outermost first."""


class NestedStacks:
    """
    The nested stacks of one template. Each file is read once for each set of values handed to it.

    A template that is on S3 is left out.

    Args:
        root: The folder of the template.
        files: The file of each nested stack by logical id, as the template names it.
        names: Where the physical names of the template itself come from.
        read: See `Read`.
    """

    def __init__(self, root: Path, files: Mapping[str, str], names: PhysicalNames, read: Read) -> None:
        self._files = {key: root / file for key, file in files.items() if not file.startswith(REMOTE)}
        self._names = names
        self._read = read
        self._plans: dict[tuple[str, tuple[tuple[str, str], ...]], Plan] = {}

    def __contains__(self, logical_id: str) -> bool:
        """Whether this nested stack has a file here."""
        return logical_id in self._files

    def plans(self, resources: Resources) -> list[Plan]:
        """The plans of the nested stacks that exist."""
        stacks = resources.of_kind(NESTED_STACK)
        return [self._plan(key, properties) for key, _, properties in stacks if key in self]

    def output(self, logical_id: str, properties: Mapping[str, Any], name: str) -> str:
        """
        An output of a nested stack.

        Args:
            properties: Of the nested stack, resolved.

        Raises:
            TemplateError: it has no such output with these parameters.
        """
        outputs = self._plan(logical_id, properties).outputs
        if name not in outputs:
            raise TemplateError(f"{logical_id} has no output {name}. It has: {', '.join(sorted(outputs))}.")
        return outputs[name]

    def _plan(self, logical_id: str, properties: Mapping[str, Any]) -> Plan:
        parameters = properties.get("Parameters", {})
        # CloudFormation takes no list, even for a parameter that is one.
        if lists := sorted(key for key, value in parameters.items() if isinstance(value, list)):
            raise TemplateError(f"{logical_id}: join the list {', '.join(lists)} to one text.")
        values = {key: as_text(value) for key, value in parameters.items()}
        key = (logical_id, tuple(sorted(values.items())))
        if key not in self._plans:
            name, file = self._names.name(logical_id, NESTED_STACK, {}), self._files[logical_id].resolve()
            if file in _around.get():
                raise TemplateError(f"{logical_id}: {file} is nested in itself. Nest another template.")
            reading = _around.set((*_around.get(), file))
            try:
                self._plans[key] = self._read(file, values, name)
            except TemplateError as error:
                raise TemplateError(f"{logical_id}: {error}") from error
            finally:
                _around.reset(reading)
        return self._plans[key]
