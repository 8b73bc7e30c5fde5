"""Errors of this package outside of the process that raised them."""

import copy
import pickle
from datetime import timedelta

import pytest

from steponce.errors import (
    AlreadyInProgress,
    CompletionRefused,
    NotRecorded,
    RecordUnreadable,
    RequestFailed,
    WaitTimeout,
    shown,
)
from steponce.next_step import NextStep

STEPS = [NextStep("complete lock", "k")]


@pytest.mark.parametrize(
    "error",
    [
        NotRecorded("no answer", "k", {"chargeId": "ch_1"}, next_steps=STEPS),
        CompletionRefused("late", "k", {"chargeId": "ch_1"}),
        RequestFailed("failed", "Boom", None),
        AlreadyInProgress("busy", "process/host/1", None),
        RecordUnreadable("k", "attempt", "is no number"),
        WaitTimeout("still running", next_steps=STEPS),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_out_of_another_process_as_it_was(error: Exception):
    """With the result that only it holds, and with what to do next."""
    for there in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(error), str(error), error.args) == (type(there), str(there), there.args)
        assert vars(error) == vars(there)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("o-1", "'o-1'"),
        ("x" * 201, f"'{'x' * 200}'…"),
        (7, "7"),
        (None, "None"),
        (timedelta(hours=1), "datetime.timedelta(seconds=3600)"),
        ({"card": "4111"}, "<dict>"),
        (b"4111", "<bytes>"),
        (["4111"], "<list>"),
        (10**400, "a number that is too large"),
    ],
    ids=str,
)
def test_an_error_quotes_no_payload(value: object, text: str):
    """Who gives the order in place of its id would find it in the log."""
    assert text == shown(value)
