"""What the tests of templates have in common."""

from __future__ import annotations

from functools import cache

import pytest

from steponce.scaffold import installation

FILES = cache(installation.files)


def without_package() -> dict[str, bytes]:
    """The files of the installation that a template names; its functions cannot run."""
    every = FILES(callback=False)
    return {name: text for name, text in every.items() if not name.startswith("src/steponce/")}


@pytest.fixture(autouse=True)
def quick_installation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody runs the functions of an installation but the tests that start a stack."""
    if request.node.get_closest_marker("full") is None:
        monkeypatch.setattr(installation, "files", lambda **_: without_package())
