"""Tells the driver."""

import json
import os

import boto3


def handler(event, _context):
    """Note for each booking that the driver knows."""
    table = boto3.resource("dynamodb").Table(os.environ["BOOKINGS"])
    for record in event["Records"]:
        table.update_item(
            Key={"id": json.loads(record["body"])["id"]},
            UpdateExpression="SET told = :yes",
            ExpressionAttributeValues={":yes": True},
        )
