"""Tells the driver."""

import json
import os

import boto3

bookings = boto3.resource("dynamodb").Table(os.environ["BOOKINGS"])


def handler(event, _context):
    """Note for each booking that the driver knows."""
    for record in event["Records"]:
        bookings.update_item(
            Key={"id": json.loads(record["body"])["id"]},
            UpdateExpression="SET told = :yes",
            ExpressionAttributeValues={":yes": True},
        )
