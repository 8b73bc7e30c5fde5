"""The bench measures and compares; it never fails because a machine is slow."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests import bench


def test_a_slow_machine_measures_less_often(monkeypatch: pytest.MonkeyPatch):
    """Three times at the least; a fast one as often as is wanted."""
    now = [0.0]
    monkeypatch.setattr(bench.time, "monotonic", lambda: now[0])
    assert bench.ROUNDS == sum(1 for _ in bench.rounds())

    slow = 0
    for _ in bench.rounds():
        slow += 1
        now[0] += bench.SECONDS
    assert 3 == slow


def test_two_runs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """By ratio, and by what has another count."""
    files = []
    for name, milliseconds, writes in (("before", 100.0, 2), ("after", 150.0, 3)):
        fresh = bench.Measure("a fresh request", milliseconds, "ms", 4, writes, 0, 1, 1)
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps({"measures": [asdict(fresh)]}))

    bench.compare(*files)

    told = capsys.readouterr().out
    assert "1.50" in told
    assert "writes" in told
    assert "2 -> 3" in told


def test_a_slow_round_of_the_monitor_is_a_number_and_no_failure(monkeypatch: pytest.MonkeyPatch):
    """However long it took."""

    class Stack:
        def __enter__(self) -> "Stack":
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(bench.LocalStack, "from_template", lambda *_, **__: Stack())
    monkeypatch.setattr(bench.crowd, "open_locks", lambda *_: None)
    tally = type("Tally", (), {"missing_tasks": 500})
    monkeypatch.setattr(bench.crowd, "one_round", lambda *_: (tally, 3600.0, 1.0))

    assert [3600.0, 1.0] == [measure.value for measure in bench.monitor_round(1_000)]
