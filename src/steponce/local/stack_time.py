"""
The time of the stack: this machine's own, until a test moves it.

A stack that can be moved keeps how far it is ahead in eight bytes that its processes share: the engine, the
fork server and every worker. In them `datetime.now`, and what `time` tells of the present, is the stack's
time, so that code of others, moto and functions, tells it as well. What waits in the engine looks at the
clock again and again.

Time goes on, and only forward. The process of the test itself is left alone.
"""

from __future__ import annotations

import copyreg
import datetime
import mmap
import struct
import sys
import time
from pathlib import Path
from typing import Any

_STRETCH_SECONDS = 0.1
_FORM = struct.Struct("d")

_real_datetime = datetime.datetime
_real_time = time.time
_real_time_ns = time.time_ns
_real_asctime = time.asctime
_real_ctime = time.ctime
_real_gmtime = time.gmtime
_real_localtime = time.localtime
_real_strftime = time.strftime
_shared: mmap.mmap | None = None

_Moment = time.struct_time | tuple[int, int, int, int, int, int, int, int, int]


def install(file: Path) -> None:
    """Use the stack's time in this process from now on. The file is created if it is missing."""
    global _shared
    if not file.exists():
        file.write_bytes(_FORM.pack(0.0))
    with file.open("r+b") as opened:
        _shared = mmap.mmap(opened.fileno(), _FORM.size)
    # Static, because a class that keeps one of these, as logging.Formatter does, must not make it a method.
    replaced = {
        _real_datetime: StackDatetime,
        _real_time: staticmethod(_time),
        _real_time_ns: staticmethod(_time_ns),
        _real_asctime: staticmethod(_asctime),
        _real_ctime: staticmethod(_ctime),
        _real_gmtime: staticmethod(_gmtime),
        _real_localtime: staticmethod(_localtime),
        _real_strftime: staticmethod(_strftime),
    }
    for module in list(sys.modules.values()):
        # Many modules have imported them by name before.
        if module is not None and module.__name__ != __name__:
            _replace_in(vars(module), replaced)
    copyreg.pickle(_real_datetime, pickled)


def ahead_seconds() -> float:
    """How far the stack is ahead of this machine."""
    return 0.0 if _shared is None else float(_FORM.unpack(_shared[: _FORM.size])[0])


def move(seconds: float) -> None:
    """Let this much time pass, for every process of the stack."""
    if _shared is None:
        raise RuntimeError("The time of this stack cannot be moved.")
    _shared[: _FORM.size] = _FORM.pack(ahead_seconds() + seconds)


def monotonic() -> float:
    """As `time.monotonic`, in the stack's time."""
    return time.monotonic() + ahead_seconds()


def stretch(seconds: float | None) -> float | None:
    """How long to wait before reading the clock again, given the time that is left."""
    if _shared is None:
        return seconds
    return _STRETCH_SECONDS if seconds is None else min(seconds, _STRETCH_SECONDS)


def sleep(seconds: float) -> None:
    """As `time.sleep`, in the stack's time."""
    end = monotonic() + seconds
    while (left := end - monotonic()) > 0:
        time.sleep(stretch(left) or 0.0)


def _replace_in(names: dict[str, Any], replaced: dict[Any, Any]) -> None:
    for name, value in list(names.items()):
        for real, moved in replaced.items():
            if value is real:
                names[name] = moved


def _time() -> float:
    return _real_time() + ahead_seconds()


def _time_ns() -> int:
    return _real_time_ns() + int(ahead_seconds() * 1_000_000_000)


def _gmtime(seconds: float | None = None) -> time.struct_time:
    return _real_gmtime(_time() if seconds is None else seconds)


def _localtime(seconds: float | None = None) -> time.struct_time:
    return _real_localtime(_time() if seconds is None else seconds)


def _ctime(seconds: float | None = None) -> str:
    return _real_ctime(_time() if seconds is None else seconds)


def _asctime(moment: _Moment | None = None) -> str:
    return _real_asctime(_localtime() if moment is None else moment)


def _strftime(form: str, moment: _Moment | None = None) -> str:
    return _real_strftime(form, _localtime() if moment is None else moment)


class _AnyDatetime(type):
    """Every plain datetime counts as an instance, and its class as this one. Subclasses are themselves."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is StackDatetime:
            return isinstance(instance, _real_datetime)
        return type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is StackDatetime:
            return issubclass(subclass, _real_datetime)
        return type.__subclasscheck__(cls, subclass)

    def __eq__(cls, other: object) -> bool:
        """Whoever looks a value's type up in a table, as yaml does, finds this class."""
        return cls is other or (cls is StackDatetime and other is _real_datetime)

    def __hash__(cls) -> int:
        return hash(_real_datetime) if cls is StackDatetime else type.__hash__(cls)


class StackDatetime(_real_datetime, metaclass=_AnyDatetime):
    """Replaces `datetime.datetime`. Its instances are plain datetimes."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StackDatetime:
            return _real_datetime(*args, **kwargs)
        return super().__new__(cls, *args, **kwargs)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        """The stack's time."""
        return cls.fromtimestamp(_time(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        """The stack's time, without a zone."""
        return cls.now(datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        """The stack's time, in the zone of this process."""
        return cls.now()


def pickled(moment: datetime.datetime) -> tuple[Any, ...]:
    """How pickle serialises a datetime. By default it would look for the class under its name."""
    return (_restored, tuple(moment.__reduce_ex__(2)[1]))


def _restored(*parts: Any) -> datetime.datetime:
    return _real_datetime(*parts)
