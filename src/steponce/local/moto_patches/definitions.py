"""Which definitions moto creates that AWS refuses, and which it refuses if it reads two at once."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from moto.core.exceptions import AWSError
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor
from moto.stepfunctions.responses import StepFunctionResponse

from steponce.lint.asl import states
from steponce.lint.definitions import STANDARD, complaints


def install() -> None:
    """Put this module's patches in place."""
    StepFunctionResponse.create_state_machine = _checked(StepFunctionResponse.create_state_machine)
    StepFunctionResponse.update_state_machine = _checked(StepFunctionResponse.update_state_machine)
    Preprocessor.__init__ = _begin_reading


def _checked(action: Any) -> Any:
    """Refuse what AWS refuses; an update may leave the definition as it is."""

    @functools.wraps(action)
    def checked(response: StepFunctionResponse) -> Any:
        definition, kind = response._get_param("definition"), response._get_param("type", STANDARD)
        if definition is not None and (found := complaints(definition, kind) or list(_ignored(definition))):
            raise AWSError(f"Invalid State Machine Definition: '{' '.join(found)}'", "InvalidDefinition")
        return action(response)

    return checked


def _ignored(definition: str) -> Iterator[str]:
    """What moto takes and does not do: its Map fails at the first item that fails."""
    for name, state in states(json.loads(definition)):
        for field, value in state.items():
            if field.startswith("ToleratedFailure") and value != 0:
                yield f"{name}: no {field}."


def _begin_reading(reader: Preprocessor) -> None:
    """In moto all definitions that are read at once share the query languages of their states."""
    reader._query_language_per_scope = []
