"""The sample work: charge a card, an effect that can be counted. Put your own work in its place."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import boto3
from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.utilities.typing import LambdaContext

from steponce import environment, fence, results
from steponce.errors import RetryLater


@dataclass(frozen=True)
class Settings:
    """What the template sets for this function."""

    charges_table: str


settings = environment.read(Settings, os.environ)
logger = Logger()
tracer = Tracer()
charges = boto3.resource("dynamodb").Table(settings.charges_table)


class CardDeclined(Exception):
    """The bank has declined the card. This is final."""


@tracer.capture_lambda_handler(capture_response=False, capture_error=False)
@logger.inject_lambda_context
def handler(work: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Charge the card. Its token says how the provider behaves."""
    card = work["payload"]["card"]
    if card == "tok_declined":
        charge(work, context, "declined")
        raise CardDeclined("The bank declined the card.")
    if card == "tok_unreachable" and work["attempt"] == 1:
        raise RetryLater("The provider cannot be reached.")
    if card == "tok_bug":
        raise ZeroDivisionError("A bug, before anything was charged.")
    if card == "tok_slow":
        time.sleep(work["payload"]["delaySeconds"])
    charge_id = charge(work, context, "charged")
    if card == "tok_killed":
        os._exit(1)
    result: dict[str, Any] = {
        "chargeId": charge_id,
        "orderId": work["payload"]["orderId"],
        "amount": work["payload"]["amount"],
    }
    if card == "tok_statement":
        result["statement"] = "x" * work["payload"]["statementBytes"]
    returned: dict[str, Any] = results.keep(result, work)
    return returned


def charge(work: Mapping[str, Any], context: LambdaContext, outcome: str) -> str:
    """Check the fence, and write one row per call: a second charge for one key would be visible."""
    fence.check(work)
    charge_id = "ch_" + sha256(work["lockToken"].encode()).hexdigest()[:24]
    charges.put_item(
        Item={
            "lockToken": work["lockToken"],
            "callAndTry": f"{work['callId']}#{context.aws_request_id}",
            "chargeId": charge_id,
            "attempt": work["attempt"],
            "requestId": work["requestId"],
            "outcome": outcome,
        }
    )
    logger.info(
        "card called",
        outcome=outcome,
        requestId=work["requestId"],
        chargeId=charge_id,
        attempt=work["attempt"],
    )
    return charge_id
