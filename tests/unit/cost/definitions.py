"""Small definitions in Amazon States Language."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.rules.renderings import definitions_with

WRITE: dict[str, Any] = {"Type": "Task", "Resource": "arn:aws:states:::dynamodb:updateItem"}
CALL: dict[str, Any] = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke"}
PASS: dict[str, Any] = {"Type": "Pass"}
END: dict[str, Any] = {"Type": "Succeed"}
FAIL: dict[str, Any] = {"Type": "Fail", "Error": "Planted"}


@cache
def run_once(**values: str) -> dict[str, Any]:
    """Our workflow with these values of the template's parameters; do not change it."""
    (text,) = definitions_with(**values)
    rendered: dict[str, Any] = json.loads(text)
    return rendered


def machine(**states: Any) -> dict[str, Any]:
    """A machine that starts with the first of these states."""
    return {"StartAt": next(iter(states)), "States": states}


def to(state: dict[str, Any], target: str) -> dict[str, Any]:
    return state | {"Next": target}


def last(state: dict[str, Any]) -> dict[str, Any]:
    return state | {"End": True}


def choice(*targets: str, default: str | None = None) -> dict[str, Any]:
    """Its first rule that is true; the rules are about one field each."""
    rules = [
        {"Variable": f"$.a{place}", "IsPresent": True, "Next": target} for place, target in enumerate(targets)
    ]
    return {"Type": "Choice", "Choices": rules} | ({"Default": default} if default else {})


def catch(target: str, *names: str) -> dict[str, Any]:
    return {"Catch": [{"ErrorEquals": list(names or ("States.ALL",)), "Next": target}]}


def catches(**names: str) -> dict[str, Any]:
    """Several catchers: the error of each by its target."""
    return {"Catch": [{"ErrorEquals": [name], "Next": target} for target, name in names.items()]}


def parallel(*branches: dict[str, Any]) -> dict[str, Any]:
    return {"Type": "Parallel", "Branches": list(branches)}


def map_of(inner: dict[str, Any], **config: str) -> dict[str, Any]:
    return {"Type": "Map", "ItemProcessor": inner | ({"ProcessorConfig": config} if config else {})}
