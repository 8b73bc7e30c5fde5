"""Runs a test that has failed once more, as plugins do that repeat what is flaky."""

from _pytest.runner import runtestprotocol


def pytest_runtest_protocol(item):
    """The run that counts is the one that follows."""
    if item.name.endswith("_again"):
        runtestprotocol(item, log=False, nextitem=item.parent)
