"""Hints can be typed as they stand, from the directory where they are shown."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

from steponce.cli import up
from steponce.local import LocalStackError, read_facts
from steponce.program import program
from tests import covering

SCRIPTS = Path(sysconfig.get_path("scripts"))


@pytest.fixture(autouse=True)
def nothing_on_path(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@covering.first(1, "where", [SCRIPTS.parents[1], SCRIPTS.parent, SCRIPTS, Path("/")])
def test_the_program_runs_as_it_is_typed(where: Path, monkeypatch: pytest.MonkeyPatch):
    """Below the project, in the folder of the program itself, and far away."""
    monkeypatch.chdir(where)
    said = subprocess.run(f"{program()} --version", shell=True, capture_output=True, text=True)  # noqa: S602
    assert said.stdout.startswith("steponce, version"), said.stderr


def test_the_path_is_as_short_as_it_can_be(monkeypatch: pytest.MonkeyPatch):
    """From the project's folder, by the name if the shell finds it, and whole from elsewhere."""
    monkeypatch.chdir(SCRIPTS.parents[1])
    assert f"{SCRIPTS.parent.name}/{SCRIPTS.name}/steponce" == program()
    monkeypatch.setenv("PATH", str(SCRIPTS), prepend=os.pathsep)
    assert "steponce" == program()
    monkeypatch.chdir("/")
    assert "steponce" == program()


def test_another_steponce_on_the_path_is_not_the_one_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A program of an other environment would speak to another stack."""
    other = tmp_path / "steponce"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.chdir(SCRIPTS.parents[1])
    assert f"{SCRIPTS.parent.name}/{SCRIPTS.name}/steponce" == program()


def test_what_up_and_an_absent_stack_tell_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The three commands to try, and the one that starts a stack."""
    monkeypatch.chdir(tmp_path)
    typed = shlex.quote(str(SCRIPTS / "steponce"))
    assert all(f"{typed} st" in line or f"{typed} show" in line for line in up._to_try("template.yaml"))
    with pytest.raises(LocalStackError) as nothing_here:
        read_facts(tmp_path)
    assert str(nothing_here.value).endswith(f"{typed} up")
