"""
Runs one command for as long as the standard input stays open.

A server that AWS wrote does not know of its owner. Under a supervisor it ends with it, even when the owner
is killed. And the supervisor ends with the server, so that its owner sees at once that it did not start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

_STOP_SECONDS = 8.0


def main() -> None:
    """Run `sys.argv[1:]`; exit with its code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the owner
    # The standard output of this process is the owner's.
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=sys.stderr)  # noqa: S603
    threading.Thread(target=_end_with_input, args=(child,), daemon=True).start()
    code = child.wait()
    # Not sys.exit: the thread may sit in a read that nothing ends.
    os._exit(code if code >= 0 else 1)


def _end_with_input(child: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):
        pass
    child.terminate()
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()


if __name__ == "__main__":
    main()
