"""
What an operator does by hand; the command line calls it.

    locks         lists open locks, and completes, fails, releases or retries one
    cancellation  stops a request that shall not run again
    erasure       deletes everything that is kept about one customer
"""
