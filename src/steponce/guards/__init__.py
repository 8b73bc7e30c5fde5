"""
Guards: at most one run per key for plain Python code, on the workflow's lock table, by leases.

    guard       the public class: a context manager and a decorator
    terms       the options of a guard, a function and a call
    run         one guarded call, from taking the lock to recording the outcome
    holder      the fenced writes of a call that holds a lock
    invocation  the owner and the lease of a call
    renewer     extends a lease while its work runs
    finished    an in-memory cache of final records
    plain       converts arguments and results to JSON's types
    typed       converts stored results back to the types of their annotations
"""
