"""
Locks: what a request holds while it runs, and what answers for it afterwards.

    record  the attributes of one lock record
    table   reads and fenced writes
"""
