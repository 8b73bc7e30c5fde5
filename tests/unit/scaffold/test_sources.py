"""Where the template is that a stack is made of."""

from pathlib import Path
from typing import Any

import pytest

from steponce.local import LocalStack, stack
from steponce.scaffold import sources
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
