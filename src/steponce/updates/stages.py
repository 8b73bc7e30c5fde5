"""
Ids that the stages of one flow hold on a record, until the flow's last side effect.

A flow that halts half-way comes again with the same id, still holds its stages, and goes on. A flow with
another id is refused meanwhile. No clock ends a stage: if a flow never comes again, a person lets go of its
stages.

Stages need a record of their own. `delete_if_newer` and `Versioned` replace a whole record, and would free
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steponce.errors import InvalidRequest
from steponce.updates.item import REMOVE, Changes, ItemOf, typed

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def hold_stage(
    table: str,
    key: Mapping[str, Any],
    stage: str,
    holder: str,
    *,
    dynamodb: DynamoDBClient | None = None,
) -> bool:
    """
    Hold a stage of a record, before the stage's side effect. One conditional UpdateItem.

    Safe to repeat: a stage that the same id holds stays held. A record that is not there is made.

    Args:
        table: The table's name.
        key: The record's key: names and values of one attribute or two.
        stage: The stage's name. The record has the holder's id as `<stage>HeldBy`.
        holder: The id of the request, or of the part of it that this stage belongs to.
        dynamodb: Your own client. Default: one with boto3's defaults, made once.

    Returns:
        Whether this id holds the stage now. False: another does, and nothing was written.

    Raises:
        InvalidRequest: the key, the stage or the id cannot be used.
        Unavailable: no answer; safe to try again.
    """
    attribute = _attribute(stage, holder)
    item = ItemOf(table, key, dynamodb, {attribute})
    written = item.update(
        **Changes({attribute: holder}).arguments(),
        ConditionExpression="attribute_not_exists(#c0) OR #c0 = :c0",
    )
    return written.done


async def hold_stage_async(
    table: str,
    key: Mapping[str, Any],
    stage: str,
    holder: str,
    *,
    dynamodb: DynamoDBClient | None = None,
) -> bool:
    """As `hold_stage`, without blocking the event loop. A cancelled call may have written."""
    return await asyncio.to_thread(hold_stage, table, key, stage, holder, dynamodb=dynamodb)


def let_go_of_stages(
    table: str,
    key: Mapping[str, Any],
    holders: Mapping[str, str],
    *,
    dynamodb: DynamoDBClient | None = None,
) -> bool:
    """
    Let go of all stages of a flow at once, after its last side effect. One conditional UpdateItem.

    Safe to repeat: a stage that no id holds stays so.

    Args:
        table, key, dynamodb: As for `hold_stage`.
        holders: By the stage's name: the id that holds it.

    Returns:
        Whether none of the stages is held by these ids any more. False: one of them still is, since another
        id holds another stage. Nothing was written then.

    Raises:
        As `hold_stage`.
    """
    if not holders:
        raise InvalidRequest("There are no stages. Give each stage with the id that holds it.")
    attributes = {_attribute(stage, holder): holder for stage, holder in holders.items()}
    item = ItemOf(table, key, dynamodb, attributes)
    arguments = Changes(dict.fromkeys(attributes, REMOVE)).arguments(
        {f":h{number}": typed(stage, holder) for number, (stage, holder) in enumerate(attributes.items())}
    )
    arguments["ExpressionAttributeNames"]["#key"] = item.key_name
    conditions = [
        "attribute_exists(#key)",  # the write would make an empty record
        *(f"(attribute_not_exists(#c{n}) OR #c{n} = :h{n})" for n in range(len(attributes))),
    ]
    written = item.update(**arguments, ConditionExpression=" AND ".join(conditions))
    found = written.item or {}
    return written.done or all(found.get(name) != typed(name, holder) for name, holder in attributes.items())


async def let_go_of_stages_async(
    table: str,
    key: Mapping[str, Any],
    holders: Mapping[str, str],
    *,
    dynamodb: DynamoDBClient | None = None,
) -> bool:
    """As `let_go_of_stages`, without blocking the event loop. A cancelled call may have written."""
    return await asyncio.to_thread(let_go_of_stages, table, key, holders, dynamodb=dynamodb)


def _attribute(stage: str, holder: str) -> str:
    if not all(isinstance(text, str) and text.strip() for text in (stage, holder)):
        raise InvalidRequest("A stage and its holder are texts that are not empty. Nothing was written.")
    return f"{stage}HeldBy"
