"""The resources that a stack creates, with their physical names and resolved properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from steponce.local.template.intrinsics import Resolver
from steponce.local.template.physical_names import PhysicalNames


class Resources:
    """
    The resources whose condition holds.

    Args:
        template: After the SAM transform.
        resolver: Of the same template.
        names: Where physical names come from.
    """

    def __init__(self, template: Mapping[str, Any], resolver: Resolver, names: PhysicalNames) -> None:
        resources = template.get("Resources", {})
        self.names = names
        self._resolver = resolver
        self._resources = {key: item for key, item in resources.items() if resolver.exists(item)}

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Logical id and kind of each resource, in the template's order."""
        yield from ((logical_id, resource["Type"]) for logical_id, resource in self._resources.items())

    def of_kind(self, kind: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Logical id, name and properties of each resource of a kind, in the template's order."""
        for logical_id, resource in self._resources.items():
            if resource["Type"] == kind:
                properties = self._resolver.resolve(resource.get("Properties", {}))
                yield logical_id, self.names.name(logical_id, kind, properties), properties
