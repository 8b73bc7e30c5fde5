"""A template's text: its sections and resources, in the form that CloudFormation takes."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steponce.errors import shown
from steponce.local.errors import TemplateError, not_supported

if TYPE_CHECKING:
    import yaml

_SECTIONS = ("Parameters", "Mappings", "Conditions", "Globals", "Outputs")
_OF_OBJECTS = ("Parameters", "Outputs")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


def read_source(path: Path) -> dict[str, Any]:
    """
    Read a template as it is written, without empty sections.

    Raises:
        TemplateError: there is none, or it has no resources, or one of its parts is no object.
    """
    if not path.is_file():
        raise TemplateError(f"There is no template {path}. Give its path, or go to the folder that has it.")
    try:
        source = _load(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise TemplateError(f"{path} is not a template: it is nested too deeply.") from None
    except Exception as error:  # yaml's own errors have no common base with the constructor's
        raise TemplateError(f"{path} is not a template: {error}") from error
    if not isinstance(source, dict) or not isinstance(source.get("Resources"), dict):
        raise TemplateError(f"{path} is not a template: it has no Resources.")
    source = {key: part for key, part in source.items() if part is not None}  # an empty section is null
    for section in _SECTIONS:
        entries = _object(source.get(section, {}), section)
        for name, entry in entries.items() if section in _OF_OBJECTS else ():
            _object(entry, f"{section}: {name}")
    for name, output in source.get("Outputs", {}).items():
        if "Value" not in output:
            raise TemplateError(f"Outputs: {name} has no Value.")
    for logical_id, resource in source["Resources"].items():
        _expect_resource(logical_id, resource)
    return source


@contextlib.contextmanager
def well_formed(path: Path) -> Iterator[None]:
    """
    Report a part of a template that has another form than its reader takes. CloudFormation, which knows the
    form of every property, would refuse it, too.
    """
    try:
        yield
    except RecursionError:
        raise TemplateError(
            f"{path} cannot be read: it is nested too deeply, or its conditions or names refer to each other "
            "in a circle."
        ) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, re.error) as error:
        raise TemplateError(
            f"{path} cannot be read: a property is missing, or has another form than CloudFormation takes "
            f"({type(error).__name__}: {error})."
        ) from error


def _expect_resource(logical_id: Any, resource: Any) -> None:
    if not isinstance(logical_id, str):
        raise TemplateError(f"Resources: the logical id {shown(logical_id)} is no text.")
    if logical_id.startswith("Fn::"):
        raise TemplateError(not_supported(f"{logical_id}, or any other macro. Write out what it makes."))
    if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
        raise TemplateError(f"{logical_id} is not a resource: it has no Type.")
    properties = _object(resource.get("Properties", {}), f"{logical_id}: Properties")
    if resource["Type"] == "AWS::Serverless::Application" and not isinstance(properties.get("Location"), str):
        raise TemplateError(
            not_supported(f"an application of a repository ({logical_id}). Name a local template.")
        )


def _object(value: Any, what: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise TemplateError(f"{what} is no object.")
    return value


def load_yaml(text: str) -> Any:
    """
    What a text in plain YAML says. Dates stay text: neither CloudFormation nor Step Functions knows any.

    Raises:
        yaml.YAMLError: it is no YAML.
    """
    return _single(_loader(), text)


def _load(text: str) -> Any:
    if text.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):  # YAML may begin so, too
            return json.loads(text)  # whose escapes beyond U+FFFF are two, which YAML refuses
    # The transform takes 0.4 s to import, which only those who deploy should pay.
    from samtranslator.yaml_helper import intrinsics_multi_constructor

    kind = _loader()
    kind.add_multi_constructor("!", intrinsics_multi_constructor)
    return _single(kind, text)


def _loader() -> type[yaml.SafeLoader]:
    import yaml

    # The loader in C, where PyYAML was built with it, takes a tenth of the time.
    base = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag != _TIMESTAMP]
        for first, known in base.yaml_implicit_resolvers.items()
    }
    return type("TemplateLoader", (base,), {"yaml_implicit_resolvers": resolvers})


def _single(kind: type[yaml.SafeLoader], text: str) -> Any:
    loader = kind(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
