"""What a trigger did with a message or event, and the metric that counts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steponce.request.receipt import Receipt

Disposition = Literal["started", "duplicate", "replayed", "resent", "dead-lettered"]

COUNTED: Mapping[Disposition, str] = {
    "started": "Started",
    "duplicate": "Duplicates",
    "replayed": "Replays",
    "resent": "Resent",
    "dead-lettered": "DeadLettered",
}
"""The metric that counts each disposition."""


def disposition_of(receipt: Receipt) -> Disposition:
    """What a call of `Client.start` did."""
    if not receipt.duplicate:
        return "started"
    return "duplicate" if receipt.status == "RUNNING" else "replayed"
