"""JMESPath: what an expression finds in a document, with Powertools' functions (`powertools_json(…)`)."""

from __future__ import annotations

import zlib
from typing import Any

import jmespath
from aws_lambda_powertools.utilities.jmespath_utils import PowertoolsFunctions
from jmespath.exceptions import JMESPathError

from steponce.errors import MissingKey


def find(expression: str, document: Any, what: str = "payload") -> Any:
    """
    Search a document.

    Args:
        expression: JMESPath; beside its own functions powertools_json, powertools_base64 and
            powertools_base64_gzip.
        document: A JSON value.
        what: What to call the document in an error message.

    Returns:
        What the expression finds; None where it finds nothing.

    Raises:
        MissingKey: the expression does not work on this document.
    """
    try:
        return jmespath.search(expression, document, jmespath.Options(custom_functions=PowertoolsFunctions()))
    except (JMESPathError, ValueError, TypeError, EOFError, OSError, RecursionError, zlib.error) as error:
        kind = type(error).__name__  # its text quotes the document
        raise MissingKey(f"The JMESPath {expression!r} does not work on this {what} ({kind}).") from None
