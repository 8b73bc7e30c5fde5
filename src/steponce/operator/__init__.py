"""
What an operator does by hand. The command line calls it.

    locks         lists open locks, and completes, releases or retries one
    cancel        cancels a request, so that it does not run again; `left_work` finds what goes on
    erasure       deletes the records of one customer
    machines      finds the state machine of a request or a lock, among several
    listing       lists requests; one of them is in `requests`
"""
