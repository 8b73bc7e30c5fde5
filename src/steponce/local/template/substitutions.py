"""DefinitionSubstitutions: a definition's placeholders, replaced as CloudFormation does."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from steponce.local.errors import TemplateError
from steponce.local.template.scalars import as_text
from steponce.local.template.source import load_yaml

_LONGEST = 10 * 1_048_576  # ten times as much as AWS takes, which `complaints` says
_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")


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
