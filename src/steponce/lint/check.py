"""All rules on one definition."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from steponce.lint.definitions import STANDARD
from steponce.lint.error_names import ERROR_NAMES
from steponce.lint.findings import Complaint, Complaints, Finding
from steponce.lint.ignores import ignored_rules, ignores_in
from steponce.lint.machine import Machine, read_machine
from steponce.lint.parameters import PARAMETERS
from steponce.lint.paths import DATA
from steponce.lint.protocol import takes_lock
from steponce.lint.retries import RETRIES
from steponce.lint.rule import Rule, Rules
from steponce.lint.run_once_flow import RUN_ONCE_FLOW
from steponce.lint.run_once_writes import RUN_ONCE_WRITES
from steponce.lint.structure import STRUCTURE
from steponce.lint.tables import TABLES
from steponce.lint.waiting import WAITING

COMMENTS = Rules("general")


@COMMENTS.rule("bad-ignore", "warning")
def bad_ignore(machine: Machine) -> Complaints:
    """
    A Comment ignores a rule without a reason, or a rule that does not exist.

    Such an ignore has no effect. Write `lint: ignore ID because REASON`.
    """
    seen = set()
    own = [(state.name, state.comments[-1]) for state in machine.all_states()]
    own += [("", str(one.body.get("Comment", ""))) for one in machine.all()]
    for name, comment in own:
        for ignore in ignores_in(comment):
            unknown = [rule for rule in ignore.rules if rule not in IDS]
            text = f"there is no rule {', '.join(unknown)}." if unknown else ""
            if not ignore.rules or not ignore.reason:
                text = "an ignore needs rules and a reason: lint: ignore ID because REASON."
            if text and (name, text) not in seen:
                seen.add((name, text))
                yield Complaint(name, text)


RULES: tuple[Rule, ...] = tuple(
    rule
    for family in (
        *(STRUCTURE, WAITING, ERROR_NAMES, RETRIES, DATA, TABLES, PARAMETERS, COMMENTS),
        *(RUN_ONCE_WRITES, RUN_ONCE_FLOW),
    )
    for rule in family.listed
)
"""Every rule, the general ones first."""

IDS = {rule.id for rule in RULES}


@dataclass(frozen=True)
class Report:
    """
    What the rules say of one definition.

    Attributes:
        findings: In the order of the states.
        skipped: The states in JSONata, which the rules about paths do not read.
    """

    findings: tuple[Finding, ...]
    skipped: tuple[str, ...] = ()


def lint(definition: Any, *, ignored: Collection[str] = (), kind: str = STANDARD) -> Report:
    """
    Check one definition.

    Args:
        definition: What its JSON says. Placeholders, `${Name}`, may be left in it.
        ignored: Ids of rules to leave out.
        kind: STANDARD or EXPRESS, as the state machine is created.

    Returns:
        The findings, without those that a Comment ignores with a reason.
    """
    machine = read_machine(definition, kind)
    states = {state.name: state for state in machine.all_states()}
    whole = ignored_rules([str(machine.body.get("Comment", ""))])
    off = {name: ignored_rules(state.comments) for name, state in states.items()}
    found = [
        finding
        for finding in _findings(machine, definition)
        if finding.rule not in {*ignored, *off.get(finding.state.partition(".")[0], whole)}
    ]
    order = {name: place for place, name in enumerate(states)}
    found.sort(key=lambda finding: order.get(finding.state, -1))
    skipped = tuple(name for name, state in states.items() if state.is_jsonata)
    return Report(tuple(dict.fromkeys(found)), skipped)


def _findings(machine: Machine, definition: Any) -> Iterator[Finding]:
    if not isinstance(definition, dict):
        yield Finding("", "invalid-definition", "error", "The state machine: it is not a JSON object.")
        return
    runs_once = takes_lock(machine)
    for rule in RULES:
        if rule.family == "general" or runs_once:
            for state, text in rule.check(machine):
                if "${" in text:  # nobody knows what that becomes
                    continue
                yield Finding(state, rule.id, rule.severity, f"{state or 'The state machine'}: {text}")
