"""The state machines of a template, after their substitutions, as AWS would create them or refuse to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
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
from steponce.local.template.source import load_yaml

_LONGEST = 10 * 1_048_576  # ten times as much as AWS takes, which `complaints` says
_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")


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
        seen = {machine.definition for _, machine in self._read(values, None)}
        for name, declared in self._template.get("Parameters", {}).items():
            for choice in map(as_text, declared.get("AllowedValues", [])):
                for _, machine in self._read({**values, name: choice}, None):
                    if machine.definition not in seen:
                        _expect_valid(machine, f" with {name}={choice}")
                    seen.add(machine.definition)

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
        return str(properties["DefinitionString"])


def substitute(logical_id: str, text: str, substitutions: Mapping[str, Any], *, is_yaml: bool = False) -> str:
    """
    Make a definition's substitutions, which is replacing text, as CloudFormation does.

    In YAML, too, the text is replaced before it is read: `Seconds: ${Seconds}` is a number afterwards. What
    looks like a placeholder inside of other text stays, as a shell's `${HOME}` in a command.

    Raises:
        TemplateError: a value is a placeholder without a substitution, or the outcome is not JSON;
            CloudFormation would say nothing before the first execution.
    """
    scalars = {name: as_text(value) for name, value in substitutions.items() if _is_scalar(value)}
    replaced = _replaced(logical_id, text, scalars)
    names = set(_PLACEHOLDER.findall(replaced))
    if unfit := names & set(substitutions):
        raise TemplateError(f"{logical_id}: the substitution {min(unfit)} is no text and no number. Join it.")
    try:
        definition = _read(logical_id, replaced, is_yaml=is_yaml)
    except TemplateError as error:
        raise TemplateError(f"{error} {_lacks(names)}" if names else str(error)) from None
    if left := {name for text, is_resource in _values(definition) for name in _unmade(text, is_resource)}:
        raise TemplateError(f"{logical_id}: {_lacks(left)}")
    return json.dumps(definition, default=str) if is_yaml else replaced


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def _replaced(logical_id: str, text: str, values: Mapping[str, str]) -> str:
    """
    Replace the placeholders, also those in values, as AWS's handler for the resource does.

    Source: aws-cloudformation-resource-providers-stepfunctions, DefinitionProcessor.
    """
    for _ in range(len(values) + 1):
        made = [values[name] for name in _PLACEHOLDER.findall(text) if name in values]
        if not made:
            return text
        if len(text) + sum(map(len, made)) > _LONGEST:
            break
        text = _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)
    raise TemplateError(f"{logical_id}: the substitutions hold each other, in a circle or too often.")


def _lacks(names: Collection[str]) -> str:
    return f"DefinitionSubstitutions lacks {', '.join(sorted(names))}."


def _read(logical_id: str, text: str, *, is_yaml: bool) -> Any:
    import yaml

    language = "YAML" if is_yaml else "JSON"
    try:
        return load_yaml(text) if is_yaml else json.loads(text)
    except (ValueError, yaml.YAMLError) as error:
        raise TemplateError(
            f"{logical_id}: the definition is not {language} after substitution: {error}."
        ) from None


def _values(definition: Any) -> Iterator[tuple[str, bool]]:
    """Each text of a definition, and whether it is the Resource of a Task."""
    waiting = [(definition, False)]
    while waiting:
        value, is_resource = waiting.pop()
        if isinstance(value, str):
            yield value, is_resource
        elif isinstance(value, dict):
            is_task = value.get("Type") == "Task"
            waiting += ((part, is_task and name == "Resource") for name, part in value.items())
        elif isinstance(value, list):
            waiting += ((part, False) for part in value)


def _unmade(text: str, is_resource: bool) -> list[str]:
    """The placeholders of a value that is nothing else; and of a Resource, which is an ARN."""
    return _PLACEHOLDER.findall(text) if is_resource or _PLACEHOLDER.fullmatch(text) else []


def _expect_valid(machine: MachinePlan, when: str = "") -> None:
    if found := complaints(machine.definition):
        raise TemplateError(
            f"AWS would refuse the state machine {machine.name}{when}: {' '.join(found)} "
            "Mend its definition; nothing was created."
        )
