"""
Triggers: messages and events that start requests. Nobody waits for their answer.

    start_request    finds request id, payload, lock token and time in a message or event
    messages         reads messages from SQS and SNS
    events           reads events from EventBridge, schedules, S3 and Kinesis
    starter          starts a request, or resends or dead-letters its message
    dispositions     says what a trigger did, and which metric counts it
    resend           resends the message of a request that must be retried later
    dead_letters     stores a message that cannot start a request, in a form that can be redriven
    foreign_records  recognises what AWS itself writes into a queue, which is no request
    redrive          lists and redrives dead letters
    sqs              checks the limits of an SQS message, and sends one
"""
