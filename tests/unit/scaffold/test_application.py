"""A new application: what is written, and what is not if something is wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest

from steponce.scaffold import application, installation, workflow
from steponce.scaffold.application import Choices, NotWritten
from steponce.scaffold.render import render
from tests import covering
from tests.rules.documents import ROOT

COOKIECUTTER = ROOT / "application" / "{{cookiecutter.project_slug}}"
FILES = sorted(path for path in COOKIECUTTER.rglob("*") if path.is_file() and path.suffix != ".pyc")


def paths(folder: Path) -> set[str]:
    """Every file, without those of the installation."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in found if path.parts[0] != installation.FOLDER}


@pytest.mark.parametrize("callback", ["yes", "no"])
@pytest.mark.parametrize("http", ["yes", "no"])
def test_a_file_is_rendered_as_cookiecutter_renders_it(callback: str, http: str):
    """So that `sam init` writes what `steponce init` writes."""
    values = {"project_slug": "orders", "callback": callback, "http": http}
    jinja = jinja2.Environment(
        autoescape=jinja2.select_autoescape(default_for_string=False),
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    for path in FILES:
        text = path.read_text()
        assert jinja.from_string(text).render(cookiecutter=values) == render(text, values), path.name


@pytest.mark.parametrize(
    ("choices", "more"),
    [
        (Choices("orders"), set()),
        (Choices("orders", callback=True), {"events/confirmed_order.json", "tests/test_confirmation.py"}),
        (Choices("orders", http=True), {"tests/test_http.py"}),
    ],
    ids=["plain", "callback", "http"],
)
def test_what_was_not_chosen_is_not_there(choices: Choices, more: set[str], tmp_path: Path):
    """Neither a file nor a word of it."""
    written = application.init(tmp_path / "new", choices)

    plain = paths(COOKIECUTTER) - {"events/confirmed_order.json", "tests/test_confirmation.py"}
    assert plain - {"tests/test_http.py"} | more | {workflow.FILE} == paths(tmp_path / "new") == {*written}
    text = "".join((tmp_path / "new" / path).read_text() for path in written)
    assert choices.callback == ("onfirmation" in text)
    assert choices.http == ("HTTP" in text)
    assert "cookiecutter" not in text


def test_the_name_is_the_stacks(tmp_path: Path):
    """In what deploys it, and in what tells of it."""
    application.init(tmp_path / "new", Choices("my-orders"))

    assert 'stack_name = "my-orders"' in (tmp_path / "new" / "samconfig.toml").read_text()
    assert "# my-orders\n" in (tmp_path / "new" / "README.md").read_text()


@pytest.mark.parametrize("present", [[], [".git"]])
def test_an_empty_folder_is_filled(present: list[str], tmp_path: Path):
    """One that git knows already is as good as empty."""
    for name in present:
        (tmp_path / name).mkdir()

    application.init(tmp_path, Choices("orders"))

    assert {"template.yaml", installation.FOLDER, *present} <= {path.name for path in tmp_path.iterdir()}
    assert [] == list(tmp_path.parent.glob(f".{tmp_path.name}*"))


@pytest.mark.parametrize("name", ["", "1st", "my_orders", "-a", "a b", "größe", "a" * 61, "a\n"])
def test_a_name_that_no_stack_can_have_is_refused(name: str, tmp_path: Path):
    """Before anything is written."""
    with pytest.raises(NotWritten, match="cannot name a stack"):
        application.init(tmp_path / "new", Choices(name))
    assert [] == list(tmp_path.iterdir())


def test_a_link_is_filled_from_beside_the_folder_that_it_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """There the draft can be renamed, and the lock is of the same folder."""
    drafts, complete = [], application.complete

    def note(draft: Path, choices: Choices) -> None:
        drafts.append(draft)
        complete(draft, choices)

    for name in ("here", "there/app"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "here" / "app").symlink_to(tmp_path / "there" / "app")
    monkeypatch.setattr(application, "complete", note)
    application.init(tmp_path / "here" / "app", Choices("orders"))
    assert [tmp_path / "there" / ".app.steponce-draft"] == drafts
    assert (tmp_path / "there" / "app" / "template.yaml").is_file()


def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path):
    """Python's own way to follow it raises before Python 3.13."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(NotWritten):
        application.init(tmp_path / "loop", Choices("orders"))


def test_a_file_of_ones_own_that_is_named_as_the_lock_stays(tmp_path: Path):
    """The lock itself is empty, and goes."""
    (tmp_path / ".orders.lock").write_text("mine")
    application.init(tmp_path / "orders", Choices("orders"))
    application.init(tmp_path / "others", Choices("others"))
    assert "mine" == (tmp_path / ".orders.lock").read_text()
    assert not (tmp_path / ".others.lock").exists()


def test_the_root_of_the_file_system_is_refused(tmp_path: Path):
    """Also behind a link."""
    link = tmp_path / "link"
    link.symlink_to("/")
    for root in (Path("/"), link):
        with pytest.raises(NotWritten, match="/ is the root of the file system"):
            application.init(root, Choices("orders"))


@pytest.mark.parametrize(
    ("place", "complaint"),
    [("full", "is not empty"), ("file", "is a file"), ("absent/new", "There is no folder .*absent")],
)
def test_a_folder_that_cannot_be_used_stays_as_it_is(place: str, complaint: str, tmp_path: Path):
    """The error says what is in the way."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(NotWritten, match=complaint):
        application.init(tmp_path / place, Choices("orders"))
    assert before == sorted(tmp_path.rglob("*"))


