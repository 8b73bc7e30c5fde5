"""The text form of a template's scalars."""

from __future__ import annotations

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
