"""Rules for the documents: the README, the pages of docs/, and the maps for contributors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.rules.documents import ROOT

README = ROOT / "README.md"
NEW_APPLICATION = ROOT / "application" / "{{cookiecutter.project_slug}}"
"""What `steponce init` writes; a page about it names its files."""

LANGUAGES = {"sh", "python", "ini", "text", "mermaid"}
"""What a test knows how to run, to compare or to draw."""

OF_ONE_PAGE = {
    ("several-workflows.md", "yaml"),
    ("callbacks.md", "yaml"),
    ("callbacks.md", "json"),
    ("own-application.md", "js"),
}
"""
Blocks that only one page has. Its own test reads them: second_workflow.py, rules/test_events.py and
real/test_cdk.py.
"""

_TARGETS = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
_NAMED_TARGETS = re.compile(r"(?:^|`)make ([a-z][a-z-]*)\b", re.MULTILINE)
_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FILE = re.compile(r"`((?:functions|statemachines|events|tests|docs)/[\w./-]*|[\w-]+\.(?:yaml|yml|toml|md))`")


class Document(NamedTuple):
    """A Markdown file: where it is, and its text."""

    path: Path
    text: str

    def blocks(self, language: str) -> list[str]:
        """The code blocks in one language, in their order."""
        return [body for found, body in _FENCE.findall(self.text) if found == language]

    def commands(self) -> list[str]:
        """The shell commands, in their order; one that goes over several lines is one."""
        lines = "\n".join(self.blocks("sh")).replace("\\\n", " ").splitlines()
        return [line.partition(" # ")[0].strip() for line in lines if line.strip()]

    def prose(self) -> str:
        """The text without its code blocks."""
        return _FENCE.sub("", self.text)


def read(path: Path) -> Document:
    """One document, as its file has it."""
    return Document(path, path.read_text(encoding="utf-8"))


PATHS = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "tests" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
DOCUMENTS = [read(path) for path in PATHS]


def rule_blocks_are_of_a_known_language(document: Document) -> list[str]:
    """No test reads a block in another language, so it could be wrong."""
    return [
        f"a block of {language!r}"
        for language, _ in _FENCE.findall(document.text)
        if language not in LANGUAGES and (document.path.name, language) not in OF_ONE_PAGE
    ]


def rule_links_lead_somewhere(document: Document) -> list[str]:
    """A file that a link names exists, and has the heading that it names."""
    complaints = []
    for link in _LINK.findall(document.prose()):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (document.path.parent / name).resolve() if name else document.path
        if not target.exists():
            complaints.append(f"{link} leads nowhere")
        elif anchor and anchor not in anchors(document if target == document.path else read(target)):
            complaints.append(f"{link} names no heading")
    return complaints


def anchors(document: Document) -> set[str]:
    """What links may name after the `#`."""
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
        for heading in _HEADING.findall(document.prose())
    }


def rule_files_exist(document: Document) -> list[str]:
    """A path that the prose names exists, unless its capitals mark a name to fill in."""
    names = [name for name in _FILE.findall(document.prose()) if not re.search("[A-Z]{4}_|_NAME", name)]
    places = (ROOT, document.path.parent, NEW_APPLICATION)
    return [f"there is no {name}" for name in names if not any((place / name).exists() for place in places)]


def rule_make_has_the_targets(document: Document) -> list[str]:
    """`make X` is a command only if the Makefile has X."""
    known = set(_TARGETS.findall((ROOT / "Makefile").read_text()))
    return [f"make has no {name}" for name in _NAMED_TARGETS.findall(document.text) if name not in known]


def rule_the_readme_is_short(document: Document) -> list[str]:
    """A newcomer reads it in five minutes, and its first commands are the two that matter."""
    if document.path != README:
        return []
    complaints = [f"{len(document.text.splitlines())} lines"] * (len(document.text.splitlines()) > 150)
    if document.commands()[:2] != ["make run", "make test"]:
        complaints.append("its first commands are not make run and make test")
    return complaints


def rule_pages_belong_to_the_contents(document: Document) -> list[str]:
    """A page that is not in the contents cannot be found in a browser."""
    if document.path.parent != ROOT / "docs":
        return []
    contents = (ROOT / "mkdocs.yml").read_text()
    return [] if f": {document.path.name}\n" in contents else [f"{document.path.name} is not in mkdocs.yml"]
