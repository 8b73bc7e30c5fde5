"""
What moto works out again for each call, text, value and node, remembered, or never asked.

Half of DynamoDB's time in moto goes into answers that never change: what the text of an expression means,
which of its nodes a step of its validation is for, under which names an attribute of a response may be found,
and which actions a service has. Each value of an item is asked for all ten types that it could have, and each
event of a history for forty kinds of details, under two names each. And the first call of each service looks
through the folders of all 400.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from botocore.model import StructureShape
from moto.core import responses, utils
from moto.core.serialize import (
    AttributePicker,
    AttributePickerContext,
    BaseJSONSerializer,
    XFormedAttributePicker,
)
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.parsing.ast_nodes import DepthFirstTraverser, Node
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import ActionCountValidator, OverlappingPathsValidator

from steponce.local.session import service_descriptions

_TEXTS = 4096  # that are remembered; an application has a few dozen
_NAMED_AS_IN_THE_API = ("AttributeValue", "HistoryEvent")
_OF_THE_WHOLE = (ActionCountValidator, OverlappingPathsValidator)  # what a whole keeps, its parts keep


def install() -> None:
    """Put this module's patches in place; a second time changes nothing."""
    if DepthFirstTraverser.traverse is not _traverse:
        for kind in (AttributePicker, XFormedAttributePicker):
            kind.get_possible_keys = _remembering(kind.get_possible_keys)
        BaseJSONSerializer._serialize_type_structure = _as_it_is_named(
            BaseJSONSerializer._serialize_type_structure
        )
        DepthFirstTraverser.traverse = _traverse
        Node.__deepcopy__ = _twin
        UpdateExpressionParser.make = functools.lru_cache(_TEXTS)(UpdateExpressionParser.make)
        ConditionExpressionParser._lex_condition_expression = _words_of(ConditionExpressionParser)
        responses.method_names_from_class = functools.cache(responses.method_names_from_class)
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


def _as_it_is_named(serialize: Callable[..., None]) -> Any:
    """What moto has as dicts with the API's own names; no other name is looked for."""

    @functools.wraps(serialize)
    def serialize_structure(
        serializer: Any, serialized: dict[str, Any], value: Any, shape: StructureShape, key: str
    ) -> None:
        if shape.name not in _NAMED_AS_IN_THE_API or type(value) is not dict:
            serialize(serializer, serialized, value, shape, key)
            return
        plain: dict[str, Any] = {}
        for name in value:
            serializer._serialize_structure_member(plain, value, shape.members[name], name)
        serializer._default_serialize(serialized, plain, shape, key)

    return serialize_structure


def _words_of(parser: Any) -> Any:
    """The parser takes the words out of what it gets, so it gets them in a new queue."""
    split = parser._lex_condition_expression

    @functools.lru_cache(_TEXTS)
    def words(text: str) -> tuple[Any, ...]:
        return tuple(split(parser(text, None, None)))

    return lambda asking: deque(words(asking.condition_expression))


def _twin(node: Any, memo: dict[int, Any]) -> Any:
    """The copy of an expression that its validation changes: new nodes around the same names and numbers."""
    if not _is_a(node, Node):
        return node
    twin = object.__new__(type(node))
    vars(twin).update(vars(node), parent=None)
    if node.children is not None:
        twin.children = [_twin(child, memo) for child in node.children]
        for child in twin.children:
            if _is_a(child, Node):
                child.parent = twin
    return twin


def _traverse(traverser: Any, root: Node) -> Any:
    """As moto's own, bottom up, with its question of the wanted classes asked once and not at each node."""
    if isinstance(traverser, _OF_THE_WHOLE):
        return traverser.process(root)
    wanted = traverser.nodes_to_be_processed()
    looks_ahead = type(traverser).pre_processing_of_child is not DepthFirstTraverser.pre_processing_of_child

    def go(node: Any, place: int) -> Any:
        if not _is_a(node, Node):
            return node
        parent = node.parent
        for number, child in enumerate(node.children or ()):
            if looks_ahead:
                traverser.pre_processing_of_child(node, number)
            go(child, number)
        if _is_a(node, wanted):
            node = traverser.process(node)
            node.parent = parent
            if parent:
                parent.children[place] = node
        return node

    return go(root, -1)


def _is_a(thing: object, wanted: type | tuple[type, ...]) -> bool:
    """As `isinstance`, which asks an abstract class each time."""
    kind: type = type(thing)
    return _is_subclass(kind, wanted)


_is_subclass = functools.cache(issubclass)
