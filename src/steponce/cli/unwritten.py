"""Ends a command whose answer cannot be written: the reader of the pipe has gone, or the disk is full."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import click

BROKEN_PIPE, NOT_WRITTEN = 141, 74

_OF_WRITES = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})


class Unwritten(Exception):
    """
    An answer could not be written.

    It is no OSError, because click would end a broken pipe with the exit code of a failed request.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause)
        self.is_broken_pipe = isinstance(cause, BrokenPipeError)
        self.why = cause.strerror


@contextmanager
def writing() -> Iterator[None]:
    """
    Run a block that writes.

    Raises:
        Unwritten: a stream could not be written. Errors of named files pass.
    """
    try:
        yield
    except OSError as error:
        of_stream = error.filename is None and error.errno in _OF_WRITES
        if not of_stream and not isinstance(error, BrokenPipeError):
            raise
        raise Unwritten(error) from None


class Program(click.Group):
    """A group of commands that raises Unwritten."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """As click's. `--help` and `--version` write here."""
        with writing():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """As click's."""
        with writing():
            return super().invoke(ctx)


def end_unwritten(error: Unwritten) -> int:
    """Report that the answer could not be written, unless its reader has gone. Returns the exit code."""
    _drop(sys.stdout)
    if error.is_broken_pipe:
        return BROKEN_PIPE
    complain(
        f"steponce: NotWritten: The answer could not be written: {error.why}. What the command did is done.\n"
    )
    return NOT_WRITTEN


@contextmanager
def writing_an_error() -> Iterator[None]:
    """Run a block that writes an error to standard output. Its exit code stays right if that cannot be."""
    try:
        yield
    except OSError:
        _drop(sys.stdout)


def complain(text: str) -> None:
    """Write to standard error. The exit code stays right if that cannot be written either."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Send what is left of a stream nowhere. Python would fail to write it once more at its exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
