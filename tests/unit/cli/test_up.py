"""The command that keeps a local stack running."""

from __future__ import annotations

import io
import os
import resource
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from rich.console import Console

from steponce import SteponceError
from steponce.cli import commands, up
from steponce.local import LocalStack, LocalStackError, TemplateError, read_facts, write_facts
from steponce.program import program
from steponce.scaffold import sources
from tests.unit.cli.fakes import ENDPOINTS, FACTS, in_a_pipe


def test_up_refuses_a_second_stack_in_the_same_folder(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its facts would replace the first one's."""
    write_facts(FACTS, home)
    monkeypatch.setattr(up, "not_serving", lambda _endpoints: None)

    assert 2 == commands.run(["up"])
    assert f"A stack runs here already (process {os.getpid()})" in in_a_pipe(capsys)["error"]["message"]


def test_up_refuses_to_replace_a_file_that_is_no_stack_s(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
):
    """STEPONCE_HOME can name any folder. The file would be gone when the stack ends."""
    home.mkdir()
    (home / "stack.json").write_text('{"mine": true}')
    stack_that_runs(monkeypatch, lambda _when: None)

    assert 2 == commands.run(["up"])
    assert "stack.json cannot be read as the facts of a local stack" in in_a_pipe(capsys)["error"]["message"]
    assert '{"mine": true}' == (home / "stack.json").read_text()


def test_up_refuses_a_template_without_a_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """As from a variable of the shell that is not set. It served the sample, and a pipe did not say so."""
    monkeypatch.setattr(up, "serve", lambda *_: 0)
    assert 2 == commands.run(["up", "--template", ""])
    assert "it is blank. Give a file's name" in in_a_pipe(capsys)["error"]["message"]


def stack_that_runs(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[str], None]) -> dict[str, Any]:
    """A stack with facts. Something happens while it starts, and while it runs until Ctrl-C."""
    facts = FACTS | {"name": "mine", "endpoints": dict.fromkeys(ENDPOINTS, "http://127.0.0.1:7")}
    stack = MagicMock(endpoints=facts["endpoints"])
    stack.facts.return_value = facts
    read = MagicMock()
    read.plan.left_out = []
    read.__exit__.return_value = None

    def start() -> MagicMock:
        meanwhile("starts")
        return stack

    def watch(_endpoints: Mapping[str, str]) -> None:
        meanwhile("runs")
        raise KeyboardInterrupt

    read.__enter__.side_effect = start
    monkeypatch.setattr(LocalStack, "from_template", lambda *_, **__: read)
    monkeypatch.setattr(up, "not_serving", lambda _endpoints: None)
    monkeypatch.setattr(up, "_watch", watch)
    return facts


def another_when(time: str, home: Path) -> Callable[[str], None]:
    """Another stack's facts come at this time."""

    def meanwhile(when: str) -> None:
        if when == time:
            write_facts(FACTS, home)

    return meanwhile


def test_up_looks_once_more_when_its_stack_has_started(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
):
    """Another one, started in the same folder at the same time, may be there first."""
    stack_that_runs(monkeypatch, another_when("starts", home))

    assert 2 == commands.run(["up"])
    assert "A stack runs here already" in in_a_pipe(capsys)["error"]["message"]
    assert FACTS == read_facts(home)


def test_up_takes_no_facts_of_another_stack_away(home: Path, monkeypatch: pytest.MonkeyPatch):
    """They may have replaced its own. The other stack runs, and can be found."""
    stack_that_runs(monkeypatch, another_when("runs", home))

    assert 0 == commands.run(["up"])
    assert FACTS == read_facts(home)


