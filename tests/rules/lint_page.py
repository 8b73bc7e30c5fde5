"""The rules and the comparison in docs/lint.md; `make lint-page` writes them."""

from __future__ import annotations

import re

from steponce.lint import RULES, Rule
from tests.rules.documents import ROOT
from tests.unit.lint.tools import TOOLS, Outcome, stored

PLACE = ROOT / "docs" / "lint.md"
MARKS = {
    "table": ("<!-- table of tools: make lint-page -->\n", "<!-- end of table -->"),
    "rules": ("<!-- rules: make lint-page -->\n", "<!-- end of rules -->"),
}
FAMILIES = {
    "general": ("Rules for every state machine", "They apply to any machine."),
    "run-once": (
        "Rules for machines that run once",
        "They apply to machines that take a lock of this package: the shipped workflow, and machines made "
        "from it. They say what such a machine must keep if you change it.",
    ),
}


def in_place(text: str) -> str:
    """The page with the rules and the table in their places."""
    for part, content in (("table", table(stored())), ("rules", rules())):
        begin, end = MARKS[part]
        before, _, rest = text.partition(begin)
        text = before + begin + content + end + rest.partition(end)[2]
    return text


def rules() -> str:
    """A section for each family, with a paragraph for each rule."""
    parts = []
    for family, (title, about) in FAMILIES.items():
        members = [rule for rule in RULES if rule.family == family]
        parts += [f"## {title}\n\n{about}\n\n", *(section(rule) for rule in members)]
    return "".join(parts)


def section(rule: Rule) -> str:
    """One rule, under its id."""
    return f"### {rule.id}\n\n*{rule.severity.capitalize()}.* {unwrapped(rule.explanation)}\n\n"


def unwrapped(text: str) -> str:
    """Paragraphs and items of a list on one line each, as the other pages have them."""
    paragraphs = [re.sub(r"\n(?!- )\s*", " ", paragraph.strip()) for paragraph in text.split("\n\n")]
    return "\n\n".join(paragraphs)


def table(outcome: Outcome) -> str:
    """By rule: how many faults were planted, and how many each tool found."""
    lines = ["| faults | planted | " + " | ".join(TOOLS) + " |", "| --- |" + " --- |" * (len(TOOLS) + 1)]
    by_rule: dict[str, list[list[str]]] = {}
    for fault in outcome["faults"]:
        by_rule.setdefault(fault["rule"], []).append(fault["found"])
    for rule, found in by_rule.items():
        counts = [sum(tool in one for one in found) for tool in TOOLS]
        lines.append(
            f"| [{rule}](#{rule}) | {len(found)} | "
            + " | ".join(str(count or "–") for count in counts)
            + " |"
        )
    everything = [one for found in by_rule.values() for one in found]
    counts = [sum(tool in one for one in everything) for tool in TOOLS]
    lines.append(f"| all | {len(everything)} | " + " | ".join(map(str, counts)) + " |")
    alarms = [len(outcome["alarms"][tool]) for tool in TOOLS]
    lines.append("| false alarms, of 20 correct machines | | " + " | ".join(map(str, alarms)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    PLACE.write_text(in_place(PLACE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
