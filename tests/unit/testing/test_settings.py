"""Where the template and its parameters come from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steponce.testing import settings
from steponce.testing.clock import Clock


class Config(SimpleNamespace):
    """pytest's, of a project in /home, called from /home/tests."""

    rootpath = Path("/home")
    inipath = Path("/home/pytest.ini")
    invocation_params = SimpleNamespace(dir=Path("/home/tests"))

    def getoption(self, name: str) -> Any:
        return self.options.get(name, [] if name == settings.PARAMETER_OPTION else None)

    def getini(self, name: str) -> Any:
        return self.lines.get(name, [] if name == settings.PARAMETERS else "")


@pytest.mark.parametrize(
    ("options", "lines", "expected"),
    [
        ({}, {}, None),
        ({}, {"steponce_template": "a.yaml"}, Path("/home/a.yaml")),
        (
            {"--steponce-template": "b.yaml"},
            {"steponce_template": "a.yaml"},
            Path("/home/tests/b.yaml"),
        ),
        ({"--steponce-template": "/c.yaml"}, {}, Path("/c.yaml")),
    ],
)
def test_a_path_is_relative_to_where_it_was_written(
    options: dict[str, Any], lines: dict[str, Any], expected: Path | None
):
    """On the command line or in the file; the command line goes first."""
    assert expected == settings.template(Config(options=options, lines=lines))


def test_an_option_goes_before_the_configuration():
    """Parameter by parameter; a value may hold what separates others."""
    config = Config(
        options={"--steponce-parameter": ["B=3", "C=a=b"]}, lines={"steponce_parameters": ["A = 1", "B=2"]}
    )

    assert {"A": "1", "B": "3", "C": "a=b"} == settings.parameters(config)


@pytest.mark.parametrize("text", ["A", "=1", ""])
def test_a_parameter_has_a_name_and_a_value(text: str):
    """The message shows what was given."""
    config = Config(options={"--steponce-parameter": [text]}, lines={})

    with pytest.raises(settings.InvalidSetting, match=f"NAME=VALUE, and not as {text!r}"):
        settings.parameters(config)


@pytest.mark.parametrize("move", [{}, {"hours": -1}, {"hours": 1, "minutes": -60}])
def test_time_only_goes_forward(move: dict[str, float]):
    """Nothing is sent to the stack."""
    stack: Any = SimpleNamespace(expect_embedded=lambda *_: None, controls=None)

    with pytest.raises(ValueError, match="Time only goes forward"):
        Clock(stack, print).advance(**move)


@pytest.mark.parametrize("days", [4_000_000, 1e12, float("inf")])
def test_time_stays_in_the_calendar(days: float):
    """Otherwise the engine answered nothing more, to no test."""
    controls = SimpleNamespace(ahead_seconds=lambda: 86_400.0)
    stack: Any = SimpleNamespace(expect_embedded=lambda *_: None, controls=controls)

    with pytest.raises(ValueError, match="the year 8999"):
        Clock(stack, print).advance(days=days)
