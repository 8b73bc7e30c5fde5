"""
Puts values into the files of a new application.

The files are a cookiecutter template, so that `sam init` can use them too. This module knows only what they
use of its language: `{{ cookiecutter.name }}`, and lines between `{%- if cookiecutter.name == "yes" %}` and
`{%- endif %}`, which are not nested.
"""

from __future__ import annotations

from collections.abc import Mapping

_IF = "{%- if cookiecutter."
_END = "{%- endif %}"


def render(text: str, values: Mapping[str, str]) -> str:
    """A file's text with these values. A choice is the text `yes` or `no`."""
    kept, wanted = [], True
    for line in text.splitlines(keepends=True):
        if line.startswith(_IF):
            wanted = values[line.removeprefix(_IF).partition(" ")[0]] == "yes"
        elif line.startswith(_END):
            wanted = True
        elif wanted:
            kept.append(line)
    text = "".join(kept)
    for name, value in values.items():
        text = text.replace(f"{{{{ cookiecutter.{name} }}}}", value)
    return text
