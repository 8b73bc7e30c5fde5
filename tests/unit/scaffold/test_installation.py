"""What belongs to steponce in an application, and an upgrade of it."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from steponce.scaffold import application, installation, sources, workflow
from steponce.scaffold.application import Choices, NotWritten
from steponce.scaffold.upgrade import InstallationEdited, upgrade
from tests import covering, layer
from tests.rules.documents import FUNCTIONS

PLACE = installation.FOLDER
NEW_VERSION = installation.files


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """An application that was just written."""
    application.init(tmp_path / "orders", Choices("orders"))
    return tmp_path / "orders"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_the_installation_has_every_function_but_the_samples_work():
    """And of the package what goes into the layer, with the recipe of the layer."""
    files = installation.files(callback=False)

    functions = {f"functions/{folder.name}/app.py" for folder in FUNCTIONS} - {"functions/charge_card/app.py"}
    assert functions == {path for path in files if path.startswith("functions/")}
    parts = {path.split("/")[2] for path in files if path.startswith("src/steponce/")}
    assert {"client.py", "aws", "request"} <= parts
    assert parts.isdisjoint(layer.listed("LAPTOP"))
    assert {"src/Makefile", "src/requirements.txt", "monitoring.yaml", "requests.yaml"} <= files.keys()


def test_the_parts_that_are_left_out_are_those_that_the_layer_leaves_out():
    """Two lists, of which one is in a Makefile."""
    assert layer.listed("LAPTOP") == {*installation.ON_A_LAPTOP}


def test_a_sample_that_changes_its_shape_is_noticed():
    """The template and the workflow are made by cutting; a cut that misses must not pass in silence."""
    with pytest.raises(sources.SampleChanged, match="its section of the workflow"):
        installation.template("Resources:\n  Table:\n")
    with pytest.raises(sources.SampleChanged, match="ChargeCardFunctionArn"):
        workflow._replaced("{}", "${ChargeCardFunctionArn}", "${DoWorkFunctionArn}")


def test_an_upgrade_to_the_same_version_changes_nothing(app: Path):
    """It may be run at any time, also after a test has compiled a function."""
    before = contents(app)
    cache = app / PLACE / "functions" / "http_api" / "__pycache__"
    cache.mkdir()
    (cache / "app.pyc").touch()

    changes = upgrade(app)

    assert ([], [], [], "") == (changes.added, changes.removed, changes.changed, changes.workflow)
    assert before == contents(app)


def test_a_checkout_with_other_ends_of_lines_is_not_edited(app: Path):
    """As git makes it with core.autocrlf; the upgrade writes the files as they are shipped."""
    before = contents(app / PLACE)
    for path in (app / PLACE).rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    changes = upgrade(app)

    assert ([], [], [], "") == (changes.added, changes.removed, changes.changed, changes.workflow)
    assert before == contents(app / PLACE)


def test_an_upgrade_replaces_the_installation_and_nothing_else(app: Path, monkeypatch: pytest.MonkeyPatch):
    """It says what is new, gone and changed, and how the workflow has; the application's own files stay."""
    (app / workflow.FILE).write_text("mine")
    before = contents(app)
    monkeypatch.setattr(installation, "files", another_version)

    changes = upgrade(app)

    assert (["new.txt"], ["monitoring.yaml"]) == (changes.added, changes.removed)
    assert [workflow.FILE, "template.yaml"] == changes.changed
    assert '-  "StartAt": "IsRequestPrepared",\n+  "StartAt": "Elsewhere",\n' in changes.workflow
    after = contents(app)
    assert another_version(callback=False) == contents(app / PLACE)
    assert {key: text for key, text in before.items() if not key.startswith(PLACE)} == {
        key: text for key, text in after.items() if not key.startswith(PLACE)
    }
    assert "other" == json.loads((app / PLACE / installation.MANIFEST).read_text())["version"]


def another_version(*, callback: bool) -> dict[str, bytes]:
    """The files of a version that adds, removes and changes some."""
    files = NEW_VERSION(callback=callback)
    del files["monitoring.yaml"]
    files["new.txt"] = b"new"
    files["template.yaml"] += b"# changed\n"
    files[workflow.FILE] = files[workflow.FILE].replace(
        b'"StartAt": "IsRequestPrepared"', b'"StartAt": "Elsewhere"'
    )
    manifest = json.loads(files[installation.MANIFEST]) | {"version": "other"}
    return files | {installation.MANIFEST: json.dumps(manifest).encode()}


