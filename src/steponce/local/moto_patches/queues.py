"""
Queues that many threads use at once.

moto changes its lists of messages without a lock, so a message that is sent while another is deleted
can be lost, and one message can be received twice; a long poll of a FIFO queue whose messages wait for
others of their group keeps a processor busy; and where a whole group comes back to a FIFO queue, the last
to come may overtake the others.
"""

from __future__ import annotations

import functools
import threading
import time
from typing import Any

from moto.core.utils import unix_time_millis
from moto.sqs.models import Message, Queue, SQSBackend, sqs_backends

_lock = threading.RLock()

# What becomes visible, or is late enough, tells nobody.
_LOOK_AGAIN_SECONDS = 0.1
# Longer than one look takes, and shorter than the time between two.
_ONE_LOOK_MILLISECONDS = 20


def install() -> None:
    """Put this module's patches in place."""
    for name in (
        "send_message",
        "delete_message",
        "change_message_visibility",
        "purge_queue",
        "get_queue_attributes",
    ):
        setattr(SQSBackend, name, _one_at_a_time(getattr(SQSBackend, name)))
    SQSBackend.receive_message = _receive_message


_original_receive = SQSBackend.receive_message


def empty() -> None:
    """Empty every queue. PurgeQueue allows this only once a minute, as on AWS."""
    with _lock:
        for regions in sqs_backends.values():
            for backend in regions.values():
                for queue in backend.queues.values():
                    queue._messages = []
                    queue._pending_messages = set()


def _one_at_a_time(operation: Any) -> Any:
    @functools.wraps(operation)
    def alone(backend: SQSBackend, *args: Any, **kwargs: Any) -> Any:
        with _lock:
            return operation(backend, *args, **kwargs)

    return alone


def _receive_message(
    backend: SQSBackend,
    queue_name: str,
    count: int,
    wait_seconds_timeout: int,
    visibility_timeout: int,
    message_attribute_names: list[str] | None = None,
) -> list[Message]:
    """moto's, a look at a time."""
    deadline = time.monotonic() + int(wait_seconds_timeout or 0)
    while True:
        with _lock:
            _settle_pending(backend.get_queue(queue_name))
            found: list[Message] = _original_receive(
                backend, queue_name, count, 0, visibility_timeout, message_attribute_names
            )
        left = deadline - time.monotonic()
        if found or left <= 0:
            return found
        changed = backend.get_queue(queue_name)._messages_lock
        with changed:
            changed.wait(min(left, _LOOK_AGAIN_SECONDS))


def _settle_pending(queue: Queue) -> None:
    """
    Let every message be visible again before one look at the queue, or not before the next.

    moto asks the clock for each message anew, and takes a message that has just come back for free while
    an earlier one of its group still counts as waiting for it.
    """
    now = unix_time_millis()
    for message in list(queue.pending_messages):
        if message.visible_at < now:
            queue.pending_messages.discard(message)
        else:
            message.visible_at = max(message.visible_at, now + _ONE_LOOK_MILLISECONDS)
