"""
The guarantee for functions that Powertools' idempotency utility decorates.

    persistence  the store that `@idempotent` and `@idempotent_function` are given
    call         one decorated call: its key, its lock, its outcome
    nesting      which of the calls under way one is
    answers      a lock record as Powertools reads it
    attributes   tables whose attributes have other names, or a composite key
"""

from steponce.powertools.attributes import STOCK_ATTRIBUTES
from steponce.powertools.persistence import LocksPersistence

__all__ = ["STOCK_ATTRIBUTES", "LocksPersistence"]
