"""The installed program, as a shell runs it, against a stack that runs."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from steponce.local import LocalStack
from tests.conftest import TEMPLATE
from tests.patience import PATIENCE_SECONDS, eventually
from tests.processes import descendants, parents
from tests.workflow.program import PROGRAM, Run, environment

EVENT = str(TEMPLATE.parent / "events" / "start_order.json")
VISA = {"orderId": "1", "amount": 500, "card": "tok_visa"}


def test_start_and_wait_answers_with_the_result(in_a_shell: Run, order: str):
    """One command from a file to a result."""
    code, receipt = in_a_shell("start", order, EVENT, "--local", "--wait")

    assert (0, "COMPLETED", False) == (code, receipt["status"], receipt["duplicate"])
    assert ("1", 500) == (receipt["result"]["orderId"], receipt["result"]["amount"])


def test_the_same_start_again_gets_the_same_answer(steponce: Run, order: str):
    """And says that it started nothing."""
    _, first = steponce("start", order, EVENT, "--wait")

    assert (0, first | {"duplicate": True}) == steponce("start", order, EVENT, "--wait")
    assert (0, first) == steponce("status", order)
    assert (0, first) == steponce("wait", order)


def test_another_payload_under_the_id_leaves_with_3(steponce: Run, order: str):
    """The message helps and holds nothing of either payload."""
    steponce("start", order, EVENT, "--wait")

    code, answer = steponce("start", order, "-", payload=VISA | {"amount": 501})

    assert (3, "PayloadMismatch") == (code, answer["error"]["type"])
    assert "tok_visa" not in answer["error"]["message"]


def test_a_key_is_shared_by_requests_that_name_it(steponce: Run, order: str):
    """Two ids, one key, one run; status needs the key of neither."""
    _, first = steponce("start", f"{order}-a", EVENT, "--key", f"shared/{order}", "--wait")

    code, second = steponce("start", f"{order}-b", EVENT, "--key", f"shared/{order}", "--wait")

    assert (0, True, first["result"]) == (code, second["duplicate"], second["result"])
    assert first["executionArn"] == second["executionArn"]
    assert (0, first) == steponce("status", f"{order}-a")


def test_a_declined_card_leaves_with_1(steponce: Run, order: str):
    """On start, on status and on wait alike; show tells of it and leaves with 0."""
    declined = VISA | {"card": "tok_declined"}

    code, receipt = steponce("start", order, "-", "--wait", payload=declined)

    assert (1, "FAILED", "CardDeclined") == (code, receipt["status"], receipt["error"])
    assert (1, receipt) == steponce("status", order)
    assert (1, receipt) == steponce("wait", order)
    code, story = steponce("show", order)
    assert (0, "failed") == (code, story["diagnosis"])
    assert "tok_declined" not in json.dumps(story)


def test_a_request_that_outlasts_the_wait_leaves_with_1_and_goes_on(steponce: Run, order: str):
    """Waiting again finds its end."""
    confirmed = VISA | {"confirm": True}

    code, answer = steponce("start", order, "-", "--wait", "--timeout", "0.2", payload=confirmed)

    assert (1, "WaitTimeout") == (code, answer["error"]["type"])
    assert "still runs" in answer["error"]["message"]
    assert "running" == steponce("show", order)[1]["diagnosis"]
    steponce("callback", "succeed", order)
    assert (0, "COMPLETED") == ((done := steponce("wait", order))[0], done[1]["status"])


def test_show_tells_the_states_in_order(steponce: Run, order: str):
    """With times that add up, and no payload unless asked for."""
    steponce("start", order, EVENT, "--wait")

    code, story = steponce("show", order)

    assert (0, "completed", None) == (code, story["diagnosis"], story["holder"])
    (attempt,) = story["attempts"]
    assert ["IsRequestPrepared", "AcquireLock", "DoWork", "IsConfirmationWanted", "CompleteRequest"] == [
        visit["state"] for visit in attempt["visits"]
    ]
    assert all(visit["seconds"] >= 0 for visit in attempt["visits"])
    assert attempt["started"] <= attempt["visits"][0]["entered"] <= attempt["stopped"]
    assert "tok_visa" not in json.dumps(story)
    assert VISA == steponce("show", order, "--payload")[1]["attempts"][0]["payload"]


def test_show_tells_of_every_try_and_attempt(steponce: Run, order: str):
    """RetryLater is tried three times, then released; the next start is attempt 2 and succeeds."""
    unreachable = VISA | {"card": "tok_unreachable"}
    assert 1 == steponce("start", order, "-", "--wait", payload=unreachable)[0]
    _, released = steponce("show", order)
    assert 0 == steponce("start", order, "-", "--wait", payload=unreachable)[0]

    _, story = steponce("show", order)

    work = next(visit for visit in story["attempts"][0]["visits"] if visit["state"] == "DoWork")
    assert (3, ["RetryLater"] * 3) == (work["tries"], [one["error"] for one in work["troubles"]])
    assert ("released", "completed") == (released["diagnosis"], story["diagnosis"])
    assert [(1, "FAILED"), (2, "SUCCEEDED")] == [(a["number"], a["status"]) for a in story["attempts"]]


def test_a_request_that_was_stopped_is_settled_once_its_work_is_over(
    steponce: Run, stack: LocalStack, order: str
):
    """Its owner is dead, its lock open: until then --check-owner starts an attempt that settles nothing."""
    slow = VISA | {"card": "tok_slow", "delaySeconds": 30}
    _, receipt = steponce("start", order, "-", payload=slow)
    eventually(lambda: steponce("show", order)[1]["attempts"][0]["visits"][-1]["state"] == "DoWork")
    stack.boto3("stepfunctions").stop_execution(executionArn=receipt["executionArn"])

    _, story = steponce("show", order)
    code, next_one = steponce("start", order, "-", "--check-owner", payload=slow)

    assert ("unsettled", "ABORTED") == (story["diagnosis"], story["attempts"][0]["status"])
    assert [f"steponce show {order}"] == story["next"]  # when its work is certainly over
    assert (0, f"{order}--2") == (code, next_one["executionArn"].rpartition(":")[2])


def test_an_unknown_request_leaves_with_1(in_a_shell: Run, order: str):
    """Whatever is asked of it."""
    assert [(1, "RequestNotFound")] * 3 == [
        (code, answer["error"]["type"])
        for code, answer in (in_a_shell(command, order) for command in ("status", "wait", "show"))
    ]


def test_a_terminal_gets_a_table_and_a_spinner(home: Path, order: str):
    """The same program; only what it writes to differs."""
    master, slave = pty.openpty()
    program = subprocess.Popen(
        [PROGRAM, "start", order, "-", "--wait"],
        stdin=subprocess.PIPE,
        stdout=slave,
        stderr=slave,
        env=environment(home) | {"TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(slave)
    assert program.stdin
    program.stdin.write(json.dumps(VISA | {"card": "tok_slow", "delaySeconds": 0.5}).encode())
    program.stdin.close()
    written = b"".join(read_all(master)).decode()

    assert 0 == program.wait(PATIENCE_SECONDS)
    assert f"Waiting for {order}" in written
    assert "COMPLETED" in written
    assert '"amount": 500' in written
    assert not written.lstrip().startswith("{")


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_up_serves_until_it_is_told_to_end(tmp_path: Path, order: str, number: int):
    """Its facts lead the other commands to it; afterwards facts, logs and processes are gone."""
    home = tmp_path / "home"
    up = subprocess.Popen(
        [PROGRAM, "up", "--template", str(TEMPLATE), "--parameter", "ExpectedSeconds=77"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
        cwd=tmp_path,
    )
    try:
        assert up.stdout
        facts = json.loads(up.stdout.readline())
        processes = descendants(up.pid)
        done = subprocess.run(
            [PROGRAM, "start", order, EVENT, "--local", "--wait"],
            env=environment(home),
            capture_output=True,
            timeout=PATIENCE_SECONDS,
        )
        assert (0, "COMPLETED") == (done.returncode, json.loads(done.stdout)["status"])
        assert facts == json.loads((home / "stack.json").read_text())
        assert "77" == facts["outputs"]["ExpectedSeconds"]
        processes |= descendants(up.pid)

        up.send_signal(number)

        assert (b"", b"") == up.communicate(timeout=PATIENCE_SECONDS)
        assert 0 == up.returncode
    finally:
        up.kill()
        up.wait()
    assert [] == list(home.iterdir())
    assert not Path(facts["logs"]).exists()
    assert processes
    eventually(lambda: not processes & set(parents()))


def read_all(master: int) -> Iterator[bytes]:
    """Everything that is written to a terminal until nobody has it open any more."""
    try:
        while chunk := os.read(master, 4096):
            yield chunk
    except OSError:  # Linux's way to say the end
        pass
    finally:
        os.close(master)
