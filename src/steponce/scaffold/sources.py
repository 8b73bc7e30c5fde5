"""Finds the files that a stack is made of: the template, the state machine, the functions and the events."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from steponce.errors import Refused

PACKAGE = Path(__file__).parents[1]
"""The folder of the package itself."""

_IN_A_WHEEL = Path(__file__).with_name("files")
_IN_A_CHECKOUT = PACKAGE.parents[1]


class SampleChanged(Refused):
    """
    This checkout has work of its own in the sample's files, of which applications are made.

    Args:
        file: The file that has changed.
        lacks: What it does not have any more.
    """

    def __init__(self, file: str, lacks: str) -> None:
        super().__init__(
            f"{file} of this checkout has been changed: it lacks {lacks}. Applications are made of it as it "
            "was. Run this command from an installed package, or from a checkout without work of its own."
        )


def root() -> Path:
    """The folder of `template.yaml` and of everything that it names, apart from the package in its layer."""
    return _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else _IN_A_CHECKOUT


def sample() -> Path:
    """The template of the sample application, which this package comes with."""
    return root() / "template.yaml"


def template() -> Path:
    """The template in the current folder; where there is none, the sample's."""
    here = Path("template.yaml")
    return here if here.exists() else sample()


def version() -> str:
    """The package's version, also in a checkout that is not installed."""
    try:
        return metadata.version("steponce")
    except metadata.PackageNotFoundError:
        project = (root() / "pyproject.toml").read_text(encoding="utf-8")
        (found,) = re.findall(r'^version = "(.*)"$', project, re.MULTILINE)
        return str(found)
