"""The commands `init` and `upgrade`: what they answer, and with which exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steponce.cli import applications, commands, output
from steponce.scaffold import installation
from steponce.scaffold.upgrade import Changes
from tests.unit.cli.fakes import Answer


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_init_says_what_it_wrote_and_what_comes_next(here: Path, answer: Answer):
    """The folder's name is the stack's."""
    assert 0 == commands.run(["init", "orders", "--callback"])

    said = answer()
    assert ("orders", "orders") == (said["folder"], said["stack"])
    assert "tests/test_confirmation.py" in said["files"]
    assert all((here / "orders" / path).is_file() for path in said["files"])
    assert ["cd orders", "make setup", "make test", "make up"] == said["next"]


def test_init_takes_another_name_for_the_stack(here: Path, answer: Answer):
    """A folder may have a name that no stack can have."""
    assert 2 == commands.run(["init", "my_orders"])
    assert "'my_orders' cannot name a stack" in answer()["error"]["message"]
    assert [] == list(here.iterdir())

    assert 0 == commands.run(["init", "my_orders", "--name", "my-orders"])
    assert "my-orders" == answer()["stack"]


@pytest.mark.parametrize("folder", ["my orders", "-orders", "-"])
def test_a_shell_goes_into_any_folder(here: Path, answer: Answer, folder: str):
    """What begins with a dash would be an option, and a dash alone the folder before."""
    assert 0 == commands.run(["init", "--name", "orders", "--", folder])
    shell = subprocess.run(["sh", "-c", f"{answer()['next'][0]} && pwd -P"], capture_output=True, check=True)
    assert here / folder == Path(shell.stdout.decode().strip())


@pytest.mark.parametrize("arguments", [["init", ""], ["upgrade", " "], ["init", "orders", "--name", ""]])
def test_a_folder_or_name_that_is_blank_is_refused(here: Path, answer: Answer, arguments: list[str]):
    """As from a variable of the shell that is not set: it was this folder, and the name of the folder."""
    assert 2 == commands.run(arguments)
    assert "it is blank" in answer()["error"]["message"]
    assert [] == list(here.iterdir())


def test_init_does_not_write_over_anything(here: Path, answer: Answer):
    """Wrong usage, and nothing changes."""
    (here / "orders").mkdir()
    (here / "orders" / "mine").touch()

    assert 2 == commands.run(["init", "orders"])
    assert "is not empty" in answer()["error"]["message"]
    assert [here / "orders" / "mine"] == list((here / "orders").iterdir())


def test_upgrade_works_on_the_folder_where_it_is_called(
    here: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
):
    """And refuses what was edited: a conflict."""
    commands.run(["init", "orders"])
    monkeypatch.chdir(here / "orders")
    answer()

    assert 0 == commands.run(["upgrade"])
    assert ([], "") == (answer()["changed"], "")
    (here / "orders" / installation.FOLDER / "template.yaml").write_text("mine")
    assert 3 == commands.run(["upgrade"])
    assert "template.yaml" in answer()["error"]["message"]
    assert 2 == commands.run(["upgrade", str(here)])
    assert "UsageError" == answer()["error"]["type"]


def test_people_see_the_files_and_how_the_workflow_has_changed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """A list, and a difference to apply by hand."""
    monkeypatch.setattr(output, "for_people", lambda: True)
    changes = Changes("0.1.0", "0.2.0", ["new.txt"], [], ["template.yaml"], "-old\n+new\n")
    monkeypatch.setattr(applications, "upgrade_in", lambda _: changes)

    assert 0 == commands.run(["init", "orders"])
    assert f"  {installation.FOLDER}/\n\nNext:\n  cd orders\n" in capsys.readouterr().out
    assert 0 == commands.run(["upgrade", "orders"])
    shown = capsys.readouterr().out
    assert "0.1.0 -> 0.2.0: 2 files" in shown
    assert all(text in shown for text in ("new.txt", "template.yaml", "statemachines/run_once", "+new"))
