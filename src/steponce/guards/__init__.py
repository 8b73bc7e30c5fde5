"""
The guarantee for plain Python: the same records as the workflow's, held by a lease.

    guard   what users make: a context manager and a decorator
    run     one call: its outcome, its lease, its result
    holder  the conditional writes of an owner that is no execution
    typed   results as the types that a function's annotation names
"""
