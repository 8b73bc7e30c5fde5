"""What a person can do next, as data. Only the command line turns a next step into a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal[
    "start request",
    "show request",
    "wait for request",
    "cancel request",
    "list locks",
    "inspect lock",
    "complete lock",
    "release lock",
    "retry lock",
    "list steps",
    "answer step",
    "list letters",
    "show letter",
    "redrive letter",
    "delete letter",
    "show limits",
    "invoke function",
]


@dataclass(frozen=True)
class NextStep:
    """
    One thing that a person can do next.

    Args:
        action: What to do. Its noun says what `key` is.
        key: A request id, lock token, awaiting-step id, letter id, limited user or function ARN. Empty for a
            list, and if the person chooses it.
        lock_token: For a request that was started with a lock token of its own: that token.
        check_owner: For a start: check the lock's owner at once, and settle the lock if the owner is dead.
        machine: The ARN of the state machine that the step is for, if it is another one than was asked, or if
            several of the stack's may know the key.
    """

    action: Action
    key: str = ""
    lock_token: str | None = None
    check_owner: bool = False
    machine: str | None = None
