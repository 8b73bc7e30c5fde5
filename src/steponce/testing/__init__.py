"""
The pytest plugin: your state machines on a stack on this machine, with faults where you want them.

    plugin    options, fixtures and hooks; imports nothing heavy before a fixture is used
    settings  the template and the parameters that the options name
    faults    plans faults in states, and says which were never reached
    clock     moves the stack's time
    stories   what became of executions, for the report of a failed test
"""
