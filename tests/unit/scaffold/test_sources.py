"""Where the template is that a stack is made of."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from steponce.cli import commands
from steponce.local import LocalStack, stack
from steponce.scaffold import sources
from tests.machines import machine
from tests.rules.documents import ROOT


def test_in_a_checkout_the_files_are_at_the_top():
    """Where people look for them."""
    assert (ROOT, ROOT / "template.yaml") == (sources.root(), sources.sample())


def test_the_template_here_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In a folder without one it is the sample's."""
    monkeypatch.chdir(tmp_path)
    assert sources.sample() == sources.template()
    (tmp_path / "template.yaml").touch()
    assert Path("template.yaml") == sources.template()


@pytest.mark.parametrize("given", [[], ["other.yaml"]])
def test_a_stack_is_made_of_the_sample_unless_told_otherwise(
    given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A template that is named is the one that is read."""
    read: list[Any] = []

    def read_plan(path: Path | str, **_: Any) -> None:
        read.append(path)
        raise KeyError(path)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stack, "read_plan", read_plan)

    with pytest.raises(KeyError):
        LocalStack.from_template(*given)
    assert (given or [sources.sample()]) == read


@pytest.mark.parametrize("command", [["init", "shop"], ["wrap", "machine.asl.json"]])
def test_a_checkout_with_other_work_makes_no_applications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
):
    """Its workflow names another function."""
    changed = tmp_path / "checkout"
    for name in ("application", "events", "functions", "statemachines"):
        shutil.copytree(ROOT / name, changed / name)
    for name in ("template.yaml", "requests.yaml", "monitoring.yaml", "samconfig.toml"):
        shutil.copy(ROOT / name, changed)
    workflow = changed / "statemachines" / "run_once.asl.json"
    workflow.write_text(workflow.read_text().replace("ChargeCardFunction", "PlaceOrderFunction"))
    monkeypatch.setattr(sources, "_IN_A_CHECKOUT", changed)
    monkeypatch.chdir(tmp_path)
    Path("machine.asl.json").write_text(json.dumps(machine({"A": {"Type": "Pass", "End": True}})))

    assert 3 == commands.run(command)
    told = json.loads(capsys.readouterr().out)["error"]
    assert ("SampleChanged", True) == (told["type"], "from an installed package" in told["message"])
    assert not Path("shop").exists()
