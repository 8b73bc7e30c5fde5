"""Writes the project that tests the plugin: `project/`, and the examples of docs/testing.md."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.rules.documents import ROOT
from tests.rules.prose import read

PAGE = ROOT / "docs" / "testing.md"
PROJECT = Path(__file__).parent / "project"


def write_project(folder: Path, *, with_slow_tests: bool = False) -> None:
    """The configuration and the conftest are those of the page, too."""
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
    (folder / "more_tests.py").rename(folder / "test_more.py")
    if with_slow_tests:
        (folder / "slow_tests.py").rename(folder / "test_slow.py")
    page = read(PAGE)
    (configuration,) = page.blocks("ini")
    (folder / "pytest.ini").write_text(configuration)
    conftest, *examples = page.blocks("python")
    (folder / "conftest.py").write_text(f"{conftest}\npytest_plugins = ['again']\n")
    (folder / "test_page.py").write_text("\n\n".join(examples))
