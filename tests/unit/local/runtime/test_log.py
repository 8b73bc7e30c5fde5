"""What workers print does not mix in their function's log."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from steponce.local.runtime.log import WholeLines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log that is empty."""
    path = tmp_path / "function.log"
    path.touch()
    return path


@pytest.fixture
def workers(log: Path) -> Iterator[list[WholeLines]]:
    """Two workers that write into the log."""
    targets = [os.open(log, os.O_WRONLY | os.O_APPEND) for _ in range(2)]
    yield [WholeLines(target) for target in targets]
    for target in targets:
        os.close(target)


def test_lines_of_two_workers_do_not_mix(log: Path, workers: list[WholeLines]):
    """`print` writes a line and its end one after the other, and the runtime flushes in between."""
    one, other = (io.TextIOWrapper(worker, "utf-8", write_through=True) for worker in workers)
    for text in ("ä", "\n"):
        for stream in (one, other):
            stream.write(text)
            stream.flush()
    print("a", "b", file=one)
    assert "ä\nä\na b\n" == log.read_text()

    other.write("first\nsecond\nthi")
    one.write("between\n")
    other.write("rd\n")
    assert ["first", "second", "between", "third"] == log.read_text().splitlines()[3:]


def test_a_last_line_without_an_end_is_written_when_the_worker_goes(log: Path, workers: list[WholeLines]):
    """And not sooner."""
    workers[0].write(b"begun")
    workers[0].flush()
    assert "" == log.read_text()
    workers[0].finish()
    workers[0].finish()
    assert "begun" == log.read_text()
