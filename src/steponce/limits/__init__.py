"""
Requests counted per user and window, each of them once.

    window    cuts time into windows
    record    what one counter's record says, and how records and members are named
    counters  the conditional writes that count a request at one counter or at several
    table     lists and resets a user's counters, for people
"""
