"""Which processes live, and whose children they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

PROC = Path("/proc")


def parents() -> dict[int, int]:
    """Every process that lives, and its parent. What has ended, and nobody has waited for, does not live."""
    return {pid: parent for pid, state, parent in _listed() if not state.startswith("Z")}


def descendants(pid: int) -> set[int]:
    """The processes below this one."""
    of = parents()
    found, below = set[int](), {pid}
    while below := {child for child, parent in of.items() if parent in below} - found:
        found |= below
    return found


def _listed() -> list[tuple[int, str, int]]:
    """The id, state and parent of each process. A small Linux has no `ps`, and macOS no /proc."""
    if not (PROC / "self" / "stat").exists():
        text = subprocess.check_output(["ps", "-A", "-o", "pid=,stat=,ppid="], text=True)
        return [(int(pid), state, int(parent)) for pid, state, parent in map(str.split, text.splitlines())]
    found = []
    for folder in PROC.iterdir():
        if folder.name.isdecimal():
            try:
                text = (folder / "stat").read_text(errors="replace")
            except OSError:  # it has ended since
                continue
            state, parent, *_ = text.rpartition(")")[2].split()  # its name, in parentheses, may hold any
            found.append((int(folder.name), state, int(parent)))
    return found
