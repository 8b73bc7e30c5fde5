"""
The template with its nested stack in place: one document, as if nothing were nested.

Rules about permissions, names and queues look at all of it at once, wherever a resource stands.
"""

from __future__ import annotations

import copy
import re
from typing import Any

Document = dict[str, Any]

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def in_place(parent: Document, logical_id: str, nested: Document) -> Document:
    """
    Put the resources of a nested stack in its place.

    Args:
        parent: The template that nests the stack, its intrinsic functions in their long form.
        logical_id: Of the nested stack.
        nested: The stack's template. What both have under one name must be equal.
    """
    whole = copy.deepcopy(parent)
    handed = whole["Resources"].pop(logical_id)["Properties"]["Parameters"]
    inner = _with_values(copy.deepcopy({key: nested.get(key, {}) for key in _PARTS}), handed)
    outputs = {f"Outputs.{name}": output["Value"] for name, output in inner.pop("Outputs").items()}
    whole = _with_outputs(whole, logical_id, outputs)
    common = inner.pop("Globals", {}).get("Function", {}).get("Environment", {}).get("Variables", {})
    if common:
        _add(whole["Globals"]["Function"]["Environment"]["Variables"], common)
    for part, entries in inner.items():
        _add(whole.setdefault(part, {}), entries)
    return whole


_PARTS = ("Conditions", "Resources", "Outputs", "Globals")


def _add(whole: Document, entries: Document) -> None:
    for name, entry in entries.items():
        if whole.setdefault(name, entry) != entry:
            raise ValueError(f"{name} is {whole[name]} in one template, and {entry} in the other")


def _with_values(value: Any, handed: Document) -> Any:
    """What a nested template says, with the values of its parameters as the parent hands them in."""
    if isinstance(value, list):
        return [_with_values(part, handed) for part in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Ref": str(name)} if name in handed:
            return copy.deepcopy(handed[name])
        case {"Fn::Sub": str(text)}:
            return _sub(text, {}, handed)
        case {"Fn::Sub": [text, variables]}:
            return _sub(text, _with_values(variables, handed), handed)
    found = {key: _with_values(part, handed) for key, part in value.items()}
    match found:
        case {"Fn::Select": [1, {"Fn::Split": ["/", {"Fn::GetAtt": [table, "Arn"]}]}]}:
            return {"Ref": table}  # the name of a table in its ARN
    return found


def _sub(text: str, variables: Document, handed: Document) -> Document:
    """A text with placeholders: texts go in as they are, everything else becomes a variable of its own."""
    names = set(_PLACEHOLDER.findall(text)) & (handed.keys() - variables.keys())
    needed = {name: handed[name] for name in sorted(names)}
    for name, value in needed.items():
        match value:
            case {"Fn::Sub": str(inner)}:
                text = text.replace(f"${{{name}}}", inner)
            case {"Ref": str(other)}:
                text = text.replace(f"${{{name}}}", f"${{{other}}}")
            case _:
                variables = variables | {name: value}
    return {"Fn::Sub": [text, variables] if variables else text}


def _with_outputs(value: Any, logical_id: str, outputs: Document) -> Any:
    """What the parent reads of the nested stack, replaced by what it is."""
    if isinstance(value, list):
        return [_with_outputs(part, logical_id, outputs) for part in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Fn::GetAtt": [str(name), output]} if name == logical_id:
            return outputs[output]
        case {"Fn::GetAtt": str(text)} if text.startswith(f"{logical_id}."):
            return outputs[text.partition(".")[2]]
    return {key: _with_outputs(part, logical_id, outputs) for key, part in value.items()}
