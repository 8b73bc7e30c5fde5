"""The command line: arguments in, one answer out."""

from __future__ import annotations

import io
import os
import sys

_INTERRUPTED = 130
"""As in `answers`, which cannot be imported while the imports are interrupted."""


def main() -> None:
    """Run the command that the arguments name, and leave with its exit code."""
    try:
        from steponce.cli.commands import run
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit(
            f"steponce: the command line needs {error.name}. Install it with: pip install 'steponce[cli]'"
        )
    except KeyboardInterrupt:  # nothing was called yet
        sys.exit(_INTERRUPTED)
    _open_closed_streams()
    _write_any_text()
    sys.exit(run(sys.argv[1:]))


def _open_closed_streams() -> None:
    """Let a stream that the caller has closed, as by `<&-`, be an empty one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _write_any_text() -> None:
    """Escape what the terminal's encoding does not have. A lock token may be in any script."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
