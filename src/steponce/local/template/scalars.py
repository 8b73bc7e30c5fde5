"""A template's scalars as texts and as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steponce.local.errors import TemplateError


def as_text(value: Any) -> str:
    """
    A scalar as CloudFormation writes it into text: YAML's `true` is "true". A list is joined by commas.

    Raises:
        TemplateError: it is null, as a blank value of YAML is.
    """
    if value is None:
        raise TemplateError("A value of the template is null, which CloudFormation refuses. Write one.")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(as_text(part) for part in value)
    return str(value)


def whole_number(logical_id: str, properties: Mapping[str, Any], key: str, default: int) -> int:
    """
    A property that is a whole number, or the text of one.

    Raises:
        TemplateError: it is neither, for instance because a text stands in for a value of SSM.
    """
    value = properties.get(key, default)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise TemplateError(
            f"{logical_id}: {key} is {value!r}, which is no whole number. A value of SSM or of another stack "
            "is not known here: make it a parameter, and give --parameter."
        ) from None
