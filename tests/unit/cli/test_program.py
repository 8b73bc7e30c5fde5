"""The program itself: its help, its exit code, and what it needs."""

from __future__ import annotations

import errno
import importlib.metadata
import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steponce import cli
from steponce.cli import commands
from tests import covering
from tests.unit.cli.fakes import COMPLETED, FakeClient


def test_the_help_names_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]):
    """A script's author finds the codes there."""
    commands_ = ("awaiting", "callback", "cancel", "erase", "init", "locks", "requests")
    commands_ += ("show", "start", "status", "up", "upgrade", "wait")
    assert 0 == commands.run(["--help"])
    out = capsys.readouterr().out
    assert all(f"\n  {command} " in out for command in commands_)
    assert all(f"\n    {code:>3}  " in out for code in (0, 1, 2, 3, 4, 70, 74, 130, 141))


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("start", "--key --check-owner --wait --timeout --machine --local --stack --region STEPONCE_STACK"),
        ("status", "--key --machine --local --stack --profile --region"),
        ("wait", "--key --timeout --machine --local --stack --profile --region"),
        ("show", "--key --payload --machine --local --stack --profile --region"),
        ("up", "--template --parameter STEPONCE_HOME"),
        ("init", "DIR --name --callback --http"),
        ("upgrade", "[DIR] edited"),
        ("awaiting list", "--machine --local --stack --profile --region"),
        ("awaiting show", "ID --link --machine --local --stack --profile --region"),
        ("callback succeed", "ID [FILE] accepted conflict --machine --local --stack --profile --region"),
        (
            "callback fail",
            "ID [FILE] --error --cause accepted conflict --machine --local --stack --profile --region",
        ),
        ("callback heartbeat", "ID accepted conflict --machine --local --stack --profile --region"),
        ("locks list", "--running --overdue --failed --limit --machine --local --stack --profile --region"),
        ("locks inspect", "KEY --machine --local --stack --profile --region"),
        ("locks release", "KEY --yes --by --why --machine --local --stack --profile --region"),
        ("locks complete", "KEY FILE --yes --by --why --machine --local --stack --profile --region"),
        ("locks retry", "KEY --yes --by --why --machine --local --stack --profile --region"),
        ("cancel", "REQUEST_ID --yes --by --why --machine --local --stack --profile --region"),
        ("letters list", "--limit --machine --local --stack --profile --region"),
        ("requests list", "--status --since --until --under --limit --machine --local --stack --profile"),
        ("erase", "PREFIX --yes --by --why --local --stack --profile --region"),
    ],
)
def test_the_help_of_a_command_names_its_options(
    capsys: pytest.CaptureFixture[str], command: str, options: str
):
    """And every command says in a sentence what it does."""
    assert 0 == commands.run([*command.split(), "--help"])
    out = capsys.readouterr().out
    assert [] == [option for option in options.split() if option not in out]


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]):
    """As pip knows it."""
    assert 0 == commands.run(["--version"])
    assert importlib.metadata.version("steponce") in capsys.readouterr().out


def test_the_program_leaves_with_the_commands_exit_code(monkeypatch: pytest.MonkeyPatch):
    """`steponce.cli:main` is what the installed program calls."""
    monkeypatch.setattr(sys, "argv", ["steponce", "status"])

    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert 2 == exit_.value.code


@pytest.mark.usefixtures("terminal")
def test_a_terminal_that_lacks_a_character_gets_its_number(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    """A lock token in Japanese ends no list with a traceback, on a terminal that only knows ASCII."""
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "argv", ["steponce", "status", "order-1"])
    client.answers["status"] = replace(COMPLETED, lock_token="m/日本")

    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert (0, True) == (exit_.value.code, rb"m/\u65e5\u672c" in screen.buffer.getvalue())


