"""
What moto works out again for each service, value and node, remembered.

A fifth of DynamoDB's time in moto goes into two answers that never change: under which names an attribute of
a response may be found, and which nodes of an expression a step of its validation is for. And the first call
of each service looks through the folders of all 400.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from moto.core import utils
from moto.core.serialize import AttributePicker, AttributePickerContext, XFormedAttributePicker
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node

from steponce.local.session import service_descriptions


def install() -> None:
    """Put this module's patches in place; a second time changes nothing."""
    if DepthFirstTraverser.traverse is not _traverse:
        for kind in (AttributePicker, XFormedAttributePicker):
            kind.get_possible_keys = _remembering(kind.get_possible_keys)
        DepthFirstTraverser.traverse = _traverse
        utils.create_loader = service_descriptions
        # Now, for requests that come at the same time would all look.
        service_descriptions().list_available_services("service-2")


def _remembering(find: Callable[[Any, AttributePickerContext], Iterable[str]]) -> Any:
    """They follow from the shape, the kind of object and the ways of looking; shapes live as long as moto."""

    @functools.wraps(find)
    def get_possible_keys(picker: Any, context: AttributePickerContext) -> Iterable[str]:
        known: dict[object, tuple[str, ...]] = vars(context.shape).setdefault("steponce_possible_keys", {})
        asked = (find, *picker.alias_providers, type(context.obj), context.key)
        if asked not in known:
            known[asked] = tuple(find(picker, context))
        return known[asked]

    return get_possible_keys


def _traverse(traverser: Any, root: Node) -> Any:
    """As moto's own, bottom up, with its question of the wanted classes asked once and not at each node."""
    wanted = traverser.nodes_to_be_processed()

    def go(node: Any, place: int) -> Any:
        if not isinstance(node, Node):
            return node
        parent = node.parent
        for number, child in enumerate(node.children or ()):
            traverser.pre_processing_of_child(node, number)
            go(child, number)
        if isinstance(node, wanted):
            node = traverser.process(node)
            node.parent = parent
            if parent:
                parent.children[place] = node
        return node

    return go(root, -1)
