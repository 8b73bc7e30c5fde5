"""
From a SAM template to a plan of what one stack creates.

    physical_names     names and ARNs of resources
    intrinsics         CloudFormation's intrinsic functions
    resources          the resources whose condition holds, with their properties resolved
    plan               what a stack creates, as data
    nested             nested stacks, from template files
    substitutions      a definition's placeholders, replaced
    machines           state machines with their substitutions
    renderings         every definition that a template can give a state machine
    parameters         values of parameters, as far as their declarations allow them
    routes             HTTP APIs and their routes
    messaging          queues, topics and subscriptions
    mappings           event source mappings
    rules              EventBridge rules, and destinations of failed invocations
    support            what runs here, and what is left out
    reader             reads the template and everything that it names
"""
