"""
Puts an existing Standard state machine into the workflow, so that its requests run at most once.

source
    A definition's text, read and written with its placeholders.
machine
    The states of a definition: which are there, and which lead where.
context
    Rewrites references to the context object, so that they still mean the same.
errors
    Why a definition cannot be wrapped.
retry_later
    Which states may release the lock by raising RetryLater.
refusals
    What cannot go inside a Parallel.
workflow
    The workflow around the work: the states of `run_once.asl.json` that it needs.
inline
    The states of the machine inside the workflow.
around
    The workflow that starts the machine.
decisions
    What remains for a person to decide.
"""

from __future__ import annotations

from steponce.wrap.around import wrap_around
from steponce.wrap.errors import CannotWrap
from steponce.wrap.inline import wrap_inline
from steponce.wrap.wrapped import Wrapped

__all__ = ["CannotWrap", "Wrapped", "wrap_around", "wrap_inline"]
