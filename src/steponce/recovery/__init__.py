"""
Recovery of locks whose owners died.

    owner   decides what became of an owner, and records what it left
    repair  repairs one lock whose owner may be dead
"""
