"""What another process must know of a running stack, in a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from steponce.local.errors import FactsUnreadable, LocalStackError
from steponce.program import program

FOLDER = ".steponce"
_FILE = "stack.json"
_TEXTS = ("name", "region", "logs")
_ENDPOINTS = ("states", "dynamodb", "lambda", "aws", "http")
_HOST = re.compile(r"[0-9A-Za-z_:-]{1,63}(\.[0-9A-Za-z_-]{1,63})*")
_LARGEST_PID = 2**31 - 1


def write_facts(facts: Mapping[str, Any], folder: str | Path = FOLDER) -> Path:
    """
    Write the facts of a running stack; returns the file.

    Raises:
        OSError: they cannot be written. What was there before stays.
    """
    path = Path(folder) / _FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    # Renaming is atomic: a reader gets the old facts or the new ones, never half.
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        draft.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def remove_facts(facts: Mapping[str, Any], folder: str | Path = FOLDER) -> None:
    """Remove the facts of a stack that ends. Those of another one, which has replaced them, stay."""
    path = Path(folder) / _FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        is_another_s = _are_facts(found) and found != facts
    except (OSError, ValueError, RecursionError):
        is_another_s = False
    if not is_another_s:
        path.unlink(missing_ok=True)


def read_facts(folder: str | Path = FOLDER) -> dict[str, Any]:
    """
    Read the facts of the stack that runs.

    Raises:
        FactsUnreadable: the file has been damaged, or another program has written it.
        LocalStackError: no stack runs.
    """
    path = Path(folder) / _FILE
    damaged = (
        f"{path} cannot be read as the facts of a local stack. If one runs, end it. Move the file away, and "
        f"start one with: {program()} up"
    )
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if not _are_facts(facts):
            raise ValueError
    except FileNotFoundError:
        raise LocalStackError(f"No local stack runs here. Start one with: {program()} up") from None
    except OSError:
        raise LocalStackError(damaged) from None
    except (ValueError, RecursionError):
        raise FactsUnreadable(damaged) from None
    if not _is_alive(facts["pid"]):
        raise LocalStackError(f"The local stack that ran here is gone. Start one with: {program()} up")
    return dict(facts)


def _are_facts(found: Any) -> bool:
    """
    Whether this has the form of `RunningStack.facts`. A port that is no number raises ValueError.

    For a service without an address, boto3 would call AWS.
    """
    if not isinstance(found, dict) or not all(found.get(name) and _is_text(found[name]) for name in _TEXTS):
        return False
    pid, maps = found.get("pid"), [found.get("endpoints"), found.get("outputs")]
    if type(pid) is not int or not 0 < pid <= _LARGEST_PID:
        return False
    if not all(isinstance(one, dict) and all(map(_is_text, one.values())) for one in maps):
        return False
    endpoints = found["endpoints"]
    return all(name in endpoints for name in _ENDPOINTS) and all(map(_is_address, endpoints.values()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_address(url: str) -> bool:
    parts = urlsplit(url)
    return bool(_HOST.fullmatch(parts.hostname or "")) and parts.port is not None and url.split() == [url]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