@pytest.mark.parametrize("left", ["own", "damaged", "none"])
def test_up_takes_its_own_facts_away(left: str, home: Path, monkeypatch: pytest.MonkeyPatch):
    """Also those that nobody can read, and old ones with the very addresses that are its own now."""
    file = home / "stack.json"

    def meanwhile(when: str) -> None:
        if when == "starts":
            write_facts(facts, home)
        elif left == "damaged":
            file.write_text("{")
        elif left == "none":
            file.unlink()

    facts = stack_that_runs(monkeypatch, meanwhile)

    assert 0 == commands.run(["up"])
    assert not file.exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [(TemplateError("bad template"), 2), (LocalStackError("no port"), 4)],
    ids=["template", "engine"],
)
def test_up_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int
):
    """A wrong template is wrong usage; an engine that does not start is unreachable."""

    def from_template(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(LocalStack, "from_template", from_template)

    assert code == commands.run(["up"])
    assert str(error) in in_a_pipe(capsys)["error"]["message"]


def test_up_without_a_template_here_says_that_it_runs_the_sample(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """A person in the wrong folder sees that it is not their own."""

    def from_template(path: str, **_: Any) -> None:
        raise TemplateError(path)

    monkeypatch.setattr(LocalStack, "from_template", from_template)
    monkeypatch.setattr("steponce.cli.up.for_people", lambda: True)
    monkeypatch.chdir(tmp_path)

    assert 2 == commands.run(["up"])
    assert f"so this is the sample's: {sources.sample()}" in capsys.readouterr().err
    (tmp_path / "template.yaml").touch()
    assert 2 == commands.run(["up"])
    assert "the sample's" not in capsys.readouterr().err


def test_up_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Before it starts, and not among its facts."""
    read = MagicMock()
    read.plan.left_out = ["not supported on the local stack: AWS::Pipes::Pipe (P). It is left out."]
    read.__enter__.side_effect = LocalStackError("enough")
    monkeypatch.setattr(LocalStack, "from_template", lambda *_, **__: read)

    assert 4 == commands.run(["up"])
    said = capsys.readouterr()
    assert said.err.startswith(f"{read.plan.left_out[0]}\n")
    assert "Pipe" not in said.out


@pytest.mark.parametrize("place", [".", "below"])
def test_up_needs_a_folder_for_its_facts_before_the_stack_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, place: str
):
    """No folder can be made where a file is, or below one. Root may write anywhere else."""
    (tmp_path / "facts").write_text("mine")
    monkeypatch.setenv("STEPONCE_HOME", str(folder := tmp_path / "facts" / place))
    stack = MagicMock()
    stack.plan.left_out = []
    monkeypatch.setattr(LocalStack, "from_template", lambda *_, **__: stack)

    assert 2 == commands.run(["up"])
    said = in_a_pipe(capsys)["error"]["message"]
    assert f"cannot be stored in {folder}: " in said
    assert "Name another folder: STEPONCE_HOME=elsewhere" in said
    stack.__enter__.assert_not_called()
    assert "mine" == (tmp_path / "facts").read_text()


@contextmanager
def full_disk() -> Iterator[None]:
    """As on a full disk, a file can be made, but no byte be written into it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_up_on_a_full_disk_does_not_start(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
):
    """It started, ended, and said that what it did is done."""
    stack_that_runs(monkeypatch, lambda when: pytest.fail(f"It {when}."))

    with full_disk():
        assert 2 == commands.run(["up"])
    said = in_a_pipe(capsys)["error"]["message"]
    assert f"cannot be stored in {home}: File too large. Name another folder: STEPONCE_HOME=elsewhere" in said
    assert [] == list(home.iterdir())


@pytest.mark.parametrize("why", ["File too large", "Is a directory"])
def test_up_whose_facts_cannot_be_stored_says_why(
    why: str, capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
):
    """The stack ends, and nothing stays: neither its facts nor a part of them."""
    with ExitStack() as until_it_ends:

        def meanwhile(when: str) -> None:
            assert "starts" == when
            if why == "Is a directory":
                (home / "stack.json").mkdir()
            else:
                until_it_ends.enter_context(full_disk())

        stack_that_runs(monkeypatch, meanwhile)
        assert 2 == commands.run(["up"])

    said = in_a_pipe(capsys)["error"]["message"]
    assert f"cannot be stored in {home / 'stack.json'}: {why}. Name another folder: STEPONCE_HOME=" in said
    assert [] == [path for path in home.iterdir() if path.is_file()]


def test_up_notices_that_its_stack_has_died():
    """A stack in the foreground that serves nothing is worse than none."""
    with pytest.raises(SteponceError, match=r"no answer at http://127\.0\.0\.1:9"):
        up._watch({"states": "http://127.0.0.1:9"})


def test_up_shows_people_where_everything_is():
    """Endpoints and outputs, by name."""
    facts = {"name": "s", "endpoints": {"states": "http://127.0.0.1:1"}, "outputs": {"LocksTable": "t-locks"}}
    console = Console(file=io.StringIO(), width=100)

    with console.capture() as shown:
        console.print(up._welcome(facts))

    assert all(text in shown.get() for text in ("The stack s runs", "http://127.0.0.1:1", "t-locks"))


def test_up_names_three_commands_that_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With the sample event where there is one, else on standard input; and with the folder."""
    template = str(tmp_path / "template.yaml")
    elsewhere = up._to_try(template)
    (tmp_path / "events").mkdir()
    event = tmp_path / "events" / "start_order.json"
    event.touch()
    monkeypatch.delenv("STEPONCE_HOME")

    assert [
        f"{program()} start order-1 {shlex.quote(str(event))} --local --wait",
        f"{program()} start order-1 {shlex.quote(str(event))} --local",
        f"{program()} show order-1 --local",
    ] == up._to_try(template)
    assert elsewhere[0].startswith('echo \'{"orderId"')
    assert (
        f"STEPONCE_HOME={shlex.quote(str(tmp_path / 'home'))} {program()} start order-1 - --local --wait"
        in elsewhere[0]
    )
