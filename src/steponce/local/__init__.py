"""
The stack for a laptop and for tests: the template's tables, functions, queues, rules and all the rest.

    errors        what goes wrong with the stack itself
    session       boto3 sessions that know nothing of the caller's account
    stack_time    the stack's time, which a test may move
    activity      counts what goes on in the engine
    controls      a test's hold on the engine
    facts         what another process needs to reach a stack, in a file
    template      from a SAM template to a plan
    http          HTTP servers on the loopback interface
    deploy        creates what a plan says
    servers       AWS's own local servers
    runtime       Lambda: processes that run each function's code
    moto_patches  where moto differs from AWS
    delivery      what reaches functions without a call
    engine        the child process that serves the embedded endpoints
    stack         a stack, from its start to its end
    cleaning      empties a stack between two tests
"""

from __future__ import annotations

from steponce.local.errors import LocalStackError, TemplateError
from steponce.local.facts import read_facts, remove_facts, write_facts
from steponce.local.stack import LocalStack, RunningStack

__all__ = [
    "LocalStack",
    "LocalStackError",
    "RunningStack",
    "TemplateError",
    "read_facts",
    "remove_facts",
    "write_facts",
]
