"""A task's clock stands while the task waits for a worker."""

import threading

import pytest

from steponce.local.runtime.clocks import HEADER, Clock, header, named, on_this_thread


def test_a_clock_stands_while_its_task_waits_for_a_worker():
    """What is used up is what ran."""
    clock, over = Clock(0.001), []
    with clock.stopped() as go_on:
        task = threading.Thread(target=lambda: over.append(clock.wait()), daemon=True)
        task.start()
        task.join(0.05)
        assert task.is_alive()
        clock.finish()
        task.join(60)
        go_on()
        go_on()
    assert [True] == over


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_clock_that_has_stood_goes_on_where_it_was(times):
    """However often it stood, its time comes to an end."""
    clock = Clock(0.05)
    for _ in range(times):
        with clock.stopped():
            pass
    assert not clock.wait()


def test_a_clock_is_named_only_while_its_task_runs():
    """A call that comes late stops nobody's clock."""
    clock = Clock(1)
    assert {} == header()
    with on_this_thread(clock):
        name = header()[HEADER]
        assert clock is named(name)
    assert ({}, None, None) == (header(), named(name), named(None))