@pytest.mark.parametrize(
    ("arguments", "code"), [(["status", "order-1"], 0), (["start", "order-1", "-"], 2), (["status"], 2)]
)
@pytest.mark.usefixtures("client")
def test_a_closed_stream_is_an_empty_one(monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int):
    """The shell closes one by `<&-` or `>&-`. Python then has None in its place."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    monkeypatch.setattr(sys, "argv", ["steponce", *arguments])

    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert code == exit_.value.code


def test_an_interrupted_start_of_the_program_is_told_by_its_exit_code(monkeypatch: pytest.MonkeyPatch):
    """Most of a short command's time is its imports. Ctrl-C gave a traceback there."""

    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "steponce.cli.commands", Interrupted("commands"))
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert 130 == left.value.code


def test_without_its_libraries_the_program_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch):
    """Lambda's layer has neither click nor rich."""
    monkeypatch.delitem(sys.modules, "steponce.cli.commands")
    monkeypatch.setitem(sys.modules, "click", None)

    with pytest.raises(SystemExit, match=r"pip install 'steponce\[cli\]'"):
        cli.main()


LINT = ["lint", "statemachines/run_once.asl.json"]


def _end_of(arguments: list[str], **streams: Any) -> tuple[int, str]:
    """The exit code of the whole program, and what it said on standard error."""
    program = [sys.executable, "-c", "from steponce.cli import main; main()", *arguments]
    done = subprocess.run(program, **{"stderr": subprocess.PIPE, "text": True, "check": False} | streams)
    return done.returncode, done.stderr or ""


@pytest.mark.full
@pytest.mark.parametrize("arguments", [["--help"], LINT])
def test_a_reader_that_has_seen_enough_ends_the_program_quietly(arguments: list[str]):
    """`steponce show order-1 | head -1` is no failed request, and needs no message."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as closed:
        assert (141, "") == _end_of(arguments, stdout=closed)


@covering.first(1, "arguments", [["--help"], LINT, ["lint", "--format", "sarif", LINT[1]]])
def test_an_answer_that_cannot_be_written_takes_one_line_and_an_exit_code(arguments: list[str]):
    """What the command did is done, so it is no bug and no failed request."""
    with Path(os.devnull).open("r") as unwritable:
        code, said = _end_of(arguments, stdout=unwritable)
    assert (74, 1, True) == (code, said.count("\n"), "could not be written" in said)


@pytest.mark.full
@pytest.mark.parametrize("arguments", [["lint"], ["locks"]], ids=["an error", "the help of a group"])
def test_an_error_that_cannot_be_told_keeps_its_exit_code(arguments: list[str]):
    """Nor does Python complain at its exit, which makes the code 120."""
    with Path(os.devnull).open("r") as unwritable:
        assert 2 == _end_of(arguments, stdout=subprocess.DEVNULL, stderr=unwritable)[0]


@covering.first(1, "gone", ["reader", "disk"])
def test_an_error_that_a_pipe_does_not_take_keeps_its_exit_code(gone: str):
    """74 and 141 say that what the command did is done, and this one has done nothing."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as closed, Path(os.devnull).open("r") as unwritable:
        code, said = _end_of(["lint"], stdout={"reader": closed, "disk": unwritable}[gone])
    assert (2, 1, True) == (code, said.count("\n"), "UsageError" in said)


def test_an_answer_too_large_for_a_buffer_is_not_written_either(
    client: FakeClient, capsys: pytest.CaptureFixture[str]
):
    """Then the write itself fails, and no later one."""
    client.answers["status"] = OSError(errno.ENOSPC, "No space left on device")
    assert 74 == commands.run(["status", "order-1"])
    assert "Traceback" not in capsys.readouterr().err


def test_an_error_of_a_file_is_no_answer_that_could_not_be_written(client: FakeClient):
    """It stays what it was: a bug, if nobody has foreseen it."""
    client.answers["status"] = OSError(errno.EIO, "Input/output error", "/some/file")
    assert 70 == commands.run(["status", "order-1"])
