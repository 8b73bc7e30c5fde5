"""
The child process that serves the embedded endpoints; `python -m steponce.local.engine` runs it.

    instructions  what the stack tells it
    controls      a test's hold on it: faults, time, quiet
    moto_server   Step Functions, DynamoDB, queues, topics and the rest, on one port
    process       the stack's side of it
    __main__      its own side
"""
