"""Adds what `steponce init` adds to these files: the installation and the workflow."""

import os
import sys
from pathlib import Path

# The location is as it was given, and may be relative to where `sam init` was called.
PLACES = [
    Path(place, r"{{ cookiecutter._repo_dir }}")
    for place in (os.environ.get("PWD", "."), r"{{ cookiecutter._output_dir }}")
]
FILES = next(place for place in PLACES if place.is_dir())
sys.path[:0] = [
    str(FILES / "../src"),
    str(FILES / "../../../.."),
]  # of a checkout, or of an installed package

from steponce.scaffold import application  # noqa: E402 - found only now

application.complete(
    Path.cwd(),
    application.Choices(
        name="{{ cookiecutter.project_slug }}",
        callback="{{ cookiecutter.callback }}" == "yes",
        http="{{ cookiecutter.http }}" == "yes",
    ),
)