@covering.first(
    2,
    ("path", "edit"),
    [
        ("template.yaml", lambda file: file.write_text("mine")),
        ("functions/http_api/app.py", lambda file: file.unlink()),
        ("functions/mine/app.py", lambda file: (file.parent.mkdir(), file.touch())),
        ("manifest.json", lambda file: file.write_text("mine")),
        ("manifest.json", lambda file: file.write_text('{"version": "0"}')),
        ("manifest.json", lambda file: file.write_text('{"version": "0", "callback": 1, "files": {}}')),
    ],
    ids=["changed", "deleted", "added", "no JSON", "no manifest", "wrong manifest"],
)
def test_an_edited_installation_is_not_replaced(path: str, edit: Callable[[Path], object], app: Path):
    """The error names the file, and everything stays."""
    edit(app / PLACE / path)
    before = contents(app)

    with pytest.raises(InstallationEdited, match=path):
        upgrade(app)
    assert before == contents(app)


def test_an_upgrade_that_fails_leaves_the_old_installation(app: Path, monkeypatch: pytest.MonkeyPatch):
    """Also if it fails between the two."""
    before = contents(app)
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise OSError("no space left")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)

    with pytest.raises(NotWritten, match="no space left"):
        upgrade(app)
    assert before == contents(app)


def test_an_upgrade_that_was_killed_can_be_repeated(app: Path, monkeypatch: pytest.MonkeyPatch):
    """Between the two renames there is no installation, but the old one is beside its place."""
    place = app / PLACE
    place.rename(app / f".{PLACE}.old")
    monkeypatch.setattr(installation, "files", another_version)

    assert ["new.txt"] == upgrade(app).added
    assert another_version(callback=False) == contents(place)
    assert not (app / f".{PLACE}.old").exists()


def test_two_upgrades_do_not_run_at_once(app: Path, monkeypatch: pytest.MonkeyPatch):
    """Each would delete what the other has written, or is about to put back."""
    write, before = installation.write, sorted(app.iterdir())

    def meet(folder: Path, contents: dict[str, bytes]) -> None:
        with pytest.raises(NotWritten, match=r"Another upgrade of .* runs\. Wait for its end"):
            upgrade(app)
        write(folder, contents)

    monkeypatch.setattr(installation, "files", another_version)
    monkeypatch.setattr(installation, "write", meet)

    assert ["new.txt"] == upgrade(app).added
    assert another_version(callback=False) == contents(app / PLACE)
    assert before == sorted(app.iterdir())


def test_the_lock_of_an_upgrade_that_was_killed_is_in_nobodys_way(app: Path):
    """The system has ended it; only the file is there."""
    before = sorted(app.iterdir())
    (app / f".{PLACE}.lock").touch()

    upgrade(app)
    assert before == sorted(app.iterdir())


def test_an_upgrade_goes_on_where_there_are_no_locks(app: Path, monkeypatch: pytest.MonkeyPatch):
    """As on some file systems of a network."""
    before = sorted(app.iterdir())

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr("fcntl.flock", refuse)

    upgrade(app)
    assert before == sorted(app.iterdir())


def test_an_upgrade_replaces_the_folder_behind_a_link(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Other applications may have links to it as well. The next upgrade goes on from there."""
    shared = tmp_path / "shared"
    (app / PLACE).rename(shared)
    (app / PLACE).symlink_to(shared)
    before = sorted(app.iterdir())

    upgrade(app)
    monkeypatch.setattr(installation, "files", another_version)
    upgrade(app)

    assert another_version(callback=False) == contents(shared)
    assert (before, shared) == (sorted(app.iterdir()), (app / PLACE).readlink())


def test_what_is_no_application_is_not_upgraded(tmp_path: Path):
    """The error says what is missing."""
    with pytest.raises(NotWritten, match=r"There is no .*manifest\.json"):
        upgrade(tmp_path)
    assert [] == list(tmp_path.iterdir())
