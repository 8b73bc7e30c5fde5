"""CloudFormation's intrinsic functions, resolved without CloudFormation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from steponce.errors import shown
from steponce.local.errors import TemplateError, not_supported
from steponce.local.template.parameters import is_from_ssm, is_list, items_of
from steponce.local.template.physical_names import (
    ACCOUNT,
    ALIAS,
    FUNCTION,
    NESTED_STACK,
    PARTITION,
    VERSION,
    PhysicalNames,
)
from steponce.local.template.scalars import as_text

if TYPE_CHECKING:
    from steponce.local.template.nested import NestedStacks

_NO_VALUE = object()
_PLACEHOLDER = re.compile(r"\$\{(!?)([^{}]*)\}")


class Resolver:
    """
    Resolves what a template's resources, conditions and outputs say.

    Args:
        template: After the SAM transform.
        parameters: Every parameter of the template with its value.
        names: Where physical names come from.
        nested: The stacks that the template nests, whose outputs it may read.
    """

    def __init__(
        self,
        template: Mapping[str, Any],
        parameters: Mapping[str, str],
        names: PhysicalNames,
        nested: NestedStacks | None = None,
    ) -> None:
        self._declared: Mapping[str, Any] = template.get("Parameters", {})
        self._resources: Mapping[str, Any] = template.get("Resources", {})
        self._conditions: Mapping[str, Any] = template.get("Conditions", {})
        self._mappings: Mapping[str, Any] = template.get("Mappings", {})
        self._names = names
        self._nested = nested
        self.imported: set[str] = set()
        """The exports of other stacks that the template imports."""
        self._values: dict[str, Any] = {**_typed(template, parameters), **_pseudo_parameters(names)}
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Condition": self.condition,
            "Fn::GetAtt": self._get_att,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::If": self._if,
            "Fn::Equals": self._equals,
            "Fn::Not": lambda value: not self.resolve(value[0]),
            "Fn::And": lambda value: all(self.resolve(part) for part in value),
            "Fn::Or": lambda value: any(self.resolve(part) for part in value),
            "Fn::FindInMap": self._find_in_map,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::GetAZs": lambda _: [f"{self._names.region}a", f"{self._names.region}b"],
            "Fn::Base64": self.resolve,
            "Fn::ImportValue": self._import_value,
            "Fn::Length": lambda value: len(self.resolve(value)),
            "Fn::ToJsonString": lambda value: json.dumps(self.resolve(value)),
        }

    def resolve(self, value: Any) -> Any:
        """The value with every intrinsic function replaced by what it answers."""
        if isinstance(value, list):
            resolved = [self.resolve(part) for part in value]
            return [part for part in resolved if part is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((key, argument),) = value.items()
            if key in self._functions and not (key == "Condition" and not isinstance(argument, str)):
                return self._apply(key, argument)
            if key.startswith("Fn::"):
                known = ", ".join(sorted(self._functions))
                raise TemplateError(not_supported(f"{key}. Known: {known}."))
        resolved_items = ((key, self.resolve(part)) for key, part in value.items())
        return {key: part for key, part in resolved_items if part is not _NO_VALUE}

    def _apply(self, function: str, argument: Any) -> Any:
        try:
            return self._functions[function](argument)
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise TemplateError(
                f"{function} does not take {shown(str(argument))}. Write it as CloudFormation does."
            ) from error

    def condition(self, name: str) -> bool:
        """Whether the template's condition of this name holds."""
        if name not in self._conditions:
            _expect_no_macro("Conditions", self._conditions)
            raise TemplateError(f"There is no condition {name!r} under Conditions.")
        return bool(self.resolve(self._conditions[name]))

    def exists(self, item: Mapping[str, Any]) -> bool:
        """Whether a resource or output is created at all."""
        return "Condition" not in item or self.condition(item["Condition"])

    def _ref(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        kind, physical = self._named(name)
        if kind in (ALIAS, VERSION):
            return self._qualified(name, kind)
        return self._names.ref(kind, physical)

    def _qualified(self, logical_id: str, kind: str) -> str:
        """The ARN of a function with an alias or a version, all of which are the same here."""
        properties = self._resources[logical_id].get("Properties", {})
        function = str(self.resolve(properties["FunctionName"])).rpartition(":")[2]
        qualifier = self.resolve(properties["Name"]) if kind == ALIAS else "1"
        return f"{self._names.arn(FUNCTION, function)}:{qualifier}"

    def _import_value(self, value: Any) -> str:
        """The value of another stack's export is unknown here; the export's name stands in for it."""
        name = as_text(self.resolve(value))
        self.imported.add(name)
        return name

    def _get_att(self, value: Any) -> str:
        logical_id, attribute = value.split(".", 1) if isinstance(value, str) else value
        kind, physical = self._named(logical_id)
        name = str(self.resolve(attribute))
        if kind == NESTED_STACK and self._nested and logical_id in self._nested:
            properties = self.resolve(self._resources[logical_id].get("Properties", {}))
            return self._nested.output(logical_id, properties, name.removeprefix("Outputs."))
        return self._names.attribute(kind, physical, name)

    def _named(self, logical_id: str) -> tuple[str, str]:
        if logical_id not in self._resources:
            raise TemplateError(f"{logical_id!r} is neither a parameter nor a resource of the template.")
        resource = self._resources[logical_id]
        # Only what names come from counts, so a resource may speak of others that speak of it.
        ends = ("Name", "FifoQueue", "FifoTopic")
        own = {key: part for key, part in resource.get("Properties", {}).items() if key.endswith(ends)}
        return resource["Type"], self._names.name(logical_id, resource["Type"], self.resolve(own))

    def _sub(self, value: Any) -> str:
        text, local = (value, {}) if isinstance(value, str) else value

        def replacement(match: re.Match[str]) -> str:
            literal, name = match[1], match[2].strip()  # CloudFormation takes blanks around a name
            if literal:
                return "${" + match[2] + "}"
            if name in local:
                return as_text(self.resolve(local[name]))
            known = self._get_att(name) if "." in name else self._ref(name)
            return as_text(known)

        return _PLACEHOLDER.sub(replacement, text)

    def _join(self, value: Any) -> str:
        separator, parts = value
        return str(separator).join(as_text(part) for part in self.resolve(parts))

    def _if(self, value: Any) -> Any:
        name, when_true, when_false = value
        return self.resolve(when_true if self.condition(name) else when_false)

    def _equals(self, value: Any) -> bool:
        left, right = (as_text(self.resolve(part)) for part in value)
        return left == right

    def _find_in_map(self, value: Any) -> Any:
        mapping, first, second = (as_text(self.resolve(part)) for part in value[:3])
        try:
            return self._mappings[mapping][first][second]
        except KeyError:
            _expect_no_macro("Mappings", self._mappings, self._mappings.get(mapping, {}))
            raise TemplateError(f"Mappings has no {mapping}.{first}.{second}.") from None

    def _select(self, value: Any) -> Any:
        index, choices = self.resolve(value)
        if len(choices) == 1 and self._is_from_ssm(value[1]):
            return choices[0]  # one text stands in for the list
        return choices[int(index)]

    def _is_from_ssm(self, value: Any) -> bool:
        name = value.get("Ref", "") if isinstance(value, Mapping) else ""
        return is_from_ssm(self._declared.get(name, {}))

    def _split(self, value: Any) -> list[str]:
        separator, text = self.resolve(value)
        return str(text).split(separator)


def _expect_no_macro(section: str, *parts: Mapping[str, Any]) -> None:
    """Refuse a part of a section that AWS's macros fill before CloudFormation reads it."""
    if any("Fn::Transform" in part for part in parts):
        raise TemplateError(not_supported(f"Fn::Transform in {section}. Write out what it makes."))


def _typed(template: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Parameter values, those that are lists as lists."""
    declared = template.get("Parameters", {})
    return {
        name: items_of(value) if is_list(declared.get(name, {})) else value
        for name, value in parameters.items()
    }


def _pseudo_parameters(names: PhysicalNames) -> dict[str, Any]:
    # Templates take a part of the id as a suffix for names, so it is the same in each run.
    stack = f"stack/{names.stack}/{uuid5(NAMESPACE_URL, f'{names.region}/{names.stack}')}"
    return {
        "AWS::AccountId": ACCOUNT,
        "AWS::NoValue": _NO_VALUE,
        "AWS::NotificationARNs": [],
        "AWS::Partition": PARTITION,
        "AWS::Region": names.region,
        "AWS::StackId": f"arn:{PARTITION}:cloudformation:{names.region}:{ACCOUNT}:{stack}",
        "AWS::StackName": names.stack,
        "AWS::URLSuffix": "amazonaws.com",
    }
