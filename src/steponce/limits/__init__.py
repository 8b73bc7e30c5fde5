"""
Requests counted per user and window, each of them once.

    window         cuts time into windows
    record         what one counter's record says, and how records and members are named
    countable      which users and times can be counted
    counters       the conditional writes that count a request at one counter or at several
    request_limit  what the workflow needs to count a request itself
    table          lists and resets a user's counters, for people
"""
