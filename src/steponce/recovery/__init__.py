"""
Recovers locks whose owners died.

    owner   decides whether an owner is dead, and records the outcome that it left
    repair  repairs one lock whose owner may be dead
"""
