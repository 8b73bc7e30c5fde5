"""
The state machine as a Mermaid picture; `make picture` puts it into the README.

Solid arrows are Next, dotted ones are Catch; a diamond is a Choice, a double frame ends the execution.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MARKS = ("<!-- picture of statemachines/{name}: make picture -->\n", "<!-- end of picture -->")

_SHAPES = {"Choice": "{{{name}}}", "Fail": "[[{name}]]", "Pass": "[/{name}/]", "Task": "[{name}]"}
_SPELLINGS = re.compile(r"Dynamo[DdBb]+\.")


def picture(definition: dict[str, Any]) -> str:
    """A flowchart of one state machine, as a Markdown code block."""
    lines = ["```mermaid", "flowchart TD"]
    for name, state in definition["States"].items():
        lines.append(f"    {name}{_SHAPES[state['Type']].format(name=name)}")
    for name, state in definition["States"].items():
        lines += dict.fromkeys(f"    {name} {arrow} {target}" for arrow, target in _arrows(state))
    return "\n".join([*lines, "```", ""])


def in_readme(readme: str, path: Path) -> str:
    """The README with the picture of one state machine in its place."""
    begin, end = MARKS[0].format(name=path.name), MARKS[1]
    before, _, rest = readme.partition(begin)
    return before + begin + picture(json.loads(path.read_text())) + end + rest.partition(end)[2]


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
    readme = ROOT / "README.md"
    text = readme.read_text()
    for path in sorted((ROOT / "statemachines").glob("*.asl.json")):
        text = in_readme(text, path)
    readme.write_text(text)


if __name__ == "__main__":
    main()
