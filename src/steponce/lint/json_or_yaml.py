"""Reads JSON and YAML, and says on which line something is wrong."""

from __future__ import annotations

import json
from typing import Any

from steponce.errors import SteponceError

DEEPEST = 200
"""How many objects and lists may be inside of each other."""

_MOST = 1_000_000
"""How many values a text may have. By YAML's aliases a short text can have any number."""

_DATE = "tag:yaml.org,2002:timestamp"
_TOO_LONG = "It has a number with thousands of digits."
UNREADABLE_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What readers of YAML raise for a value that is not what its tag or its escape says."""

_NO_VALUE = "It has a number with thousands of digits, or a value that is not what its tag says."
_TOO_DEEP = f"It is nested more than {DEEPEST} levels deep."


class Unreadable(SteponceError):
    """
    A file is not what it must be.

    Attributes:
        line: Where, from 1 on.
    """

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


def read_text(text: str) -> Any:
    """
    What a text in JSON or YAML says, as JSON can hold it. A text with CloudFormation's tags is not read here.

    Returns:
        None for YAML with tags of its own, such as !Sub.

    Raises:
        Unreadable: it is neither, it is nested too deeply, or a key stands twice in one object: only the
            second would count.
        ModuleNotFoundError: it is not JSON, and PyYAML is not installed.
    """
    try:
        content = _read(text)
        expect_shallow(content)
    except RecursionError:
        raise Unreadable(_TOO_DEEP) from None
    return content


def expect_shallow(content: Any) -> None:
    """
    Refuse content that Python would run out of stack or memory for.

    Raises:
        Unreadable: it is nested too deeply, it has too many values, or it is inside of itself.
    """
    level, depth, values = [content], 0, 0
    while level:
        depth, values = depth + 1, values + len(level)
        if depth > DEEPEST:
            raise Unreadable(_TOO_DEEP)
        if values > _MOST:
            raise Unreadable(f"It has more than {_MOST:,} values.")
        level = [part for one in level for part in _parts(one)]


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _read(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=no_key_twice)
    except json.JSONDecodeError as error:
        if text.lstrip()[:1] in ("{", "["):
            raise Unreadable(f"It is not JSON: {error.msg}.", error.lineno) from None
    except ValueError:
        raise Unreadable(_TOO_LONG) from None
    return _read_yaml(text)


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """
    Make an object of a JSON text, for `json.loads`.

    Raises:
        Unreadable: a key stands twice. Only its last value would count.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Unreadable(f"The key {key!r} stands twice in one object. Remove one of them.")
        found[key] = value
    return found


def _read_yaml(text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that stands twice or is not text. Dates stay text, as in CloudFormation."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value:
                line = key.start_mark.line + 1
                if not isinstance(key, yaml.ScalarNode):
                    raise Unreadable("A key is a list or an object. Give it a name.", line)
                if key.value in seen:
                    raise Unreadable(f"The key {key.value!r} stands twice. Remove one of them.", line)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag != _DATE]
        for first, known in Loader.yaml_implicit_resolvers.items()
    }
    try:
        content = Loader(text).get_single_data()
        expect_shallow(content)
        return json.loads(json.dumps(content, default=str))
    except yaml.constructor.ConstructorError:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise Unreadable(f"It is not YAML: {error.problem}.", mark.line + 1 if mark else 1) from None
    except yaml.reader.ReaderError as error:
        character, line = text[error.position], text.count("\n", 0, error.position) + 1
        raise Unreadable(f"It is not YAML: it has the character U+{ord(character):04X}.", line) from None
    except UNREADABLE_VALUE:  # as !!int and !!timestamp raise them
        raise Unreadable(_NO_VALUE) from None
