"""The parameters of the template as a page of docs/; `make parameters` writes it."""

from __future__ import annotations

from typing import Any

from tests.rules.documents import ROOT, template

PLACE = ROOT / "docs" / "parameters.md"

ONE_LINE = r"[^\x00-\x1f]*"
"""What a text's pattern ends with: no control characters, which JSON would not take."""

ABOUT = """\
# Parameters

The parameters of `template.yaml`, in its order. `sam deploy --guided` asks for each of them, and
`steponce up --parameter NAME=VALUE` sets one on a laptop. `make parameters` writes this page.

| parameter | default | values | meaning |
| --- | --- | --- | --- |
"""


def page(parameters: dict[str, dict[str, Any]]) -> str:
    """The page as its file has it: a row for each parameter."""
    return ABOUT + "".join(row(name, parameter) for name, parameter in parameters.items())


def row(name: str, parameter: dict[str, Any]) -> str:
    """One row of the table, with everything that CloudFormation checks."""
    default = str(parameter["Default"])
    cells = [f"`{name}`", _code(default), values(parameter), parameter["Description"]]
    return "| " + " | ".join(cells) + " |\n"


def values(parameter: dict[str, Any]) -> str:
    """What a parameter may be: one of some values, a range, one of some patterns, or any text."""
    if "AllowedValues" in parameter:
        return ", ".join(_code(str(value)) for value in parameter["AllowedValues"])
    if "MaxValue" in parameter:
        return f"{parameter.get('MinValue', 0)} to {parameter['MaxValue']}"
    if "MinValue" in parameter:
        return f"{parameter['MinValue']} or more"
    if not parameter.get("AllowedPattern", ONE_LINE).endswith(ONE_LINE):
        return ", ".join(_code(one) for one in parameter["AllowedPattern"].split("|"))
    if "MaxLength" in parameter:
        return f"at most {parameter['MaxLength']} characters"
    return "not empty" if "MinLength" in parameter else "any"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def main() -> None:
    PLACE.write_text(page(template()["Parameters"]), encoding="utf-8")


if __name__ == "__main__":
    main()
