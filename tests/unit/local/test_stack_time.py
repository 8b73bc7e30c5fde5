"""The class that stands in the place of datetime's own, where the stack's time can be moved."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from steponce.local import LocalStack, LocalStackError, stack_time
from steponce.local.stack_time import StackDatetime, pickled
from tests.unit.local.conftest import TEMPLATE

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


class Moment(StackDatetime):
    """A class of somebody's own."""


@pytest.mark.parametrize(
    "made",
    [
        StackDatetime(2027, 1, 1, tzinfo=UTC),
        StackDatetime.fromisoformat("2027-01-01T00:00:00Z"),
        StackDatetime.fromtimestamp(NEW_YEAR.timestamp(), UTC),
        StackDatetime.strptime("2027-01-01 +0000", "%Y-%m-%d %z"),
        StackDatetime.combine(NEW_YEAR.date(), NEW_YEAR.timetz()),
    ],
)
def test_what_it_makes_are_plain_datetimes(made: datetime):
    """Nobody meets an object of another class."""
    assert (NEW_YEAR, datetime) == (made, type(made))


def test_every_datetime_is_one_of_its_own():
    """Code that asks for the class gets the answer that it expects."""
    assert isinstance(NEW_YEAR, StackDatetime)
    assert issubclass(datetime, StackDatetime)
    assert not isinstance("2027", StackDatetime)


def test_a_table_by_type_knows_every_datetime():
    """As yaml has one, which looks up the type of each value."""
    assert "datetime" == {StackDatetime: "datetime"}[type(NEW_YEAR)]
    assert 3 == len({StackDatetime, datetime, Moment, str})


def test_a_class_of_somebody_s_own_stays_apart():
    """Its objects are of it, and no others are."""
    made = Moment(2027, 1, 1, tzinfo=UTC)

    assert (Moment, Moment) == (type(made), type(Moment.now(UTC)))
    assert isinstance(made, StackDatetime)
    assert issubclass(Moment, StackDatetime)
    assert not isinstance(NEW_YEAR, Moment)
    assert not issubclass(datetime, Moment)


@pytest.mark.parametrize(
    "now", [lambda: StackDatetime.now(UTC), lambda: StackDatetime.utcnow().replace(tzinfo=UTC)]
)
def test_it_tells_the_time_of_this_machine_while_nobody_moves_it(now: Callable[[], datetime]):
    """In this process nothing is installed."""
    before = datetime.now(UTC)
    assert before <= now() <= datetime.now(UTC)
    assert StackDatetime.today().tzinfo is None
    assert 0.0 == stack_time.ahead_seconds()


@pytest.mark.parametrize("moment", [NEW_YEAR, datetime(2027, 1, 1), NEW_YEAR.replace(microsecond=5)])
def test_a_datetime_survives_pickle(moment: datetime):
    """Also one without a zone."""
    restore, parts = pickled(moment)

    assert moment == restore(*parts)


LOGS = """
import logging, sys, time
from pathlib import Path
from steponce.local import stack_time
stack_time.install(Path(sys.argv[1]))
logging.Formatter.converter = time.gmtime
stack_time.move(86_400)
logging.basicConfig(format="%(asctime)s", datefmt="%Y-%m-%d", stream=sys.stdout)
logging.warning("")
print(time.strftime("%Y-%m-%d", time.gmtime()))
"""


def test_a_class_may_keep_a_function_of_the_stack_s_time(tmp_path: Path):
    """As Lambda's runtime sets `logging.Formatter.converter`. A plain function would become a method."""
    ran = subprocess.run(
        [sys.executable, "-c", LOGS, str(tmp_path / "time")], capture_output=True, text=True, check=True
    )
    logged, now = ran.stdout.splitlines()
    assert ("", now) == (ran.stderr, logged)


def test_a_time_that_nothing_shares_cannot_be_moved():
    """As in a stack without controls."""
    with pytest.raises(RuntimeError, match="cannot be moved"):
        stack_time.move(1)


def test_controls_are_for_stacks_that_were_made_with_them():
    """And faults for the embedded engine; the messages say what to do."""
    stack = LocalStack.from_template(TEMPLATE, name="small")

    with pytest.raises(LocalStackError, match="Make it with controls=True, and start it"):
        _ = stack.controls
    with pytest.raises(LocalStackError, match="need the embedded states, and STEPONCE_STATES_"):
        stack.expect_embedded("states")
