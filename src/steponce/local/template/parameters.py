"""The values of a template's parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steponce.local.errors import TemplateError
from steponce.local.template.scalars import as_text

_FROM_SSM = "AWS::SSM::Parameter::Value<"

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""Python reads more than this: other scripts, `1_000` and `inf`."""


def parameter_values(
    source: Mapping[str, Any], given: Mapping[str, str], checked: Mapping[str, str] | None = None
) -> dict[str, str]:
    """
    The value of every parameter: a given one, or its default.

    Args:
        source: The template.
        given: Values by the names of parameters.
        checked: Those whose values must be allowed. None for all, the defaults too.

    Raises:
        TemplateError: a parameter is unknown, has no value, or has one that its declaration does not allow.
    """
    declared: Mapping[str, Any] = source.get("Parameters", {})
    if unknown := sorted(set(given) - set(declared)):
        raise TemplateError(
            f"The template has no parameter {', '.join(unknown)}. It has: {', '.join(sorted(declared))}."
        )
    values = {key: as_text(item["Default"]) for key, item in declared.items() if "Default" in item}
    values |= {key: as_text(value) for key, value in given.items()}
    if missing := sorted(set(declared) - set(values)):
        raise TemplateError(f"Parameter {', '.join(missing)} has no default: give it a value.")
    for key, value in values.items():
        if checked is not None and key not in checked:
            continue
        if complaint := _complaint(value, declared[key]):
            said = declared[key].get("ConstraintDescription", "")
            raise TemplateError(f"Parameter {key} is {value!r}; allowed: {complaint}. {said}".rstrip())
    return values


def is_from_ssm(declaration: Mapping[str, Any]) -> bool:
    """Whether a parameter's value is the name of one in SSM, whose value is not known here."""
    return str(declaration.get("Type", "")).startswith(_FROM_SSM)


def is_list(declaration: Mapping[str, Any]) -> bool:
    """Whether a parameter is a list, which is given as one text."""
    kind = str(declaration.get("Type", "")).removeprefix(_FROM_SSM)
    return kind.startswith(("CommaDelimitedList", "List<"))


def items_of(value: str) -> list[str]:
    """The items of a list that is given as one text."""
    return [item.strip() for item in value.split(",")]


def _complaint(value: str, declaration: Mapping[str, Any]) -> str | None:
    """What the declaration allows, if this value is not that; CloudFormation refuses such values too."""
    choices = [as_text(choice) for choice in declaration.get("AllowedValues", [])]
    if choices and not set(items_of(value) if is_list(declaration) else [value]) <= set(choices):
        return ", ".join(choices)
    pattern = declaration.get("AllowedPattern")
    items = value.split(",") if declaration.get("Type") == "CommaDelimitedList" else [value]
    if pattern and not all(re.fullmatch(pattern, item) for item in items):
        return f"what matches {pattern}"
    if declaration.get("Type") == "Number":
        return _outside(_as_number(value), declaration, "MinValue", "MaxValue", "numbers")
    return _outside(len(value), declaration, "MinLength", "MaxLength", "lengths")


def _outside(
    size: float | None, declaration: Mapping[str, Any], least_key: str, most_key: str, what: str
) -> str | None:
    least = float(declaration.get(least_key, "-inf"))
    most = float(declaration.get(most_key, "inf"))
    if size is not None and least <= size <= most:
        return None
    limits = [
        (word, declaration[key])
        for word, key in (("from", least_key), ("to", most_key))
        if key in declaration
    ]
    return " ".join([what, *(f"{word} {limit}" for word, limit in limits)])


def _as_number(value: str) -> float | None:
    return float(value) if _NUMBER.fullmatch(value) else None
