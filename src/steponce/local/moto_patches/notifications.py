"""
What a topic sends to a queue.

moto signs each notification with a certificate that it makes for it. Nobody could get that certificate from
here, and it cannot be made where a test moves the stack's time: the native code of cryptography takes a
datetime for one only if it is an instance of what stands in the module `datetime`.
"""

from __future__ import annotations

from typing import Any

from moto.core.utils import iso_8601_datetime_with_milliseconds
from moto.sns.models import Subscription


def install() -> None:
    """Put this module's patch in place. It imports moto's SNS, which most stacks do without."""
    Subscription.get_post_data = _envelope


def _envelope(
    subscription: Subscription,
    message: str,
    message_id: str,
    subject: str | None,
    message_attributes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """
    A notification without raw delivery. Its signature is none.

    Source: SNS Developer Guide, "HTTP/HTTPS notification JSON format".
    """
    host = f"https://sns.{subscription.topic.sns_backend.region_name}.amazonaws.com/"
    envelope: dict[str, Any] = {
        "Type": "Notification",
        "MessageId": message_id,
        "TopicArn": subscription.topic.arn,
        "Message": message,
        "Timestamp": iso_8601_datetime_with_milliseconds(),
        "SignatureVersion": "1",
        "Signature": "EXAMPLE",
        "SigningCertURL": f"{host}SimpleNotificationService-EXAMPLE.pem",
        "UnsubscribeURL": f"{host}?Action=Unsubscribe&SubscriptionArn={subscription.arn}",
    }
    given = {"Subject": subject, "MessageAttributes": message_attributes}
    return envelope | {name: value for name, value in given.items() if value}
