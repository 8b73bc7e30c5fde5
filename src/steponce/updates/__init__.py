"""
Updates of your own records that never go backwards, and never come from an attempt that lost its lock.

    item        keys and changes as DynamoDB has them, and one conditional write
    order       what orders updates: a whole number or a time, and a writer
    newer       updates and deletions that an older one never overwrites
    mine        an update that takes effect only while this attempt holds its lock
    conflicts   the loop of read, decide and write, with a version check
    stages      ids that the stages of one flow hold until its last side effect
"""

from steponce.updates.conflicts import Versioned, retry_on_conflict, retry_on_conflict_async
from steponce.updates.item import REMOVE
from steponce.updates.mine import update_if_mine, update_if_mine_async
from steponce.updates.newer import (
    Update,
    delete_if_newer,
    delete_if_newer_async,
    read,
    read_async,
    update_if_newer,
    update_if_newer_async,
)
from steponce.updates.stages import (
    hold_stage,
    hold_stage_async,
    let_go_of_stages,
    let_go_of_stages_async,
)

__all__ = [
    "REMOVE",
    "Update",
    "Versioned",
    "delete_if_newer",
    "delete_if_newer_async",
    "hold_stage",
    "hold_stage_async",
    "let_go_of_stages",
    "let_go_of_stages_async",
    "read",
    "read_async",
    "retry_on_conflict",
    "retry_on_conflict_async",
    "update_if_mine",
    "update_if_mine_async",
    "update_if_newer",
    "update_if_newer_async",
]
