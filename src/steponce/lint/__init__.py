"""
Rules for state machines: what AWS refuses, and what loses or repeats work.

    findings         what a rule says
    calls            what a Task calls, by its Resource
    fields           what one state of a definition may say
    definitions      why AWS would refuse a definition
    machine          a definition as the rules read it
    rule             the rules by their ids
    ignores          what a Comment ignores, and why
    facts            which paths of a value are known
    task_results     what is known of a Task's result
    missing_reads    which paths are there in each state
    services         the APIs' models
    structure        rules: the shape of a definition
    waiting          rules: time-outs, heartbeats and tokens
    error_names      rules: names of errors, and what becomes of them
    repeating        which calls a second time are not the same
    retries          rules: what is tried again
    paths            rules: what a state reads and hands on
    tables           rules: DynamoDB
    parameters       rules: parameters of APIs
    protocol         the lock's protocol
    run_once_writes  rules: lock records
    run_once_flow    rules: the way through a machine that takes locks
    check            all rules on one definition
    lines            where in a file a state is
    sarif            findings for code scanners
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steponce.when_wanted import imported_when_wanted

if TYPE_CHECKING:
    from steponce.lint.check import RULES, Report, lint
    from steponce.lint.findings import Finding
    from steponce.lint.rule import Rule

__all__ = ["RULES", "Finding", "Report", "Rule", "lint"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = imported_when_wanted(
        __name__,
        {
            "RULES": "steponce.lint.check",
            "Finding": "steponce.lint.findings",
            "Report": "steponce.lint.check",
            "Rule": "steponce.lint.rule",
            "lint": "steponce.lint.check",
        },
    )
