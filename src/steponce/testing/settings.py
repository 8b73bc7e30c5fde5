"""Which template the tests run on, and with which parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TEMPLATE = "steponce_template"
PARAMETERS = "steponce_parameters"
TEMPLATE_OPTION = "--steponce-template"
PARAMETER_OPTION = "--steponce-parameter"

MISSING = (
    "No template says which stack to start. Run pytest with "
    f"{TEMPLATE_OPTION} template.yaml, or write {TEMPLATE} = template.yaml into its configuration."
)


class InvalidSetting(ValueError):
    """An option or a line of the configuration is invalid."""


def template(config: pytest.Config) -> Path | None:
    """The template: the option's, from where pytest was called; or the configuration's, from its file."""
    given = config.getoption(TEMPLATE_OPTION)
    if given:
        return config.invocation_params.dir / str(given)
    configured = config.getini(TEMPLATE)
    folder = config.inipath.parent if config.inipath else config.rootpath
    return folder / str(configured) if configured else None


def parameters(config: pytest.Config) -> dict[str, str]:
    """
    The parameters of the template: the configuration's, and over them the options'.

    Raises:
        InvalidSetting: one is not NAME=VALUE.
    """
    found = {}
    for text in [*config.getini(PARAMETERS), *config.getoption(PARAMETER_OPTION)]:
        name, separator, value = text.partition("=")
        if not (name.strip() and separator):
            raise InvalidSetting(f"A parameter is given as NAME=VALUE, and not as {text!r}.")
        found[name.strip()] = value.strip()
    return found
