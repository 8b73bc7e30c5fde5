"""No regular expression takes more than linear time, whatever it meets; planted ones do, and are caught."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import covering

from .documents import FUNCTIONS, MODULES, template
from .patterns import complaints, uses_in

FILES = [
    path
    for path in (*MODULES, *(path for folder in FUNCTIONS for path in sorted(folder.glob("*.py"))))
    if path.name != "parameters.py"  # which matches its owner's AllowedPattern
    and re.search(r"\bre\b", path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_pattern_of_a_module_takes_linear_time(path: Path) -> None:
    """Each with the method that it is used with; a text is one that could not be read."""
    found = list(uses_in(path, path.read_text(encoding="utf-8")))

    assert [] == [use for use in found if isinstance(use, str)]
    assert [] == [complaint for use in found for complaint in complaints(use)]
    assert found or path.name not in ("names.py", "request_headers.py", "request_answers.py")


def test_the_template_s_patterns_take_linear_time() -> None:
    """AllowedPattern is matched against the whole of a parameter."""
    patterns = {
        name: parameter["AllowedPattern"]
        for name, parameter in template()["Parameters"].items()
        if "AllowedPattern" in parameter
    }
    assert patterns
    text = "import re\n" + "\n".join(f"re.fullmatch({pattern!r}, x)" for pattern in patterns.values())
    assert [] == [one for use in uses_in(Path("template.yaml"), text) for one in complaints(use)]


@covering.first(
    3,
    "line",
    [
        r"P = re.compile(r'<[^>]*>'); P.findall(x)",
        r"re.search(r'\s+$', x)",
        r"re.sub(r'-+x', '', x)",
        r"re.fullmatch(r'[ab]*b*c', x)",
        r"W = r'\s*'; P = re.compile(f'{W}{W}x'); P.match(x)",
        r"re.search(r'A.*B', x, flags=re.DOTALL | re.IGNORECASE)",
    ],
)
def test_a_quadratic_pattern_is_caught(line: str) -> None:
    """One of each way of writing it."""
    uses = list(uses_in(Path("planted.py"), "import re\n" + line.replace("; ", "\n")))
    assert [False] == [isinstance(use, str) for use in uses]
    assert complaints(uses[0])


def test_a_pattern_that_cannot_be_read_is_told() -> None:
    """It is made of what is not in the module."""
    (told,) = uses_in(Path("planted.py"), "import re\nre.search(make(), x)")
    assert "planted.py:2: name 'make' is not defined" == told
