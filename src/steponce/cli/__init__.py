"""The command line: arguments in, one answer out."""

from __future__ import annotations

import io
import sys


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
    _write_any_text()
    sys.exit(run(sys.argv[1:]))


def _write_any_text() -> None:
    """Escape what the terminal's encoding does not have. A lock token may be in any script."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
