"""
The state machine as a Mermaid picture; `make picture` puts it into docs/architecture.md.

Solid arrows are Next, dotted ones are Catch; a diamond is a Choice, a double frame ends the execution.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "architecture.md"
MARKS = ("<!-- picture of statemachines/{name}: make picture -->\n", "<!-- end of picture -->")

_SHAPES = {
    "Choice": "{{{name}}}",
    "Fail": "[[{name}]]",
    "Pass": "[/{name}/]",
    "Task": "[{name}]",
    "Wait": "([{name}])",
}
_SPELLINGS = re.compile(r"Dynamo[DdBb]+\.")


def picture(definition: dict[str, Any]) -> str:
    """A flowchart of one state machine, as a Markdown code block."""
    lines = ["```mermaid", "flowchart TD"]
    for name, state in definition["States"].items():
        lines.append(f"    {name}{_SHAPES[state['Type']].format(name=name)}")
    for name, state in definition["States"].items():
        lines += dict.fromkeys(f"    {name} {arrow} {target}" for arrow, target in _arrows(state))
    return "\n".join([*lines, "```", ""])


def in_place(text: str, path: Path) -> str:
    """The page with the picture of one state machine in its place."""
    begin, end = MARKS[0].format(name=path.name), MARKS[1]
    before, _, rest = text.partition(begin)
    return before + begin + picture(json.loads(path.read_text())) + end + rest.partition(end)[2]


def next_steps(definition: dict[str, Any], name: str) -> set[str]:
    """Where a state leads: the next states, and what comes after them where they only choose."""
    states, found = definition["States"], set[str]()
    waiting = [name] if name in states else []
    while waiting:
        targets = {target for _, target in _arrows(states[waiting.pop()])} - found
        found |= targets
        waiting += [target for target in targets if states[target]["Type"] == "Choice"]
    return found


def _arrows(state: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for choice in state.get("Choices", []):
        yield "-->", choice["Next"]
    if "Default" in state:
        yield "-- otherwise -->", state["Default"]
    if "Next" in state:
        yield "-->", state["Next"]
    for catch in state.get("Catch", []):
        names = {
            _SPELLINGS.sub("", error).replace("${FinalErrors}", "final errors")
            for error in catch["ErrorEquals"]
        }
        yield f"-. {', '.join(sorted(names))} .->", catch["Next"]


def main() -> None:
    text = PLACE.read_text(encoding="utf-8")
    for path in sorted((ROOT / "statemachines").glob("*.asl.json")):
        text = in_place(text, path)
    PLACE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
