"""
What moto works out again for each call and value, remembered, or never asked.

Much of a call's time in moto goes into answers that never change: under which names an attribute of a
response may be found, and which actions a service has. Each value of an item is asked for all ten types that
it could have, and each event of a history for forty kinds of details, under two names each. And the first
call of each service looks through the folders of all 400.
"""

from __future__ import annotations

import functools
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

from steponce.local.session import service_descriptions

_NAMED_AS_IN_THE_API = ("AttributeValue", "HistoryEvent")


def install() -> None:
    """Put this module's patches in place; a second time changes nothing."""
    if utils.create_loader is not service_descriptions:
        for kind in (AttributePicker, XFormedAttributePicker):
            kind.get_possible_keys = _remembering(kind.get_possible_keys)
        BaseJSONSerializer._serialize_type_structure = _as_it_is_named(
            BaseJSONSerializer._serialize_type_structure
        )
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
