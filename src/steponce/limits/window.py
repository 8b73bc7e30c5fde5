"""Windows of time, cut in UTC from an event's own time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

_NAMED = {"minute": 60, "hour": 3_600, "day": 86_400}
_NAMES = {seconds: name for name, seconds in _NAMED.items()}
_LONGEST_SECONDS = 366 * 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Window:
    """
    A length of time. Its windows follow each other from 1970-01-01T00:00:00Z on, so that a day begins at
    midnight UTC, an hour on the hour, and a week of 604,800 seconds on Thursday.
    """

    seconds: int

    @classmethod
    def of(cls, given: str | int) -> Self:
        """
        Read a window as people write it.

        Args:
            given: `minute`, `hour`, `day`, or whole seconds from 1 to 31,622,400 (366 days). 60 is `minute`.

        Raises:
            ValueError: it is none of these.
        """
        seconds = _NAMED.get(given) if isinstance(given, str) else given
        if not isinstance(seconds, int) or isinstance(seconds, bool) or not 1 <= seconds <= _LONGEST_SECONDS:
            raise ValueError(
                f"The window {given!r} is none. Give minute, hour, day, or seconds from 1 to "
                f"{_LONGEST_SECONDS:,}."
            )
        return cls(seconds)

    @classmethod
    def named(cls, name: str) -> Self:
        """
        The window of a name; the reverse of `name`.

        Raises:
            ValueError: no window has this name.
        """
        digits = name.removesuffix("s")
        return cls.of(int(digits) if digits != name and digits.isascii() and digits.isdecimal() else name)

    @property
    def name(self) -> str:
        """`minute`, `hour`, `day`, or `90s`."""
        return _NAMES.get(self.seconds, f"{self.seconds}s")

    def start(self, at: datetime) -> datetime:
        """The beginning, in UTC, of the window that a time is in."""
        return at.astimezone(UTC) - (at - _EPOCH) % timedelta(seconds=self.seconds)

    def end(self, at: datetime) -> datetime:
        """The first moment after that window."""
        return self.start(at) + timedelta(seconds=self.seconds)
