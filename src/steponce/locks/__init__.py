"""
The lock records: a request holds one while it runs, and its outcome is stored there afterwards.

    record  the attributes of one lock record
    table   reads lock records, and writes them with fences
"""
