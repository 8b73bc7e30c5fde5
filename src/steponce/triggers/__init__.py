"""
Triggers: messages and events that start requests, and to which nobody waits for an answer.

    start_request    reads a request id, payload, lock token and time out of what came
    messages         what came from a queue, in whichever of its shapes
    events           what came from EventBridge, a schedule, S3 or Kinesis
    starter          starts a request, or puts it where it is not lost
    resend           sends a request again that must be retried later
    dead_letters     stores a request that cannot start, in a form that can be put back
    failure_records  what AWS writes about its own failures, which is no request
    redrive          lists dead letters, and puts them back
    sqs              limits of an SQS message, and sending one
"""
