"""Writes down what it gets, and does what a message's body or an event's detail says."""

import json
import os

import boto3


def handler(event, _context):
    """Note, then fail, forward or answer."""
    print("NOTE " + json.dumps(event), flush=True)
    if "routeKey" in event:
        return {"statusCode": 200, "body": f"{event['routeKey']} {json.dumps(event['pathParameters'])}"}
    if event.get("detail", {}).get("raise"):
        raise ValueError("told to")
    records = event.get("Records", [])
    if any(record["body"].startswith("raise") for record in records):
        raise ValueError("told to")
    for record in records:
        if record["body"].startswith("forward "):
            boto3.client("sqs").send_message(QueueUrl=os.environ["INBOX_URL"], MessageBody=record["body"][8:])
    failed = [record["messageId"] for record in records if record["body"].startswith("fail")]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
