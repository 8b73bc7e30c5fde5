"""
Requests: what one is called, what its execution gets, and starting it.

    strict_json  reads JSON text from outside, within a size
    canonical    JSON with one spelling, and its hash
    expressions  JMESPath expressions that find a part of a document
    names        execution names, attempts and index shards
    settings     how one state machine makes keys, hashes and times
    envelope     the input of an execution
    receipt      what a caller learns of a request
    machine      finds the executions of a request
    start        starts an execution, or finds the one that answers
"""
