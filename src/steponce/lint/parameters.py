"""The rule for the parameters of a call, against the model of its API."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from botocore.model import ListShape, MapShape, Shape, StructureShape

from steponce.lint.asl import as_object
from steponce.lint.calls import Call
from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Machine, State
from steponce.lint.rule import Rules
from steponce.lint.services import model_of, operation_of

PARAMETERS = Rules("general")

_KINDS = {"boolean": bool, "integer": int, "long": int}


@PARAMETERS.rule("api-parameters", "error")
def api_parameters(machine: Machine) -> Complaints:
    """
    A Task calls an action that its service does not have, or a parameter is misspelt or missing.

    The Task fails in each execution, or runs without the parameter. The models of boto3 say what each API
    takes. The rule applies to integrations that take the API's own parameters. In JSONata it checks only the
    action. If AWS has an API that the installed boto3 does not know, update boto3.

    Source: [Parameters of service integrations](https://docs.aws.amazon.com/step-functions/latest/dg/integrate-services.html).
    """
    for state, call in machine.tasks():
        model, operation = model_of(call), operation_of(call)
        if model is not None and operation is None:
            names = [name[:1].lower() + name[1:] for name in model.operation_names]
            text = f"{call.service} has no action {call.action}."
            yield Complaint(state.name, text + _hint(call.action, names))
        elif operation is not None and operation.input_shape is not None and not state.is_jsonata:
            for text in _misfits(_given(state), operation.input_shape, "Parameters", call):
                yield Complaint(state.name, text)


def _given(state: State) -> Any:
    return as_object(state.body.get("Parameters"))


def _misfits(value: Any, shape: Shape, where: str, call: Call) -> Iterator[str]:
    """Complaints about a literal that the API would refuse; a value read at run time passes."""
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        yield from _misfits_of_object(value, shape, where, call)
    elif isinstance(shape, MapShape) and isinstance(value, dict):
        for key, part in value.items():
            if not key.endswith(".$"):
                yield from _misfits(part, shape.value, f"{where}.{key}", call)
    elif isinstance(shape, ListShape) and isinstance(value, list):
        for part in value:
            yield from _misfits(part, shape.member, where, call)
    elif not _may_fit(value, shape):
        yield from _misfit_of_leaf(value, shape, where)


def _may_fit(value: Any, shape: Shape) -> bool:
    """Whether a text may become what the API wants: with a placeholder in it, or as a flag or a number."""
    if not isinstance(value, str):
        return False
    return "${" in value or (shape.type_name in _KINDS and _is_written_as_text(value))


def _misfit_of_leaf(value: Any, shape: Shape, where: str) -> Iterator[str]:
    if shape.type_name in _KINDS and not isinstance(value, _KINDS[shape.type_name]):
        yield f"{where} is {value!r}, and must be of type {shape.type_name}."
    elif shape.type_name == "string" and isinstance(value, int | float):
        yield f"{where} is {value!r}, and must be text."
    elif isinstance(value, str) and (allowed := getattr(shape, "enum", [])) and value not in allowed:
        yield f"{where} is {value!r}, and must be one of {', '.join(allowed)}."


def _is_written_as_text(value: str) -> bool:
    """Whether AWS accepts this text for a flag or a number, as in its own samples."""
    return value in ("true", "false") or value.isdecimal()


def _misfits_of_object(value: dict[str, Any], shape: StructureShape, where: str, call: Call) -> Iterator[str]:
    # The AWS SDK integration spells some names as the SDK for Java does, which differs in capitals only.
    fold = str.lower if call.integration == "sdk" else str
    members = {fold(name[:1].upper() + name[1:]): member for name, member in shape.members.items()}
    shown = {fold(name[:1].upper() + name[1:]): name[:1].upper() + name[1:] for name in shape.members}
    given = {fold(key.removesuffix(".$")): key for key in value}
    for name in shape.required_members:
        if fold(name[:1].upper() + name[1:]) not in given:
            yield f"{where} has no {name[:1].upper() + name[1:]}, which is required."
    for name, key in given.items():
        if name not in members:
            yield f"{where} has an unknown {key}.{_hint(name, shown)}"
        elif not key.endswith(".$"):
            yield from _misfits(value[key], members[name], f"{where}.{key}", call)


def _hint(name: str, known: Any) -> str:
    close = get_close_matches(name.removesuffix(".$"), list(known), 1)
    return f" Did you mean {close[0]}?" if close else ""
