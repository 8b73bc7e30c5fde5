"""
The lock records: a request holds one while it runs, and its outcome is stored there afterwards.

    record  the attributes of one lock record
    claim   what an attempt says of itself: that it holds a lock
    table   reads lock records, and writes them with fences
"""
