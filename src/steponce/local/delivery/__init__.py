"""
What reaches functions and state machines without a call: requests, messages, events, schedules.

    http_api    requests of HTTP APIs, as API Gateway makes events of them
    mappings    batches of messages from queues
    event_bus   the default bus: its events, and the rules that they match
    targets     functions, queues and state machines that get a rule's events
    schedules   rules that fire at a rate
    deliveries  starts all of these but the HTTP APIs
"""