def test_nothing_half_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The disk is full after some of the files."""

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(application, "complete", full)

    with pytest.raises(NotWritten, match="no space left"):
        application.init(tmp_path / "new", Choices("orders"))
    assert [] == list(tmp_path.iterdir())


@covering.first(1, "after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize(
    ("error", "raised"), [(KeyboardInterrupt(), KeyboardInterrupt), (OSError("full"), NotWritten)]
)
def test_an_init_that_ends_while_it_fills_a_folder_takes_back_what_is_there(
    error: BaseException,
    raised: type[BaseException],
    after: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    """It left a part of the application, and the next init did not know it for its own."""
    folder, rename, moved = tmp_path / "orders", Path.rename, list[Path]()
    (folder / ".git").mkdir(parents=True)

    def end_at_the_third(path: Path, to: Path) -> None:
        moved.append(path)
        if after or len(moved) != 3:
            rename(path, to)
        if len(moved) == 3:
            raise error

    with monkeypatch.context() as ended:
        ended.setattr(Path, "rename", end_at_the_third)
        with pytest.raises(raised):
            application.init(folder, Choices("orders"))
    assert [folder, folder / ".git"] == sorted(tmp_path.rglob("*"))

    application.init(folder, Choices("orders"))
    assert {"template.yaml", "Makefile", ".git"} <= {path.name for path in folder.iterdir()}


def test_a_folder_beside_it_stays(tmp_path: Path):
    """Whatever it is called, as long as it is not called after steponce."""
    for name in (".orders.new", "orders.new", ".orders.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").touch()
    application.init(tmp_path / "orders", Choices("orders"))
    assert [".orders.new", ".orders.old", "orders", "orders.new"] == sorted(
        p.name for p in tmp_path.iterdir()
    )
    assert 3 == len(list(tmp_path.glob("*orders.*/mine")))


def test_a_draft_of_an_init_that_was_killed_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing of the draft is in the new application, and nothing stays beside it."""
    with monkeypatch.context() as killed:  # before it could move or remove its draft
        killed.setattr(application, "_move", lambda draft, _folder: (draft / "old.txt").touch())
        killed.setattr(application.shutil, "rmtree", lambda *_, **__: None)
        application.init(tmp_path / "orders", Choices("orders"))
    assert [tmp_path / ".orders.steponce-draft"] == list(tmp_path.iterdir())

    application.init(tmp_path / "orders", Choices("orders"))

    assert [tmp_path / "orders"] == list(tmp_path.iterdir())
    assert "old.txt" not in paths(tmp_path / "orders")


