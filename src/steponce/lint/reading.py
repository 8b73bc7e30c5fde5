"""Reads JSON and YAML, and says on which line something is wrong."""

from __future__ import annotations

import json
from typing import Any

from steponce.errors import SteponceError


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
        Unreadable: it is neither, or a key stands twice in one object: only the second would count.
        ModuleNotFoundError: it is not JSON, and PyYAML is not installed.
    """
    try:
        return json.loads(text, object_pairs_hook=_no_key_twice)
    except json.JSONDecodeError as error:
        if text.lstrip()[:1] in ("{", "["):
            raise Unreadable(f"It is not JSON: {error.msg}.", error.lineno) from None
    return _read_yaml(text)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Unreadable(f"The key {key!r} stands twice in one object. Remove one of them.")
        found[key] = value
    return found


def _read_yaml(text: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that stands twice."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key, _ in node.value:
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise Unreadable(f"The key {key.value!r} stands twice. Remove one of them.", line)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    loader = Loader(text)
    try:
        content = loader.get_single_data()
    except yaml.constructor.ConstructorError:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise Unreadable(f"It is not YAML: {error.problem}.", mark.line + 1 if mark else 1) from None
    except yaml.YAMLError as error:
        raise Unreadable(f"It is not YAML: {error}.") from None
    finally:
        loader.dispose()
    return json.loads(json.dumps(content, default=str))
