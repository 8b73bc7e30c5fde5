"""The work of a request. Put yours in the place of `place_order`."""

import uuid
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import fence

logger = Logger()


class Declined(Exception):
    """A final answer, since the template's FinalErrors names it: everyone who asks again gets it, too."""


@logger.inject_lambda_context
def handler(work: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:
    """Do the work, once the fence says that this attempt may. What it returns is the request's result."""
    order = work["payload"]
    if order["amount"] <= 0:
        raise Declined("The amount must be positive.")
    fence.check(work)
    return {"orderId": order["orderId"], "placement": place_order(order, key=work["lockToken"])}


def place_order(order: dict[str, Any], key: str) -> str:
    """
    The effect that must not happen twice.

    `key` is the same on every try. Give it to the provider as its idempotency key. While nothing has happened
    yet, you may raise steponce.RetryLater, and the workflow tries again.
    """
    logger.info("placed", orderId=order["orderId"], key=key)
    return uuid.uuid4().hex
