"""How `make` sets an environment up: whole or not at all, by uv with pip's settings, else by pip."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from tests.rules.documents import ROOT

_spec = importlib.util.spec_from_file_location("install", ROOT / ".ci" / "install.py")
assert _spec
assert _spec.loader
install = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(install)

SETTINGS = """\
:env:.index-url='https://mirror.example/simple'
global.cert='/etc/mirror.pem'
global.extra-index-url='https://one.example/simple\\nhttps://two.example/simple'
global.find-links='/wheels /more'
global.index-url='https://old.example/simple'
global.timeout='60'
install.trusted-host='mirror.example'
"""


class Runs(list[list[str]]):
    """The programs that would have run; the first word that is named in `failing` makes one fail."""

    def __init__(self) -> None:
        super().__init__()
        self.failing: set[str] = set()
        self.environments: list[dict[str, str]] = []

    def __call__(self, command: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
        words = [Path(command[0]).name, *command[1:]]
        if more.get("check"):
            self.append(words)
            self.environments.append(more.get("env") or {})
            if self.failing & set(words):
                raise subprocess.CalledProcessError(1, command)
        told = {"list": SETTINGS, "--version": "uv 0.0.0 (old)"}.get(words[-1], "")
        return subprocess.CompletedProcess(command, 0, stdout=told)

    def of(self, word: str) -> list[list[str]]:
        return [run for run in self if word in run]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()
    monkeypatch.setattr(install.subprocess, "run", runs)
    monkeypatch.setattr(install, "own_pip", lambda: (24, 0))
    return runs


@pytest.fixture
def set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the program for an environment in tmp_path; the exit code."""
    lock = tmp_path / "some.lock"
    lock.write_text("six==1.17.0\n")

    def once() -> Any:
        monkeypatch.setattr(
            sys, "argv", ["install.py", str(tmp_path / "env" / "run"), str(lock), "--what", "it"]
        )
        try:
            return install.main()
        except SystemExit as end:
            return end.code

    return once


def test_uv_gets_the_settings_of_pip():
    """The environment's win over the files'; several are separated as uv wants them."""
    assert {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INSECURE_HOST": "mirror.example",
        "SSL_CERT_FILE": "/etc/mirror.pem",
    } == install.for_uv(SETTINGS)


def test_every_package_comes_by_its_hash_and_by_uv(runs: Runs, set_up: Any):
    """Also uv itself, which pip fetches; uv is told of the index that pip would ask."""
    assert set_up() is None

    (for_it,) = runs.of("--only-binary=:all:")
    assert "--require-hashes" in for_it
    (by_uv,) = runs.of("uv")
    assert "--require-hashes" in by_uv
    told = dict(zip(map(tuple, runs), runs.environments, strict=True))[tuple(by_uv)]
    assert "https://mirror.example/simple" == told["UV_DEFAULT_INDEX"]


def test_where_uv_fails_pip_installs(runs: Runs, set_up: Any):
    """The same packages, by the same hashes."""
    runs.failing = {"uv"}

    assert set_up() is None

    *_, by_pip = runs
    (by_uv,) = runs.of("uv")
    assert "pip" == by_pip[2]
    assert by_uv[-4:] == by_pip[-4:]


def test_what_is_there_is_not_installed_again(runs: Runs, set_up: Any, tmp_path: Path):
    """Until the lock file changes."""
    set_up()
    before = len(runs)

    set_up()
    assert before == len(runs)

    (tmp_path / "some.lock").write_text("six==1.18.0\n")
    set_up()
    assert before < len(runs)


def test_an_interrupted_set_up_begins_anew(runs: Runs, set_up: Any, tmp_path: Path):
    """Without the stamp of a whole one, and without what is left of half a package."""
    left = tmp_path / "env" / "half-a-package"
    runs.failing = {"install"}
    assert "could not install it" in set_up()
    left.touch()
    assert not (tmp_path / "env" / "run").exists()

    runs.failing = set()
    set_up()

    assert not left.exists()
    assert (tmp_path / "env" / "run").exists()


@pytest.mark.usefixtures("runs")
def test_an_environment_that_nobody_interrupted_is_kept(set_up: Any, tmp_path: Path):
    """What somebody installed beside is still there after an update."""
    set_up()
    (tmp_path / "env" / "beside").touch()
    (tmp_path / "some.lock").write_text("six==1.18.0\n")

    set_up()

    assert (tmp_path / "env" / "beside").exists()


def test_two_set_ups_never_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The second waits for the first, and for what the first has started."""
    said: Queue[str] = Queue()
    inside = threading.Event()
    monkeypatch.setattr(install, "print", lambda text, **_: said.put(text), raising=False)

    def second() -> None:
        with install.alone_in(tmp_path):
            inside.set()

    with install.alone_in(tmp_path) as held:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[held])
    waiting = threading.Thread(target=second)
    try:
        waiting.start()
        assert "Waiting" in said.get(timeout=60)
        assert not inside.is_set()
    finally:
        child.communicate()
    assert inside.wait(60)
    waiting.join(60)
