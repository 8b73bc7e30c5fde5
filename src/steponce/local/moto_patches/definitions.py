"""moto creates state machines that AWS refuses, and the mistake shows in an execution, or never."""

from __future__ import annotations

import functools
from typing import Any

from moto.core.exceptions import AWSError
from moto.stepfunctions.responses import StepFunctionResponse

from steponce.lint.definitions import complaints


def install() -> None:
    """Put this module's patches in place."""
    StepFunctionResponse.create_state_machine = _checked(StepFunctionResponse.create_state_machine)
    StepFunctionResponse.update_state_machine = _checked(StepFunctionResponse.update_state_machine)


def _checked(action: Any) -> Any:
    """Refuse what AWS refuses; an update may leave the definition as it is."""

    @functools.wraps(action)
    def checked(response: StepFunctionResponse) -> Any:
        definition = response._get_param("definition")
        if definition is not None and (found := complaints(definition)):
            raise AWSError(f"Invalid State Machine Definition: '{' '.join(found)}'", "InvalidDefinition")
        return action(response)

    return checked
