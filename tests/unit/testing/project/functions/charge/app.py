"""Charges a customer."""

import os
import time
from datetime import UTC, datetime

import boto3

s3 = boto3.client("s3")


class Declined(Exception):
    """The customer cannot pay."""


def handler(event, _context):
    """Decline, or keep a receipt, and say when."""
    if event.get("amount") == 0:
        raise Declined("There is nothing to charge.")
    print("begins", event["id"], flush=True)
    time.sleep(event.get("chargeSeconds", 0))
    s3.put_object(Bucket=os.environ["RECEIPTS"], Key=event["id"], Body=b"paid")
    print("ends", event["id"], flush=True)
    told = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"at": datetime.now(UTC).isoformat(), "told": told}
