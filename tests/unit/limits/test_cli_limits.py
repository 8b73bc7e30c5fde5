"""The commands for limits: what they list, what they change, and with which exit code they leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import CredentialRetrievalError, NoCredentialsError

from steponce.cli import commands, confirmation, target
from tests.fakes.errors import client_error
from tests.fakes.watched_dynamodb import Call, Fault
from tests.unit.limits.world import NOON, TABLE, World, conflict_of_one, dies_after
from tests.unit.shared_clients import shared

SIGNED = ("--yes", "--by", "eve", "--why", "a bug of ours")

Run = Callable[..., tuple[int, dict[str, Any]]]


class FakeStack(target.AwsStack):
    """A stack on AWS with the world's table."""

    def __init__(self, world: World, outputs: dict[str, str]) -> None:
        self.name = "shop"
        self.outputs = outputs
        self._world = world

    def boto3(self, service: str) -> Any:
        return self._world.client(service)


@pytest.fixture
def outputs(world: World, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of the stack that every command reaches."""
    found = {"LimitsTable": TABLE}
    stack = FakeStack(world, found)
    monkeypatch.setattr(target.Target, "reach", lambda _target: stack)
    monkeypatch.setenv("COLUMNS", "160")
    return found


@pytest.fixture
def run(outputs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in a pipe: exit code and the one object."""
    assert outputs

    def run_it(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = commands.run(["limits", *arguments])
        out = capsys.readouterr().out
        assert 1 == out.count("\n")
        return code, json.loads(out)

    return run_it


def error_of(answer: tuple[int, dict[str, Any]]) -> tuple[int, str]:
    code, told = answer
    return code, told["error"]["type"]


def test_show_lists_what_is_counted_for_a_user(world: World, run: Run) -> None:
    """With the limit that the last request had, and when the window ends."""
    limiter = world.limiter(limit=3)
    for one in "ab":
        limiter.admit("ann", one)
    code, told = run("show", "ann")
    assert (0, "ann", False, []) == (code, told["user"], told["more"], told["unreadable"])
    assert [
        {
            "limit": "requests/day",
            "windowStart": "2026-01-31T00:00:00.000Z",
            "resetsAt": "2026-02-01T00:00:00.000Z",
            "shard": None,
            "counted": 2,
            "of": 3,
            "interventions": [],
        }
    ] == told["limits"]


def test_show_says_that_there_is_more(world: World, run: Run) -> None:
    """Older windows are behind the newest."""
    limiter = world.limiter(window="hour")
    for hours in range(3):
        limiter.admit("ann", "a", NOON - timedelta(hours=hours))
    assert (2, True) == (len(run("show", "ann", "--limit", "2")[1]["limits"]), True)
    assert run("show", "ann", "--limit", "2")[1]["more"]
    assert not run("show", "ann", "--limit", "3")[1]["more"]
    assert [] == run("show", "nobody")[1]["limits"]


def test_show_names_what_it_cannot_read(world: World, run: Run) -> None:
    """With the attribute that something else has damaged."""
    world.limiter().admit("ann", "a")
    (item,) = world.items()
    shared("dynamodb").put_item(TableName=TABLE, Item=item | {"limit": {"S": "x"}})
    code, told = run("show", "ann")
    assert (0, [], ["limit"]) == (code, told["limits"], [one["attribute"] for one in told["unreadable"]])


def test_reset_begins_the_windows_that_run_anew(world: World, run: Run) -> None:
    """Yesterday's stay, and it is written down who did it and why."""
    day, hour = world.limiter(limit=1), world.limiter(limit=1, window="hour")
    day.admit("ann", "old", NOON - timedelta(days=1))
    for limiter in (day, hour):
        limiter.admit("ann", "a")
    code, told = run("reset", "ann", *SIGNED)
    assert (0, "reset", "eve", "a bug of ours", 2) == (
        code,
        *(told[name] for name in ("done", "by", "why")),
        len(told["before"]),
    )
    assert {("requests/hour", 0), ("requests/day", 0), ("requests/day", 1)} == {
        (one["limit"], one["counted"]) for one in run("show", "ann")[1]["limits"]
    }
    assert day.admit("ann", "b")
    told = run("show", "ann")[1]["limits"][0]["interventions"][0]
    assert ("eve", "a bug of ours", "reset from 1") == (told["by"], told["why"], told["what"])


def test_reset_takes_one_limit_or_another_time(world: World, run: Run) -> None:
    """A redelivery of yesterday may be what is stuck."""
    day, hour = world.limiter(limit=1), world.limiter(limit=1, window="hour")
    day.admit("ann", "old", NOON - timedelta(days=1))
    for limiter in (day, hour):
        limiter.admit("ann", "a")
    assert 1 == len(run("reset", "ann", "--name", "requests/hour", *SIGNED)[1]["before"])
    assert 1 == len(run("reset", "ann", "--at", "2026-01-30T08:00:00Z", *SIGNED)[1]["before"])
    assert {("requests/hour", 0), ("requests/day", 1), ("requests/day", 0)} == {
        (one["limit"], one["counted"]) for one in run("show", "ann")[1]["limits"]
    }


def test_a_name_that_is_blank_is_refused(world: World, run: Run) -> None:
    """It was said that nothing is counted for this user."""
    world.limiter(limit=1).admit("ann", "a")
    code, told = run("reset", "ann", "--name", "", *SIGNED)
    assert (2, True) == (code, "it is blank" in told["error"]["message"])


def damage(world: World, name: str) -> None:
    """Write a text as the number of a limit."""
    (item,) = (item for item in world.items() if item["limitKey"]["S"].startswith(f"{name}/"))
    shared("dynamodb").put_item(TableName=TABLE, Item=item | {"limit": {"S": "x"}})


def test_a_damaged_counter_stops_no_reset_of_another(world: World, run: Run) -> None:
    """If all are meant, nothing is reset. It is not to be deleted, as a lock record may be."""
    for name in ("mails", "sms"):
        world.limiter(limit=1, name=name).admit("ann", "a")
    damage(world, "sms")
    shared("dynamodb").put_item(
        TableName=TABLE,
        Item={"limitKey": {"S": "?"}, "member": {"S": "counter"}, "who": {"S": "ann"}}
        | {"windowStart": {"S": "2026-01-31T00:00:00.000Z"}},
    )
    code, told = run("reset", "ann", "--name", "mails/day", *SIGNED)
    assert (0, ["mails/day"]) == (code, [one["limit"] for one in told["before"]])
    code, told = run("reset", "ann", "--name", "sms/day", *SIGNED)
    assert (1, "RecordUnreadable") == error_of((code, told))
    assert "Do not delete the record" in told["error"]["message"]
    assert "execution" not in told["error"]["message"]


def test_a_record_that_is_no_counter_s_is_to_be_deleted(world: World, run: Run) -> None:
    """No attribute can mend a key, and nobody is counted in it."""
    world.limiter(limit=1, name="mails").admit("ann", "a")
    shared("dynamodb").put_item(
        TableName=TABLE,
        Item={"limitKey": {"S": "?"}, "member": {"S": "counter"}, "who": {"S": "ann"}}
        | {"windowStart": {"S": "2026-01-31T00:00:00.000Z"}},
    )
    code, told = run("reset", "ann", *SIGNED)
    assert (1, "RecordUnreadable") == error_of((code, told))
    assert told["error"]["message"].endswith("Delete the record: nobody is counted in it.")


def denied(_call: Call) -> Any:
    raise client_error("AccessDeniedException")


def logged_out(_call: Call) -> Any:
    raise NoCredentialsError


def expired(_call: Call) -> Any:
    raise RuntimeError("Credentials were refreshed, but the refreshed credentials are still expired.")


@pytest.mark.parametrize(
    ("fault", "doubt", "said"),
    [
        (dies_after, True, "DynamoDB did not answer"),
        (conflict_of_one, True, "DynamoDB said "),
        (denied, False, " was refused: "),
        (logged_out, False, "Unable to locate credentials."),
        (expired, True, "Log in to AWS again"),
    ],
    ids=["lost", "conflict", "denied", "logged out", "expired"],
)
def test_a_reset_that_ends_in_the_middle_says_what_is_reset(
    world: World, run: Run, fault: Fault, doubt: bool, said: str
) -> None:
    """The same command would reset it once more, and forgive what was counted meanwhile."""
    for name in ("mails", "sms"):
        world.limiter(limit=1, name=name).admit("ann", "a")
    world.faults = [None, fault]
    code, told = run("reset", "ann", *SIGNED)
    assert (1, "PartlyReset") == error_of((code, told))
    first, second = [one["limit"] for one in run("show", "ann")[1]["limits"]]
    message = told["error"]["message"]
    assert f"These limits are reset already: {first}." in message
    assert doubt == (f"{second} may be reset, too." in message)
    assert said in message
    assert "safe to try again" not in message
    assert ["steponce limits show ann"] == told["error"]["next"]


def test_a_reset_of_one_limit_whose_answer_was_lost_may_be_made(world: World, run: Run) -> None:
    """Here it is."""
    world.limiter(limit=1).admit("ann", "a")
    world.faults = [dies_after]
    code, told = run("reset", "ann", *SIGNED)
    assert (1, "PartlyReset") == error_of((code, told))
    assert told["error"]["message"].startswith("DynamoDB did not answer (")
    assert "). requests/day may be reset. List what is counted" in told["error"]["message"]
    assert 0 == run("show", "ann")[1]["limits"][0]["counted"]


def refused_after_a_lost_answer(call: Call) -> Any:
    call()
    error = client_error("ExpiredTokenException")
    error.response["ResponseMetadata"]["RetryAttempts"] = 1
    raise error


def test_a_reset_that_was_refused_after_a_lost_answer_may_be_made(world: World, run: Run) -> None:
    """boto3 has sent it twice, and the first time it took effect."""
    world.limiter(limit=1).admit("ann", "a")
    world.faults = [refused_after_a_lost_answer]
    code, told = run("reset", "ann", *SIGNED)
    assert (1, "PartlyReset") == error_of((code, told))
    assert "requests/day may be reset. List what is counted" in told["error"]["message"]
    assert 0 == run("show", "ann")[1]["limits"][0]["counted"]


def logged_out_meanwhile(_call: Call) -> Any:
    raise CredentialRetrievalError(provider="sso", error_msg="closed")


def test_a_reset_whose_credentials_ended_may_be_made(world: World, run: Run) -> None:
    """boto3 asks for them again before each try, also after one that got no answer."""
    world.limiter(limit=1).admit("ann", "a")
    world.faults = [logged_out_meanwhile]
    assert (1, "PartlyReset") == error_of(run("reset", "ann", *SIGNED))


def test_a_reset_that_was_never_sent_is_an_error_of_aws(world: World, run: Run) -> None:
    """There were no credentials, so nothing is reset."""
    world.limiter(limit=1).admit("ann", "a")
    world.faults = [logged_out]
    assert (4, "NoCredentialsError") == error_of(run("reset", "ann", *SIGNED))


def test_a_reset_that_was_refused_at_once_is_an_error_of_aws(world: World, run: Run) -> None:
    """Nothing is reset."""
    world.limiter(limit=1).admit("ann", "a")
    world.faults = [denied]
    assert (4, "AccessDeniedException") == error_of(run("reset", "ann", *SIGNED))


def test_reset_of_nothing_is_refused(world: World, run: Run) -> None:
    """A misspelt user or limit is not taken for done."""
    world.limiter().admit("ann", "a")
    for wrong in (["anna"], ["ann", "--name", "requests/hour"], ["ann", "--at", "2026-01-30T08:00:00Z"]):
        code, told = run("reset", *wrong, *SIGNED, "--stack", "my shop")
        assert (3, "Refused") == error_of((code, told))
        assert [f"steponce limits show {wrong[0]} --stack 'my shop'"] == told["error"]["next"]


@pytest.mark.parametrize("command", ["show", "reset"])
def test_a_user_that_is_no_text_is_refused(run: Run, command: str) -> None:
    """Its bytes are not UTF-8, so nobody is called so."""
    code, told = run(command, "ab\udcff", *(SIGNED if command == "reset" else []))
    assert (2, "UsageError") == error_of((code, told))
    assert "it is not UTF-8" in told["error"]["message"]


def test_a_limit_that_counts_while_somebody_thinks_is_left(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person said yes to another number."""
    limiter = world.limiter(limit=2)
    limiter.admit("ann", "a")

    def think(*_given: Any, **_options: Any) -> bool:
        limiter.admit("ann", "b")
        return True

    monkeypatch.setattr(confirmation, "on_a_terminal", lambda: True)
    monkeypatch.setattr(confirmation.click, "confirm", think)
    code, told = run("reset", "ann", "--why", "w")
    assert (3, "RecordChanged") == error_of((code, told))
    assert "if a request is counted, or if somebody else resets it" in told["error"]["message"]
    assert ["steponce limits show ann"] == told["error"]["next"]
    assert 2 == run("show", "ann")[1]["limits"][0]["counted"]


@pytest.mark.parametrize(
    "wrong",
    [
        ["show", " "],
        ["show"],
        ["reset", "ann"],
        ["reset", "ann", "--yes"],
        ["reset", "ann", "--at", "x", *SIGNED],
    ],
)
def test_wrong_usage_is_said(run: Run, wrong: list[str]) -> None:
    """Nothing is changed without a yes and a reason."""
    assert (2, "UsageError") == error_of(run(*wrong))


def test_a_stack_without_the_table_says_how_to_get_one(outputs: dict[str, str], run: Run) -> None:
    """It is made only where it is wanted."""
    outputs.clear()
    code, told = run("show", "ann")
    assert 4 == code
    assert "Limits=yes" in told["error"]["message"]


def test_people_see_a_table(
    world: World, outputs: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the shard, and who has reset it."""
    assert outputs
    world.limiter(limit=2, shards=2).admit("ann", "a")
    world.limiter(limit=1, window="hour").admit("ann", "a")
    commands.run(["limits", "reset", "ann", "--name", "requests/hour", *SIGNED])
    capsys.readouterr()
    monkeypatch.setattr("steponce.cli.output.for_people", lambda: True)
    commands.run(["limits", "show", "ann"])
    out = capsys.readouterr().out
    for text in (
        "requests/hour",
        "requests/day #",
        "/2",
        "0 of 1",
        "1 of 1",
        "2026-01-31T13:00:00",
        "by eve",
    ):
        assert text in out
    commands.run(["limits", "show", "bob"])
    assert "Nothing is counted for this user." in capsys.readouterr().out
