"""
A SAM template that is changed where it must be, and otherwise stays as it is: its comments, quotes and order.

Short functions of CloudFormation (`!Ref`, `!If`) are values with a tag.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.anchor import Anchor
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.error import YAMLError
from ruamel.yaml.tag import Tag

from steponce.lint.json_or_yaml import UNREADABLE_VALUE, Unreadable, expect_shallow
from steponce.wrap.errors import CannotWrap
from steponce.wrap.kept_lines import keep_lines

SECTIONS = ("Parameters", "Conditions", "Outputs")
"""The sections that get entries, besides Resources."""

_END = re.compile(r"^\.\.\.\s*\Z", re.MULTILINE)
_FIRST_RESOURCE = re.compile(
    r"^(['\"]?)Resources\1[ \t]*:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*( +)[^\s#]", re.MULTILINE
)
_TEXT = "tag:yaml.org,2002:str"
_IN_TEXT = re.compile(r"\$\{(\w+)")


def read(text: str) -> CommentedMap:
    """
    The template in a text.

    Raises:
        CannotWrap: it is JSON or not YAML, or no template, or one of its parts has another form than
            CloudFormation takes.
    """
    if _is_json(text):
        raise CannotWrap(["The template is JSON. Convert it to YAML first, for example with cfn-flip."])
    found = _loaded(text)
    if not isinstance(found, CommentedMap) or not isinstance(found.get("Resources"), CommentedMap):
        raise CannotWrap(["The template has no Resources."])
    for section in SECTIONS:
        if found.get(section, found) is None:
            del found[section]  # in YAML, a name without a value
        elif section in found:
            expect_map(found[section], section)
    for name, resource in found["Resources"].items():
        if not str(name).startswith("Fn::"):  # a macro may make anything
            _expect_resource(name, resource)
    return found


def _loaded(text: str) -> Any:
    try:
        found = _yaml(text).load(text)
        expect_shallow(found)
    except YAMLError as error:
        raise CannotWrap([f"The template is not YAML: {error}."]) from None
    except Unreadable as error:
        raise CannotWrap([f"The template cannot be read. {error}"]) from None
    except RecursionError:
        raise CannotWrap(["The template is nested too deeply. Move a part into a nested stack."]) from None
    except UNREADABLE_VALUE as error:
        raise CannotWrap(
            [f"The template has a value that cannot be read: {error}. Write it in quotes."]
        ) from None
    return found


def _is_json(text: str) -> bool:
    """JSON is YAML as well, but what is written would be YAML only."""
    try:
        return isinstance(json.loads(text.removeprefix("\ufeff")), dict)
    except (ValueError, RecursionError):
        return False


def _expect_resource(name: Any, resource: Any) -> None:
    if expect_map(resource, name).get("Properties", resource) is not None:
        expect_map(resource.get("Properties", resource), f"{name}: Properties")


def scalar(text: str) -> str:
    """A text as a value of YAML 1.1, which SAM reads. It has quotes only if it is another value without."""
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    try:
        ((_, value),) = yaml.compose(f"name: {text}").value
        is_text = (value.tag, value.value) == (_TEXT, text)
    except (YAMLError, ValueError):
        is_text = False
    return text if is_text else json.dumps(text, ensure_ascii=False)


def resources_of(template: CommentedMap, kind: str) -> dict[str, CommentedMap]:
    """The resources of a type, by logical id. What a macro makes is not among them."""
    every = template["Resources"].items()
    return {name: one for name, one in every if isinstance(one, CommentedMap) and one.get("Type") == kind}


def expect_map(value: Any, what: Any) -> CommentedMap:
    """
    The value, if it is an object that can be changed.

    Raises:
        CannotWrap: it is another one, also a function of CloudFormation.
    """
    if not isinstance(value, CommentedMap):
        raise CannotWrap([f"{what} is no object in the template, so it cannot be changed."])
    return value


def expect_own(template: CommentedMap, parts: Iterable[Any], whose: str) -> None:
    """
    Refuse to change parts that stand in other places, too, by an alias or a merge of YAML.

    Raises:
        CannotWrap: one of them does.
    """
    times = Counter(map(id, _objects(template)))
    if any(times[id(part)] > 1 for part in parts):
        raise CannotWrap(
            [
                f"{whose} shares a part with another place of the template, by an anchor of YAML. "
                "It would be changed there, too. Write it out."
            ]
        )


def _objects(part: CommentedMap) -> Iterator[Any]:
    """All objects and lists below a part, as often as they stand there."""
    return (value for _, _, value in _values(part) if isinstance(value, CommentedMap | CommentedSeq))


def write(template: CommentedMap, before: str) -> str:
    """
    The text of a template. Lines whose content has not changed stay as they were.

    They are all written anew if the lines that stay do not fit the others, as where lists are indented in
    several ways.
    """
    yaml = _yaml(before)
    end = _END.search(before)
    if end is not None:
        before = before[: end.start()]
    was = _written(yaml, yaml.load(before))
    written = _written(yaml, template)
    kept = keep_lines(before, was, written)
    anew = _written_anew(yaml, kept)
    fits = anew == written or anew == _written_anew(yaml, written)
    whole = kept if fits else written
    return whole if end is None else whole + end[0]


def _written_anew(yaml: YAML, text: str) -> str | None:
    """A text as `yaml` writes its content. None if it is not YAML."""
    try:
        return _written(yaml, yaml.load(text))
    except YAMLError:
        return None


def _written(yaml: YAML, template: CommentedMap) -> str:
    stream = io.StringIO()
    yaml.dump(template, stream)
    return stream.getvalue()


def tagged(tag: str, value: str) -> Any:
    """A short function of one text: `!Ref Machine`."""
    return TaggedScalar(value=value, style='"' if tag == "!Sub" else None, tag=tag)


def copied(value: Any) -> Any:
    """A value to be written once more. An anchor may stand in a text only once, so the copy has none."""
    copy = deepcopy(value)
    for one in [copy, *(inner for _, _, inner in _values(copy))]:
        if hasattr(one, Anchor.attrib):
            delattr(one, Anchor.attrib)
    return copy


def function(tag: str, arguments: list[Any]) -> Any:
    """A short function of a list: `!If [HasLimits, yes, no]`."""
    found = CommentedSeq(arguments)
    found.yaml_set_ctag(Tag(suffix=tag))
    found.fa.set_flow_style()
    return found


def shown(value: Any) -> str:
    """A value for a comparison or a message."""
    return str(value.value) if isinstance(value, TaggedScalar) else str(value)


def tag_of(value: Any) -> str | None:
    """The short function that a value is; None if it is none."""
    found = getattr(value, "tag", None)
    return None if found is None or found.value is None else str(found.value)


def add(template: CommentedMap, section: str, entries: Mapping[str, Any]) -> None:
    """Add entries to a section, which a template may not have yet."""
    if section not in template and section != "Outputs":
        template.insert(list(template).index("Resources"), section, CommentedMap())
    template.setdefault(section, CommentedMap()).update(entries)


def variables(text: str) -> set[str]:
    """The parameters and resources in the text of a `!Sub`."""
    return set(_IN_TEXT.findall(text))


def rename(part: Any, names: Mapping[str, str]) -> None:
    """Use other names for parameters, conditions and resources, in everything below a part of a template."""
    for holder, key, value in _values(part):
        tag = tag_of(value)
        if isinstance(value, TaggedScalar):
            if tag == "!Sub":
                value.value = _IN_TEXT.sub(lambda match: "${" + names.get(match[1], match[1]), value.value)
            else:
                first, dot, rest = str(value.value).partition(".")
                value.value = names.get(first, first) + dot + rest
        elif isinstance(value, CommentedSeq) and tag == "!If":
            value[0] = names.get(value[0], value[0])
        elif key in ("Condition", "DependsOn") and isinstance(value, str):
            holder[key] = names.get(value, value)


def _values(part: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Every value below a part, with its holder and its key."""
    if isinstance(part, CommentedMap):
        entries: Any = list(part.items())
    else:
        entries = list(enumerate(part)) if isinstance(part, CommentedSeq) else []
    for key, value in entries:
        yield part, key, value
        yield from _values(value)


def _yaml(text: str) -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    offset = _indent_of_lists(text)
    yaml.indent(mapping=_indent_of_maps(text), sequence=offset + 2, offset=offset)
    return yaml


def _indent_of_maps(text: str) -> int:
    """How far the first resource is indented; 2 if it has no line of its own."""
    found = _FIRST_RESOURCE.search(text)
    return 2 if found is None else len(found[2])


def _indent_of_lists(text: str) -> int:
    """How much further than its key the first list of a text begins; 2 if there is none."""
    key = 0
    for line in text.splitlines():
        content = line.lstrip()
        if content.startswith("- "):
            return len(line) - len(content) - key
        if content and not content.startswith("#"):
            key = len(line) - len(content)
    return 2