@covering.first(1, "name", ["new", "empty", "link"])
def test_two_inits_of_a_folder_do_not_run_at_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The second deleted what the first was writing, and both said that their application was there."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    second, complete = tmp_path / name.replace("link", "empty"), application.complete

    def meet(draft: Path, choices: Choices) -> None:
        monkeypatch.setattr(application, "complete", complete)
        with pytest.raises(NotWritten, match=r"Another init of .* runs\. Wait for its end, or name another"):
            application.init(second, Choices("second", http=True))
        complete(draft, choices)

    monkeypatch.setattr(application, "complete", meet)
    written = application.init(tmp_path / name, Choices("orders"))

    application.init(tmp_path / "whole", Choices("orders"))
    assert paths(tmp_path / "whole") == paths(second) == {*written}
    assert installation.files(callback=False).keys() == {
        path.relative_to(second / installation.FOLDER).as_posix()
        for path in (second / installation.FOLDER).rglob("*")
        if path.is_file()
    }
    assert [] == list(tmp_path.glob(".*"))
    with pytest.raises(NotWritten, match="is not empty"):
        application.init(second, Choices("second"))


def test_an_init_that_was_killed_while_it_filled_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The error says what to delete, and then the same command works."""
    folder = tmp_path / "orders"
    (folder / ".git").mkdir(parents=True)
    with monkeypatch.context() as killed:  # after it has moved one of the files
        killed.setattr(application, "_move", lambda draft, to: (draft / "Makefile").rename(to / "Makefile"))
        killed.setattr(application.shutil, "rmtree", lambda *_, **__: None)
        application.init(folder, Choices("orders"))

    with pytest.raises(NotWritten, match=r"was interrupted.* Delete Makefile, and run"):
        application.init(folder, Choices("orders"))
    (folder / "Makefile").unlink()
    application.init(folder, Choices("orders"))

    assert {"template.yaml", "Makefile", ".git"} <= {path.name for path in folder.iterdir()}
    assert [folder] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("left", "mine"),
    [("nothing", "Makefile"), ("all", "README.md"), ("all but the Makefile", "thesis.txt")],
)
def test_nobody_is_told_to_delete_what_init_has_not_written(
    left: str, mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A draft that was left says nothing of a file that somebody has put into the folder meanwhile."""
    folder, draft = tmp_path / "orders", tmp_path / ".orders.steponce-draft"
    with monkeypatch.context() as killed:
        killed.setattr(application, "_move", lambda _draft, to: to.mkdir())
        killed.setattr(application.shutil, "rmtree", lambda *_, **__: None)
        application.init(folder, Choices("orders"))
    if left == "nothing":
        shutil.rmtree(draft)
        draft.mkdir()
    elif left == "all but the Makefile":
        (draft / "Makefile").rename(folder / "Makefile")
    (folder / mine).touch()

    with pytest.raises(NotWritten, match="is not empty"):
        application.init(folder, Choices("orders"))
    assert (folder / mine).exists()


@pytest.mark.full  # mypy takes seconds
def test_a_strict_type_checker_has_nothing_to_say_of_a_new_application(tmp_path: Path):
    """Its user may have one in the pipeline."""
    application.init(tmp_path / "shop", Choices("shop", callback=True, http=True))
    files = ["functions/do_work/app.py", "tests"]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", *files]
    path = os.environ | {"MYPYPATH": str(ROOT / "src")}
    told = subprocess.run(
        command, cwd=tmp_path / "shop", env=path, capture_output=True, text=True, check=False
    )
    assert 0 == told.returncode, told.stdout


def test_the_hooks_of_sam_init_need_nothing_but_python():
    """They run on SAM CLI's own Python, which has none of our requirements."""
    code = f"import sys; sys.path.append({str(ROOT / 'src')!r}); import steponce.scaffold.application"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
