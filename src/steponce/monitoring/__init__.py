"""
Finds and repairs, every few minutes, what no event reported.

    monitor      settles dead owners' locks and expired awaiting steps, and counts what stays open
    missed_ends  resends the messages of executions that ended without an answer
    rounds       what the rounds of both share
"""
