"""An error as Step Functions reports it: of a state, of an execution, or in a lock record."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from steponce.aws import times
from steponce.workflow import DUPLICATE_REFUSED, MISMATCH, RATE_LIMITED

_USED_UP = re.compile(
    r"The rate limit of \d+ is used up until (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\. "
    r"Nothing happened; start the request again then\."
)
"""
The cause of RateLimited as the workflow's own state writes it. Work may raise an error of this name, too, for
a limit elsewhere. Then something may have happened.
"""


@dataclass(frozen=True)
class Failure:
    """An error as Step Functions reports it. Both parts are optional."""

    error: str | None
    cause: str | None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` or the workflow wrote. JSON that is no object becomes the cause."""
        found = json.loads(text)
        return cls.from_catch(found) if isinstance(found, dict) else cls(None, text)

    @classmethod
    def from_catch(cls, caught: Mapping[str, Any]) -> Self:
        """Read the object that a Catch puts into the state's input: `{"Error": …, "Cause": …}`."""
        return cls(caught.get("Error"), caught.get("Cause"))

    @property
    def resets_at(self) -> datetime | None:
        """If the machine's rate limit has refused a request: when the window ends, in UTC. Else None."""
        found = _USED_UP.fullmatch(self.cause or "") if self.error == RATE_LIMITED else None
        try:
            return None if found is None else times.from_text(found[1])
        except ValueError:
            return None  # the workflow writes no such time, so the words are somebody else's

    @property
    def refuses_a_duplicate(self) -> bool:
        """
        Whether the workflow's own state has refused a duplicate.

        A guard in the work raises an error of this name, too. Lambda gives such an error JSON as its cause.
        """
        return self.error == DUPLICATE_REFUSED and not (self.cause or "").startswith("{")

    @property
    def turns_away(self) -> bool:
        """Whether an execution ended with it because another request's record had the key."""
        return self.error == MISMATCH or self.refuses_a_duplicate

    def to_json(self) -> str:
        """The text that a record stores."""
        return json.dumps({"Error": self.error, "Cause": self.cause}, ensure_ascii=False)
