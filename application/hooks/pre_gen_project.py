"""Refuses a name that the stack cannot have, before `sam init` writes anything."""

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

try:
    application.check_name("{{ cookiecutter.project_slug }}")
except application.NotWritten as error:
    sys.exit(f"steponce: {error}")
