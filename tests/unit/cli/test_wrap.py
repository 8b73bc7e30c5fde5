"""The command `wrap`: what it writes, what it answers, and what it refuses."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from steponce.cli import commands, output
from steponce.wrap import fragment, source, wrap_inline
from tests import covering
from tests.machines import effect, machine
from tests.machines.around import CONTINUED
from tests.machines.inline import CLASH, LATER, ORDER, SOON
from tests.unit.cli.fakes import Answer

TEMPLATE = """\
Transform: AWS::Serverless-2016-10-31
Resources:
  Orders:
    Type: AWS::Serverless::StateMachine
    Properties:
      DefinitionUri: order.asl.json
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one definition, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "order.asl.json").write_text(json.dumps(ORDER.definition))
    return tmp_path


@pytest.mark.parametrize("file", ["", " ", ".", "/"])
def test_what_is_no_file_is_refused(answer: Answer, file: str):
    """It was a bug in steponce."""
    assert 2 == commands.run(["wrap", file])
    assert answer()["error"]["message"].startswith(
        ("Invalid value for '[FILE]': it is blank.", "It cannot be read")
    )


def test_it_writes_beside_the_old_file_and_leaves_that_alone(here: Path, answer: Answer):
    """The answer says what a person must decide."""
    assert 0 == commands.run(["wrap", "order.asl.json"])

    said = answer()
    assert (["order_once.asl.json"], "inline", {}, []) == (
        said["written"],
        said["form"],
        said["renamed"],
        said["mayRetryLater"],
    )
    assert any("NotPayable" in text for text in said["decide"])
    assert any("CAPABILITY_AUTO_EXPAND" in text for text in said["decide"])
    assert "TemplateURL: steponce-installation/template.yaml" in said["template"]
    assert any("the command init" in text for text in said["decide"])
    assert "AcquireLock" in json.loads((here / "order_once.asl.json").read_text())["States"]
    assert ORDER.definition == json.loads((here / "order.asl.json").read_text())


def test_it_writes_over_nothing_unless_it_is_told_to(here: Path, answer: Answer):
    """Over the definition itself not even then."""
    (here / "order_once.asl.json").write_text("mine")
    assert 2 == commands.run(["wrap", "order.asl.json"])
    assert "is there already" in answer()["error"]["message"]
    assert 2 == commands.run(["wrap", "order.asl.json", "--output", "./order.asl.json", "--force"])
    assert "order.asl.json itself is not changed" in answer()["error"]["message"]
    assert 2 == commands.run(["wrap", "missing.json", "--output", "order.asl.json", "--force"])
    assert ORDER.definition == json.loads((here / "order.asl.json").read_text())
    assert 0 == commands.run(["wrap", "order.asl.json", "--output", "new.json"])
    assert 0 == commands.run(["wrap", "order.asl.json", "--force"])
    assert "mine" != (here / "order_once.asl.json").read_text()


INTO = ["--into", "template.yaml", "--machine", "Orders"]


def test_a_placeholder_may_have_any_name(here: Path, answer: Answer):
    """Also where it stands for a function or a number, which are checked as AWS would check them."""
    pay = {"Type": "Task", "Resource": "${fn-arn}", "TimeoutSeconds": 5, "End": True}
    text = json.dumps({"StartAt": "Pay", "States": {"Pay": pay}}).replace("5", "${time.out}")
    (here / "pay.asl.json").write_text(text)
    assert 0 == commands.run(["wrap", "pay.asl.json"])
    assert "fn-arn: FILL_IN" in answer()["template"]
    wrapped = (here / "pay_once.asl.json").read_text()
    assert '"Resource": "${fn-arn}"' in wrapped
    assert '"TimeoutSeconds": ${time.out}' in wrapped


@pytest.mark.parametrize("more", [["--force"], ["--output", "new.json"]], ids=["force", "output"])
def test_into_a_template_nothing_is_written_over(here: Path, answer: Answer, more: list[str]):
    """The message names the option that is too much."""
    (here / "template.yaml").write_text(TEMPLATE)
    assert 2 == commands.run(["wrap", *INTO, *more])
    assert "Leave out --output and --force: --into" in answer()["error"]["message"]


