"""
The doors for messages and events, to which nobody waits for an answer.

    asked       what every door makes of what comes: request id, payload, lock token, time
    messages    what came from a queue, in whichever of its shapes
    events      what came from EventBridge, a schedule, S3 or Kinesis
    entrance    starts what is asked, or puts it where it is not lost
    resending   sends again what has to come back later
    letters     what is laid aside, in a form that can be put back
    foreign     what AWS writes about its own failures, which is no request
    redriving   looks at what was laid aside, and puts it back
    sending     what an SQS message may hold, and sending one
"""
