"""Every document keeps every rule of prose.py, and what is made from other files is up to date."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import parameters, picture, prose
from .documents import MACHINES, ROOT, load_json, machine, rules_of, template
from .prose import DOCUMENTS, README, Document, read
from .source import COMMANDS

RULES = rules_of(prose)
PAGE = ROOT / "docs" / "page.md"
LONG = "```sh\nmake run\nmake test\n```\n" + "\n" * 150

FAULTS: list[tuple[Callable[[Document], list[str]], Document]] = [
    (prose.rule_blocks_are_of_a_known_language, Document(PAGE, "```\nls\n```\n")),
    (prose.rule_blocks_are_of_a_known_language, Document(PAGE, "```bash\nls\n```\n")),
    (prose.rule_links_lead_somewhere, Document(PAGE, "[here](nowhere.md)")),
    (prose.rule_links_lead_somewhere, Document(PAGE, "[here](concepts.md#no-such-heading)")),
    (prose.rule_links_lead_somewhere, Document(PAGE, "# A page\n[here](#another-page)")),
    (prose.rule_files_exist, Document(PAGE, "see `tests/nothing.py`")),
    (prose.rule_files_exist, Document(PAGE, "see `sample.yaml`")),
    (prose.rule_make_has_the_targets, Document(PAGE, "run `make test-nothing`")),
    (prose.rule_make_has_the_targets, Document(PAGE, "```sh\nmake coffee\n```\n")),
    (prose.rule_the_readme_is_short, Document(README, LONG)),
    (prose.rule_the_readme_is_short, Document(README, "```sh\nmake test\nmake run\n```\n")),
    (prose.rule_pages_belong_to_the_contents, Document(PAGE, "# A page")),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.path.relative_to(ROOT)))
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_document_keeps_the_rule(rule: Callable[[Document], list[str]], document: Document) -> None:
    """No complaints."""
    assert [] == rule(document)


@pytest.mark.parametrize(("rule", "document"), FAULTS)
def test_the_rule_catches_its_planted_fault(
    rule: Callable[[Document], list[str]], document: Document
) -> None:
    """A rule that cannot fail is no rule."""
    assert [] != rule(document)


def test_every_rule_has_a_planted_fault() -> None:
    """No rule goes without proof that it can fail."""
    assert set(RULES) == {rule for rule, _ in FAULTS}


def test_the_pages_are_built_without_a_warning(tmp_path: Path) -> None:
    """`make docs` prints nothing, and every Mermaid block becomes a picture."""
    mkdocs = [Path(sys.executable).with_name("mkdocs"), "build", "--strict", "--quiet"]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        [*mkdocs, "--site-dir", tmp_path], cwd=ROOT, env=quiet, capture_output=True, text=True
    )
    assert (0, "") == (built.returncode, built.stderr)
    for document in DOCUMENTS:
        page = tmp_path / document.path.with_suffix(".html").name
        if document.path.parent == ROOT / "docs":
            assert len(document.blocks("mermaid")) == page.read_text().count('<pre class="mermaid">')


def test_the_parameters_are_up_to_date() -> None:
    """`make parameters` would change nothing."""
    assert parameters.page(template()["Parameters"]) == parameters.PLACE.read_text(encoding="utf-8")


def test_no_parameter_has_a_bar_that_ends_a_cell() -> None:
    """Only a pattern's alternatives may be split where one is, and not inside parentheses."""
    assert {5} == {line.count("|") for line in parameters.PLACE.read_text().splitlines() if line[:1] == "|"}
    for parameter in template()["Parameters"].values():
        assert not re.search(r"\(.*\|", parameter.get("AllowedPattern", ""))


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ({"AllowedValues": ["no", "yes"]}, "`no`, `yes`"),
        ({"MinValue": 1, "MaxValue": 900}, "1 to 900"),
        ({"MinValue": 1}, "1 or more"),
        ({"AllowedPattern": "never|[1-9]"}, "`never`, `[1-9]`"),
        ({"MaxLength": 200}, "at most 200 characters"),
        ({"MinLength": 1}, "not empty"),
        ({}, "any"),
    ],
)
def test_a_parameter_is_listed_with_what_cloudformation_checks(
    parameter: dict[str, Any], values: str
) -> None:
    """In one cell of its row."""
    row = parameters.row("Name", {"Default": "x", "Description": "Names it."} | parameter)
    assert f"| `Name` | `x` | {values} | Names it. |\n" == row


def test_the_pictures_are_those_of_the_state_machines() -> None:
    """`make picture` would change nothing."""
    text = picture.PLACE.read_text(encoding="utf-8")
    for path in MACHINES:
        assert picture.MARKS[0].format(name=path.name) in text
        assert text == picture.in_place(text, path)


def foreign_arrows(text: str, definition: dict[str, Any]) -> list[str]:
    """The arrows of a picture by hand that the state machine does not have."""
    arrows = re.findall(r"^ +(\w+) -(?:->|- .* -->) (\w+)$", text, re.MULTILINE)
    return [f"{begin} to {end}" for begin, end in arrows if end not in picture.next_steps(definition, begin)]


def test_the_readme_s_picture_is_the_state_machine_s() -> None:
    """Each arrow is there, by way of choices at the most."""
    (drawn,) = read(README).blocks("mermaid")
    assert len(drawn.splitlines()) == 1 + len(re.findall(" -->|-- .* -->", drawn))
    assert [] == foreign_arrows(drawn, machine("run_once"))


@pytest.mark.parametrize(
    "arrow", ["AcquireLock --> CompleteRequest", "DoWork -- any --> ReadLock", "No --> DoWork"]
)
def test_an_arrow_that_the_state_machine_does_not_have_is_found(arrow: str) -> None:
    """The rule above can fail."""
    assert [] != foreign_arrows(f"    {arrow}\n", load_json(ROOT / "statemachines" / "run_once.asl.json"))


def test_the_map_of_the_packages_names_each_of_them() -> None:
    """And none that is gone."""
    table = read(ROOT / "docs" / "architecture.md").text.partition("| part of `steponce` |")[2]
    rows = re.findall(r"^\| ([a-z_, ]+) \|", table.partition("\n\n")[0], re.MULTILINE)
    named = {name for row in rows for name in row.split(", ")}

    parts = [path for path in (ROOT / "src" / "steponce").iterdir() if not path.name.startswith(("_", "."))]
    assert named == {path.stem for path in parts if path.suffix == ".py" or (path / "__init__.py").exists()}


def test_the_page_of_the_local_stack_names_every_command() -> None:
    """And none that is gone."""
    section = (
        read(ROOT / "docs" / "local-stack.md").text.partition("\n## Commands\n")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z]+)", row)}

    assert set(COMMANDS) == named