@pytest.mark.parametrize(
    ("options", "full"),
    [
        (["order.asl.json", "--output", "order_once.json", "--force"], "order_once.json"),
        (INTO, "template.yaml"),
    ],
    ids=["output", "into"],
)
def test_a_full_disk_leaves_what_was_there(
    here: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch, options: list[str], full: str
):
    """A person's template above all; and no draft stays."""
    (here / "template.yaml").write_text(TEMPLATE)
    (here / "order_once.json").write_text("mine")
    before, write = (here / full).read_text(), Path.write_text

    def half(path: Path, text: str, **more: Any) -> int:
        if full not in path.name:
            return write(path, text, **more)
        write(path, text[: len(text) // 2], **more)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", half)
        assert 2 == commands.run(["wrap", *options])
    assert "No space left" in answer()["error"]["message"]
    assert before == (here / full).read_text()
    assert [] == list(here.glob(".*"))


@covering.first(
    1,
    ("full", "named"),
    [
        ("manifest.json", "steponce-installation"),
        (".order_once.asl.json.steponce-draft", "order_once.asl.json"),
        (".template.yaml.steponce-draft", "template.yaml"),
    ],
)
def test_what_is_written_before_an_error_is_removed(
    here: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch, full: str, named: str
):
    """The command may be given again at once. The message names what could not be written."""
    (here / "template.yaml").write_text(TEMPLATE)
    before = {path.name for path in here.iterdir()}

    def limited(write: Callable[..., int]) -> Callable[..., int]:
        def to(path: Path, content: Any, **more: Any) -> int:
            if path.name == full:
                raise OSError(errno.EFBIG, "File too large")
            return write(path, content, **more)

        return to

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", limited(Path.write_text))
        disk.setattr(Path, "write_bytes", limited(Path.write_bytes))
        assert 2 == commands.run(["wrap", *INTO])
    assert f"File too large: '{named}'. Nothing was written." in answer()["error"]["message"]
    assert before == {path.name for path in here.iterdir()}
    assert TEMPLATE == (here / "template.yaml").read_text()
    assert 0 == commands.run(["wrap", *INTO])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_ctrl_c_leaves_all_or_nothing(here: Path, monkeypatch: pytest.MonkeyPatch, moment: str):
    """The template names the other parts, so they stay once it is there, and not before."""
    (here / "template.yaml").write_text(TEMPLATE)
    before, replace = {path.name for path in here.iterdir()}, Path.replace

    def interrupted(path: Path, target: Path) -> None:
        if target.name != "template.yaml" or moment == "after":
            replace(path, target)
        if target.name == "template.yaml":
            raise KeyboardInterrupt

    with monkeypatch.context() as person:
        person.setattr(Path, "replace", interrupted)
        assert 130 == commands.run(["wrap", *INTO])
    written = {"steponce-installation", "order_once.asl.json"} if moment == "after" else set()
    assert before | written == {path.name for path in here.iterdir()}
    assert (moment == "before") == (TEMPLATE == (here / "template.yaml").read_text())


@pytest.mark.parametrize("file", ["order.asl.json", "template.yaml"])
def test_a_file_that_is_not_utf_8_is_named(here: Path, answer: Answer, file: str):
    """There are two, and one of them says where the other one is."""
    (here / "template.yaml").write_text(TEMPLATE)
    (here / file).write_bytes((here / file).read_bytes() + b"\xe9")
    assert 2 == commands.run(["wrap", *INTO])
    assert f"{file} is not UTF-8: unexpected end of data at byte" in answer()["error"]["message"]


def test_a_template_keeps_its_mode_and_its_link(here: Path):
    """The draft takes its place, and not that of a link to it."""
    (here / "real.yaml").write_text(TEMPLATE)
    (here / "real.yaml").chmod(0o640)
    (here / "template.yaml").symlink_to("real.yaml")
    assert 0 == commands.run(["wrap", *INTO])
    assert (here / "template.yaml").is_symlink()
    assert "Steponce:" in (here / "real.yaml").read_text()
    assert 0o640 == (here / "real.yaml").stat().st_mode & 0o777


def test_a_definition_can_go_into_a_pipe(here: Path):
    """A file would take the place of the pipe, and of /dev/null if root runs this."""
    os.mkfifo(here / "pipe")
    reader = os.open(here / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        assert 0 == commands.run(["wrap", "order.asl.json", "--output", "pipe", "--force"])
        assert (here / "pipe").is_fifo()
        assert "StartAt" in json.load(pipe)


def test_what_is_wrapped_is_not_wrapped_again(here: Path, answer: Answer):
    """The second lock would be the first one's own."""
    commands.run(["wrap", "order.asl.json"])
    answer()
    assert 2 == commands.run(["wrap", "order_once.asl.json"])
    assert "wrapped already" in answer()["error"]["message"]
    assert {"order.asl.json", "order_once.asl.json"} == {path.name for path in here.iterdir()}


@pytest.mark.parametrize(
    ("definition", "options", "reason"),
    [
        (CONTINUED.definition, [], "Wrap it with --around"),
        (machine({"Do": effect("do", Next="Gone")}), [], "'Gone', but there is no such state"),
        (machine({"Do": {"Type": "Job"}}), ["--around"], "Type must be one of"),
        (LATER.definition, ["--may-retry-later", "First"], "First: only a Task that calls a function"),
        (LATER.definition, ["--around", "--may-retry-later", "Third"], "goes without --around"),
    ],
)
def test_what_cannot_be_wrapped_is_refused_before_anything_is_written(
    here: Path, answer: Answer, definition: dict[str, Any], options: list[str], reason: str
):
    """With the state, and what to do."""
    (here / "other.asl.json").write_text(json.dumps(definition))
    assert 2 == commands.run(["wrap", "other.asl.json", *options])
    assert reason in answer()["error"]["message"]
    assert not (here / "other_once.asl.json").exists()


@pytest.mark.parametrize("text", ['{"Resources": {}}', "Resources:\n  Machine: {}\n"], ids=["JSON", "YAML"])
def test_a_template_goes_with_into(here: Path, answer: Answer, text: str):
    """It is no definition, and its YAML need not become JSON."""
    (here / "template").write_text(text)
    assert 2 == commands.run(["wrap", "template"])
    assert "with --into, and its machine with --machine" in answer()["error"]["message"]


def test_a_file_that_is_not_there_is_named(answer: Answer):
    """Wrong usage."""
    assert 2 == commands.run(["wrap", "none.asl.json"])
    assert "'none.asl.json'" in answer()["error"]["message"]


def test_a_state_may_be_named_that_releases_the_lock(here: Path, answer: Answer):
    """By default it is one that no effect is before."""
    for name, case, options, states in (
        ("soon", SOON, [], ["First"]),
        ("later", LATER, ["--may-retry-later", "Third"], ["Third"]),
    ):
        (here / f"{name}.asl.json").write_text(json.dumps(case.definition))
        assert 0 == commands.run(["wrap", f"{name}.asl.json", *options])
        assert states == answer()["mayRetryLater"]


@covering.first(
    8,
    "name",
    [
        "order #1.asl.json",
        "a: b.asl.json",
        *(f"{first}x.asl.json" for first in "%@&*!'{[`|>#"),
        '"x".asl.json',
        "a\nb.asl.json",
        "日 😀 é'.asl.json",
        "order.v2.asl.json",
    ],
)
@covering.first(1, "options", [[], ["--around"]])
def test_the_template_s_part_names_the_file_whatever_it_is_called(
    here: Path, answer: Answer, name: str, options: list[str]
):
    """`order #1` was `order`, with a comment."""
    (here / "order.asl.json").rename(here / name)
    assert 0 == commands.run(["wrap", *options, "--", name])
    said = answer()
    found = yaml_parse(said["template"])["Resources"]["RunOnceStateMachine"]
    assert said["written"] == [found["Properties"]["DefinitionUri"]]


@covering.first(
    4, "name", ["null", "on", "12", "1_000", "1.5", "0x1F", "12:30", "2026-01-31", "~", "2020-13-45"]
)
def test_a_file_s_name_is_text_in_the_template_s_part(answer: Answer, name: str):
    """YAML has other values that look like it."""
    assert 0 == commands.run(["wrap", "order.asl.json", "--output", name])
    found = yaml_parse(answer()["template"])["Resources"]["RunOnceStateMachine"]
    assert name == found["Properties"]["DefinitionUri"]


@pytest.mark.parametrize(
    "name", ["a.asl.json", "../x/a b.json", "it's.json", "-a:b#c.json", "日.json", "./1.json"]
)
def test_a_file_s_name_has_no_quotes_in_the_template_s_part_unless_it_needs_them(name: str):
    """As people write it."""
    lines = fragment.template(wrap_inline(json.dumps(ORDER.definition)), name).splitlines()
    assert f"      DefinitionUri: {name}" in lines


@pytest.mark.parametrize("options", [[], ["--around"]])
def test_the_template_s_part_gives_every_placeholder_a_value(here: Path, answer: Answer, options: list[str]):
    """What the command cannot know is FILL_IN; it has every parameter and permission that it uses."""
    assert 0 == commands.run(["wrap", "order.asl.json", *options])
    text = answer()["template"]
    found = yaml_parse(text)
    given = found["Resources"]["RunOnceStateMachine"]["Properties"]["DefinitionSubstitutions"]
    definition = (here / "order_once.asl.json").read_text()

    assert source.placeholders(definition) == given.keys()
    unknown = {"WorkStateMachineArn"} if options else {"Partition", "EffectsTable", "FailFunctionArn"}
    assert unknown & given.keys() == {name for name, value in given.items() if value == "FILL_IN"}
    used = set(re.findall(r"!Ref (\w+)|\{(\w+)\}", text))
    assert "DoWorkFunction" not in text
    assert {name for pair in used for name in pair if name in found["Parameters"]} == found[
        "Parameters"
    ].keys()
    (policy,) = found["Resources"]["RunOnceRole"]["Properties"]["Policies"]
    allowed = json.dumps(policy["PolicyDocument"]["Statement"])
    started = ("states:StartExecution", "states:DescribeExecution", "states:StopExecution", "events:PutRule")
    assert {bool(options)} == {action in allowed for action in started}
    assert "dynamodb:UpdateItem" in allowed


def test_people_see_a_numbered_list(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """And the template's part below, with its long lines whole, so that it can be copied."""
    monkeypatch.setattr(output, "for_people", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    (here / "clash.asl.json").write_text(json.dumps(CLASH.definition))
    assert 0 == commands.run(["wrap", "clash.asl.json"])
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("clash_once.asl.json", "  1. ", "  5. ", "RunOnceStateMachine:"))
    wrapped = wrap_inline(json.dumps(CLASH.definition))
    lines = fragment.template(wrapped, "clash_once.asl.json").splitlines()
    assert [] == [line for line in lines if line not in shown.splitlines()]
