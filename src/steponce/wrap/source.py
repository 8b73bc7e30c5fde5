"""
A definition's text, read and written with its placeholders.

SAM puts the values of DefinitionSubstitutions into the text before anything parses it. So a placeholder may
stand where JSON has a number: `"MaxConcurrency": ${Most}`. It is text while the definition is worked on.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from steponce.lint.json_or_yaml import DEEPEST, Unreadable, expect_shallow, no_key_twice
from steponce.wrap.errors import CannotWrap

_BARE = "\x00bare:"
_TEXT_OR_PLACEHOLDER = re.compile(r'"(?:[^"\\]|\\.)*"?|(?P<placeholder>\$\{[\w.-]+\})')
_WRITTEN = re.compile(r'"\\u0000bare:(\$\{[\w.-]+\})"')
_RESOURCE = re.compile(r'("Resource": )"\$\{([\w.-]+)\}"')
_PLACEHOLDER = re.compile(r"\$\{([\w.-]+)\}")


def text_of(path: Path) -> str:
    """
    The text of a file.

    Raises:
        CannotWrap: it is not UTF-8.
        OSError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CannotWrap([f"{path} is not UTF-8: {error.reason} at byte {error.start}."]) from None


def read(text: str) -> dict[str, Any]:
    """
    The definition in a text.

    Raises:
        CannotWrap: it is not a JSON object, it is too large or nested too deeply, or it has a key twice or a
            lone surrogate.
    """
    try:
        found = json.loads(_TEXT_OR_PLACEHOLDER.sub(_quoted, text), object_pairs_hook=no_key_twice)
        expect_shallow(found)
    except RecursionError:
        raise CannotWrap([f"The definition is nested more than {DEEPEST} levels deep."]) from None
    except Unreadable as error:
        raise CannotWrap([f"The definition cannot be read. {error}"]) from None
    except ValueError as error:
        raise CannotWrap(
            [
                f"The definition is not JSON: {error}. If it is YAML, write it as JSON. Name a template with "
                "--into, and its machine with --machine."
            ]
        ) from None
    if not isinstance(found, dict):
        raise CannotWrap(["The definition is not a JSON object."])
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise CannotWrap(
            [f"The definition has a lone surrogate, {error.object[error.start]!a}. Remove it."]
        ) from None
    return found


def write(definition: dict[str, Any]) -> str:
    """The text of a definition that `read` has read."""
    return _WRITTEN.sub(r"\1", json.dumps(definition, indent=2, ensure_ascii=False)) + "\n"


def placeholders(text: str) -> set[str]:
    """The names of the placeholders in a text."""
    return set(_PLACEHOLDER.findall(text))


def shown(value: Any) -> str:
    """A value as the text has it."""
    return str(value).removeprefix(_BARE)


def with_values(definition: dict[str, Any]) -> str:
    """
    The text that AWS may get once the placeholders have values, for a check.

    Only those that a check needs have one: a number and a task's resource.
    """
    text = write(definition)
    text = _TEXT_OR_PLACEHOLDER.sub(lambda match: match[0] if match["placeholder"] is None else "1", text)
    return _RESOURCE.sub(r'\1"arn:aws:lambda:us-east-1:123456789012:function:\2"', text)


def _quoted(match: re.Match[str]) -> str:
    placeholder = match["placeholder"]
    return match[0] if placeholder is None else json.dumps(_BARE + placeholder)
