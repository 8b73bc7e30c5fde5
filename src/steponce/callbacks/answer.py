"""The answer to an awaiting step: success with an output, failure with error and cause, or a heartbeat."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from steponce.errors import InvalidAnswer, InvalidPayload, OutputTooLarge, PayloadTooLarge
from steponce.executions import CANCELLED
from steponce.request.canonical import canonical_json, sha256
from steponce.workflow import CAUSE_LIMIT, DUPLICATE_REFUSED, MISMATCH, RATE_LIMITED, WORKFLOW_LIMIT

Outcome = Literal["success", "failure", "heartbeat"]
Verdict = Literal["accepted", "duplicate", "conflict", "late", "unknown"]

OUTPUT_LIMIT = WORKFLOW_LIMIT
RECORD_LIMIT = 327_680
"""Bytes of an output in a record of 400 KB. Canonical text may be longer than what was sent, as for 1e15."""
ERROR_LIMIT = 256
RESERVED = (
    *("States.", "Lambda.", "Sandbox.", "Runtime."),
    *("Steponce.", "Unavailable", "RetryLater"),
    *("AlreadyInProgress", "LockContended", "ReplayTooLarge", "LimitChanged", DUPLICATE_REFUSED),
)
"""Beginnings of the error names that AWS or the workflow raises itself. An answer may not use them."""

RESERVED_NAMES = (
    *(CANCELLED, MISMATCH, RATE_LIMITED),
    *("ResultNotKept", "ResultTooLarge", "Function.ResponseSizeTooLarge"),
)
"""Error names of the workflow that others may begin with. The last three say that the work is done."""

_FIELDS = {"success": {"output"}, "failure": {"error", "cause"}, "heartbeat": set[str]()}


@dataclass(frozen=True, eq=False)
class Answer:
    """
    One answer. Two answers are equal if their canonical JSON is equal.

    Args:
        outcome: success, failure or heartbeat. A heartbeat only extends the step's heartbeat time.
        output: Any JSON value, for success; at most 262,144 bytes.
        error: Text or None, for failure; at most 256 characters.
        cause: Text or None, for failure; at most 32,768 characters.

    Source: SendTaskSuccess and SendTaskFailure API references.
    """

    outcome: Outcome
    output: Any = None
    error: str | None = None
    cause: str | None = None

    @classmethod
    def parse(cls, body: Any) -> Self:
        """
        Read `{"outcome": "success", "output": …}`, `{"outcome": "failure", "error": …, "cause": …}` or
        `{"outcome": "heartbeat"}`.

        Raises:
            InvalidAnswer: a field is missing, unknown or of the wrong type; the message names it.
            OutputTooLarge: a field is larger than Step Functions allows.
        """
        outcome = body.get("outcome") if isinstance(body, Mapping) else None
        if not isinstance(outcome, str) or outcome not in _FIELDS:
            raise InvalidAnswer("An answer is a JSON object whose outcome is success, failure or heartbeat.")
        unknown = set(body) - _FIELDS[outcome] - {"outcome"}
        if unknown:
            raise InvalidAnswer(f"An answer of {outcome} has no field {min(unknown)[:40]!r}.")
        if outcome == "success" and "output" not in body:
            raise InvalidAnswer("An answer of success needs an output; null is one.")
        try:
            answer = cls(
                body["outcome"],
                body.get("output"),
                _text(body, "error", ERROR_LIMIT),
                _text(body, "cause", CAUSE_LIMIT),
            )
            canonical_json(answer.output, "output", limit=OUTPUT_LIMIT)
        except PayloadTooLarge as error:
            raise OutputTooLarge(f"The {error} Send an address.") from None
        except InvalidPayload as error:
            raise InvalidAnswer(str(error)) from None
        return answer

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text that `to_json` returned."""
        return cls(**json.loads(text))

    @classmethod
    def of_output(cls, text: str) -> Self:
        """
        The success that a workflow got, by its output's JSON text.

        Only a sender with the raw task token can send output that has no canonical form, or is too large for
        a record. A stand-in with its size and hash takes its place, so no parsed answer equals it.
        """
        try:
            output = json.loads(text)
            canonical_json(output, "output", limit=RECORD_LIMIT)
        except (ValueError, RecursionError):  # Python reads neither every depth nor thousands of digits
            whole = text.encode(errors="backslashreplace").decode()
            output = {"notOnRecord": {"bytes": len(whole.encode()), "sha256": sha256(whole)}}
        return cls("success", output)

    def to_json(self) -> str:
        """
        The canonical text of this answer. Equal answers have the same text.

        A failure that was sent with the raw task token may have no canonical form. It gets a text that equals
        no parsed answer's.
        """
        known = vars(self)  # a `cached_property` waits for other threads in 3.11, after a fork for ever
        if "_json" not in known:
            known["_json"] = self._canonical()
        text: str = known["_json"]
        return text

    def _canonical(self) -> str:
        try:
            if self.outcome == "success":  # the output may have all 300 levels: the object around adds none
                return f'{{"outcome":"success","output":{self.output_json()}}}'
            return canonical_json({"outcome": self.outcome, "error": self.error, "cause": self.cause})
        except InvalidPayload:
            given = {"outcome": self.outcome, "output": self.output, "error": self.error, "cause": self.cause}
            present = {name: given[name] for name in ("outcome", *_FIELDS[self.outcome])}
            text = json.dumps(present, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            return text.encode(errors="backslashreplace").decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def output_json(self) -> str:
        """The output as JSON text, for SendTaskSuccess."""
        return canonical_json(self.output, "output")


def _text(body: Mapping[str, Any], name: str, limit: int) -> str | None:
    """Read one text of a failure. Empty text becomes None: a Catch gets empty text for a missing one."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidAnswer(f"The {name} is text, or absent.")
    if value is not None and len(value) > limit:
        raise OutputTooLarge(f"The {name} has {len(value):,} characters; {limit:,} are allowed.")
    if name == "error" and value is not None and (value.startswith(RESERVED) or value in RESERVED_NAMES):
        raise InvalidAnswer(
            f"An answer's error name may not begin with {', '.join(RESERVED)}, and is none of "
            f"{', '.join(RESERVED_NAMES)}. Use a name of your own."
        )
    canonical_json(value, name)
    return value or None
