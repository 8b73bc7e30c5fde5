"""
An update that takes effect only while this attempt holds its lock.

After `fence.check` and before the write, the lock may be lost. Here the check and the write are one
transaction, so there is no gap between them.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from botocore.exceptions import ClientError

from steponce.aws.errors import answering, error_code, is_refusal
from steponce.aws.pauses import pauses
from steponce.errors import InvalidRequest, LockLost, RetryLater, Unavailable
from steponce.locks.claim import Claim, may_have_acted, note_passed, nothing_done
from steponce.updates.item import Changes, ItemOf, accepting, default_client, refused

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TRIES = 8
"""How often the transaction is tried; the pauses take 3.2 seconds at the most."""

_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 0.8

_BUSY = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_REFUSED = "ConditionalCheckFailed"


@runtime_checkable
class Claims(Protocol):
    """What can say which lock it holds: the run of a guard."""

    def claim(self) -> Claim | None:
        """Which attempt holds which lock. None: the lock is not checked."""


def update_if_mine(
    work: Mapping[str, Any] | Claims,
    table: str,
    key: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    locks_table: str | None = None,
    dynamodb: DynamoDBClient | None = None,
) -> None:
    """
    Change a record of yours, if this attempt still holds its lock. One TransactWriteItems of two items.

    Safe to repeat, by the same attempt: it writes the same again.

    Args:
        work: The input that the workflow gives to the work (`lockToken`, `callId`, `attempt` and more), or
            the run of a guard.
        table: The name of your table, in the account and region of the lock table.
        key: The record's key: names and values of one attribute or two.
        changes: By name: a new value, or REMOVE. Other attributes stay.
        locks_table: The name of the lock table. Default: what the environment variable LocksTable says. A
            run knows its own.
        dynamodb: Your own client. Default: one with boto3's defaults, made once.

    Raises:
        LockLost: this attempt does not hold the lock, or the lease of its run is over. Nothing was written,
            unless the message says that a try before may have been.
        RetryLater: others were at one of the two items in every try. Nothing was written.
        Unavailable: DynamoDB did not answer, and the change may have been written. Or as RetryLater, after a
            check or an update of this attempt has passed in this process, or has got no answer: the attempt
            may have had an effect.
        InvalidRequest: the key, a change or `work` cannot be used. Nothing was written.
        RecordUnreadable: another program has damaged the lock record. Nothing was written.
    """
    if not changes:
        raise InvalidRequest("There are no changes. Nothing was written.")
    item = ItemOf(table, key, dynamodb)
    update = {**item.where, **Changes(changes, key).arguments()}
    claim = _claim(work, locks_table)
    check = [] if claim is None else [{"ConditionCheck": claim.condition()}]
    _transact(dynamodb or default_client(), [*check, {"Update": update}], claim)


async def update_if_mine_async(
    work: Mapping[str, Any] | Claims,
    table: str,
    key: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    locks_table: str | None = None,
    dynamodb: DynamoDBClient | None = None,
) -> None:
    """As `update_if_mine`, without blocking the event loop. A cancelled call may have written."""
    await asyncio.to_thread(
        update_if_mine, work, table, key, changes, locks_table=locks_table, dynamodb=dynamodb
    )


def _claim(work: Mapping[str, Any] | Claims, locks_table: str | None) -> Claim | None:
    if isinstance(work, Claims):
        return work.claim()
    return Claim.of(work, locks_table or os.environ["LocksTable"])


def _transact(dynamodb: DynamoDBClient, actions: Any, claim: Claim | None) -> None:
    """
    Make the transaction, in as many tries as it takes.

    All tries carry one token. DynamoDB knows a token for ten minutes, and makes its transaction once, also if
    the answer to an earlier try was lost. Each call has a new token. A token derived from the changes would
    suppress a change that is made, reverted and made again.
    """
    token = uuid.uuid4().hex
    lost: Unavailable | None = None
    waits = pauses(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
    for more in reversed(range(TRIES)):
        try:
            with accepting(), answering("DynamoDB"):
                dynamodb.transact_write_items(TransactItems=actions, ClientRequestToken=token)
            _note_effect(claim)
            return
        except ClientError as error:
            if not is_refusal(error):  # boto3 has sent it before, and had no answer
                lost = Unavailable("DynamoDB did not answer at first, and the change may have been written.")
                _note_effect(claim)
            _expect_busy(error, claim, lost)
        except Unavailable as error:
            lost = error
            _note_effect(claim)
        if more:
            time.sleep(next(waits))
    if lost is not None:
        raise lost
    problem = "Others were at the lock or at the record in every try. Nothing was written."
    if claim is None:
        raise RetryLater(problem)
    if may_have_acted(claim.call_id, claim.attempt):
        raise Unavailable(f"{problem} The work may have had another effect before.")
    raise nothing_done(problem, claim.call_id, claim.attempt)


def _note_effect(claim: Claim | None) -> None:
    """Note that the change was written, or may have been. From then on RetryLater would repeat it."""
    if claim is not None:
        note_passed(claim.call_id, claim.attempt)


def _expect_busy(error: ClientError, claim: Claim | None, lost: Unavailable | None) -> None:
    """
    Why DynamoDB cancelled the transaction: it gives one reason for each item, in their order.

    Args:
        lost: Of a try before, whose answer was lost.

    Raises:
        LockLost: the condition on the lock failed.
        InvalidRequest: DynamoDB refused the key or a change.
        ClientError: for another reason that does not pass.
    """
    if error_code(error) != "TransactionCanceledException":
        raise error
    reasons: Any = error.response.get("CancellationReasons", [])
    codes = [str(reason.get("Code")) for reason in reasons]
    if claim is not None and codes and codes[0] == _REFUSED:
        written = "Nothing was written." if lost is None else "A try before may have been written."
        raise LockLost(f"{claim.refusal(reasons[0].get('Item'))} {written}") from error
    for reason in reasons:
        if reason.get("Code") == "ValidationError":
            raise refused(reason) from error
    if not _BUSY.intersection(codes):
        raise error
