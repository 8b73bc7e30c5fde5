"""JMESPath: what an expression finds in a document, with Powertools' functions (`powertools_json(…)`)."""

from __future__ import annotations

import base64
import gzip
import io
import zlib
from typing import Any

import jmespath
from aws_lambda_powertools.utilities.jmespath_utils import PowertoolsFunctions
from jmespath.exceptions import JMESPathError
from jmespath.functions import signature

from steponce.errors import InvalidPayload, InvalidSetting, MissingKey, PayloadTooLarge, shown
from steponce.request.strict_json import LONGEST_TEXT, parsed


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
        PayloadTooLarge: it unpacks more than any payload may have.
        InvalidPayload: the JSON that it reads has a key twice, or is nested too deeply.
    """
    try:
        return jmespath.search(expression, document, _OPTIONS)
    except (PayloadTooLarge, InvalidPayload):
        raise
    except _FAILURES as error:
        kind = type(error).__name__  # its text quotes the document
        raise MissingKey(f"The JMESPath {expression!r} does not work on this {what} ({kind}).") from None


def expect_jmespath(expression: str, setting: str) -> None:
    """
    Refuse a setting that works on no document. Else each request would be refused as if it were wrong.

    Raises:
        InvalidSetting: it is no JMESPath.
    """
    try:
        jmespath.compile(expression)
    except JMESPathError as error:
        raise InvalidSetting(
            f"The setting {setting} is {shown(expression)}, which is no JMESPath: {type(error).__name__}."
        ) from None


class _Functions(PowertoolsFunctions):
    """Powertools' functions. They unpack no more than a payload has, and read JSON as the triggers do."""

    @signature({"types": ["string"]})
    def _func_powertools_json(self, value: str) -> Any:
        return parsed(value, "The text for powertools_json")

    @signature({"types": ["string"]})
    def _func_powertools_base64_gzip(self, value: str) -> str:
        with gzip.open(io.BytesIO(base64.b64decode(value))) as unpacked:
            text = unpacked.read(LONGEST_TEXT + 1)
        if len(text) > LONGEST_TEXT:
            raise PayloadTooLarge(f"What gzip unpacks has more than {LONGEST_TEXT:,} bytes. Send less.")
        return text.decode()


_FAILURES = (
    JMESPathError,
    ValueError,
    TypeError,
    OverflowError,
    EOFError,
    OSError,
    RecursionError,
    zlib.error,
)
"""What the functions raise on a document that they are not for."""

_OPTIONS = jmespath.Options(custom_functions=_Functions())
