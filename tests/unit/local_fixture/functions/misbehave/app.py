"""Does what the event asks, in all the ways in which a function can end."""

import os
import time
from pathlib import Path


class CardDeclined(Exception):
    """An error of the work."""


def handler(event, context):
    """Return, raise, exit, sleep, or stay until a file is there."""
    time.sleep(event.get("sleep", 0))
    if "until" in event:
        print("stays", event["until"], flush=True)
        while not Path(event["until"]).exists():
            time.sleep(0.02)
    if "exit" in event:
        os._exit(event["exit"])
    if "raise" in event:
        raise CardDeclined(event["raise"])
    if "size" in event:
        return "x" * event["size"]
    print("saw", event)
    return {"pid": os.getpid(), "requestId": context.aws_request_id, "environment": dict(os.environ)}
