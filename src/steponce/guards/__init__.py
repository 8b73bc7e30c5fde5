"""
The guarantee for plain Python: the same records as the workflow's, held by a lease.

    guard       what users make: a context manager and a decorator
    terms       how its calls go
    run         one call: its outcome, its lease, its result
    holder      the conditional writes of an owner that is no execution
    invocation  who holds a call's lock, and for how long
    renewer     a lease that goes on while its work runs
    finished    answers that never change, kept in memory
    typed       results as the types that a function's annotation names
"""
