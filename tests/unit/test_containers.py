"""Where containers find this machine."""

from pathlib import Path

import pytest

from tests.real.containers import Engine

FRESH = """#!/bin/sh
# Answers as an engine does that has just made its bridge: it has a name, but no gateway.
case "$*" in *bridge.name*) echo lo ;; *) echo ;; esac
"""


def test_containers_find_the_host_as_soon_as_the_engine_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The interface has its address before the engine tells of a gateway."""
    (tmp_path / "docker").write_text(FRESH)
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    assert "127.0.0.1" == Engine({}).host_address
