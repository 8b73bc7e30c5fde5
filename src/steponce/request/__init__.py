"""
Requests: their names, the envelope that becomes an execution's input, and the start of an execution.

    strict_json  parses JSON text from outside, with limits
    canonical    writes JSON in one canonical form, and hashes it
    expressions  evaluates JMESPath expressions
    names        makes execution names, attempt names and index shards
    settings     the rules by which a state machine makes keys, hashes and times
    envelope     makes and validates the input of an execution
    receipt      what a caller learns about a request
    machine      finds the executions of a request
    attempts     the attempts of one request, as one start sees them
    comparison   compares the request of a start with what is there
    dead_owner   decides which attempt follows the death of a lock's owner
    start        starts an execution, or finds the one that answers
    lookup       finds what is known about a request now
    wait         looks until a request is finished
"""
