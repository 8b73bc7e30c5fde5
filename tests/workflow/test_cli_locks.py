"""An operator's commands on a stack that runs: nothing is overwritten, and no charge happens twice."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steponce.cli import commands, confirmation
from steponce.executions import CANCELLATION
from steponce.failure import Failure
from steponce.local import write_facts
from steponce.locks.record import Lock
from tests.workflow.faults import Hold
from tests.workflow.program import PROGRAM, environment, run_in_a_pipe
from tests.workflow.scene import BUG, DECLINED, UNREACHABLE, VISA, Scene
from tests.workflow.waiting import Waiting

SIGNED = ("--yes", "--by", "alice", "--why", "looked at the provider's list")

Answer = tuple[int, dict[str, Any]]
Run = Callable[..., Answer]


@pytest.fixture
def folder(scene: Scene, tmp_path: Path) -> Path:
    """Where `--local` finds the scene's stack."""
    facts = scene.stack.facts()
    facts["endpoints"] |= {"states": scene.clock.url}  # operators ask by the same clock as the functions
    write_facts(facts, tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a pipe, in this process: exit code and the one object."""
    monkeypatch.setenv("STEPONCE_HOME", str(folder))
    monkeypatch.delenv("STEPONCE_STACK", raising=False)

    def run_it(*arguments: str) -> Answer:
        code = commands.run([*arguments, "--local"])
        return code, json.loads(capsys.readouterr().out)

    return run_it


@pytest.fixture
def result(tmp_path: Path) -> str:
    """A file with the result that the operator found at the provider."""
    path = tmp_path / "result.json"
    path.write_text('{"chargeId": "ch_found"}')
    return str(path)


def kind(answer: Answer) -> tuple[int, str]:
    """Exit code and error of a refused command."""
    return answer[0], answer[1]["error"]["type"]


def held(scene: Scene) -> str:
    """A request whose work failed with a bug, so that it waits for a person."""
    name = scene.new_id("held")
    scene.run(name, BUG)
    scene.closed(name)
    return name


def lock_of(scene: Scene, name: str) -> Lock:
    lock = scene.lock(scene.key(name))
    assert lock is not None
    return lock


def in_work(scene: Scene) -> tuple[str, Hold]:
    """A request that has charged, and is in its work until it is let go."""
    name = scene.new_id("slow")
    hold = scene.faults.plan("DoWork", Hold(after=True), key=scene.key(name))
    scene.client.start(name, VISA)
    hold.wait()
    return name, hold


# -- waiting for a person --------------------------------------------------------------------------
def test_a_released_request_runs_again_once_it_is_started(scene: Scene, run: Run):
    """Under the same id, as the next attempt; list and inspect knew it."""
    name = held(scene)
    listed = run("locks", "list", "--failed", "--limit", "10000")[1]["locks"]
    inspected = run("locks", "inspect", name)[1]

    code, told = run("locks", "release", name, *SIGNED)

    assert scene.key(name) in [one["lockToken"] for one in listed]
    assert ("FAILED", "RequestFailed") == (inspected["owner"]["status"], inspected["owner"]["lastState"])
    assert f"steponce locks release {scene.key(name)} --token --local" in inspected["next"]
    assert (0, "RELEASED") == (code, told["record"]["status"])
    assert not scene.on_open_index(lock_of(scene, name))
    assert "released" == run("show", name)[1]["diagnosis"]
    assert scene.run(name, BUG).attempt == 2


def test_a_completed_request_answers_with_what_the_operator_found(scene: Scene, run: Run, result: str):
    """To its own id and to everyone with its key; nothing runs."""
    name = held(scene)

    code, told = run("locks", "complete", name, result, *SIGNED)

    assert (0, {"chargeId": "ch_found"}) == (code, told["record"]["result"])
    assert {"chargeId": "ch_found"} == scene.run(name, BUG).result
    other = scene.run(f"{name}-other", BUG, lock_token=scene.key(name))
    assert ("COMPLETED", {"chargeId": "ch_found"}) == (other.status, other.result)
    assert [] == scene.charges(scene.key(name))


def test_a_retried_request_gets_its_own_payload(scene: Scene, run: Run):
    """The provider was unreachable three times, which the next attempt is not."""
    name = scene.new_id("again")
    assert scene.run(name, UNREACHABLE).error == "RetryLater"
    scene.closed(name)

    code, told = run("locks", "retry", name, *SIGNED)

    assert (0, False) == (code, told["receipt"]["duplicate"])
    assert "COMPLETED" == scene.client.wait(name, timeout_seconds=100).status
    assert 1 == len(scene.charges(scene.key(name)))
    assert kind(run("locks", "retry", name, *SIGNED)) == (3, "Refused")


def test_the_story_tells_who_did_what_between_the_attempts(scene: Scene, run: Run, result: str):
    """With who and why, in the order of time."""
    name = held(scene)
    before = run("show", name)[1]
    run("locks", "retry", name, *SIGNED)
    scene.eventually(lambda: lock_of(scene, name).status == "FAILED")
    scene.closed(f"{name}--2")
    run("locks", "complete", name, result, "--yes", "--by", "bob", "--why", "it was charged")

    story = run("show", name)[1]

    first, second = story["record"]["interventions"]
    assert [("alice", "released", SIGNED[-1]), ("bob", "completed", "it was charged")] == [
        (one["by"], one["what"], one["why"]) for one in (first, second)
    ]
    attempts = story["attempts"]
    assert attempts[0]["stopped"] < first["at"] < attempts[1]["started"] < second["at"]
    assert f"steponce locks retry {scene.key(name)} --token --local" in before["next"]
    assert ("waits for a person", "completed") == (before["diagnosis"], story["diagnosis"])


# -- what is refused -------------------------------------------------------------------------------
def test_nothing_is_done_to_a_request_that_runs(scene: Scene, run: Run, result: str):
    """It goes on, and completes."""
    name, hold = in_work(scene)

    refused = [
        kind(run("locks", "release", name, *SIGNED)),
        kind(run("locks", "complete", name, result, *SIGNED)),
        kind(run("locks", "retry", name, *SIGNED)),
    ]

    assert [(3, "Refused")] * 3 == refused
    hold.go_on.set()
    assert "COMPLETED" == scene.client.wait(name, timeout_seconds=100).status
    assert () == lock_of(scene, name).interventions


@pytest.mark.parametrize("payload", [VISA, DECLINED], ids=["completed", "declined"])
def test_a_final_answer_stays(scene: Scene, run: Run, result: str, payload: dict[str, Any]):
    """Whatever an operator wants."""
    name = scene.new_id("final")
    scene.run(name, payload)
    before = lock_of(scene, name)

    refused = [
        kind(run("locks", "release", name, *SIGNED)),
        kind(run("locks", "complete", name, result, *SIGNED)),
        kind(run("locks", "retry", name, *SIGNED)),
    ]

    assert [(3, "Refused")] * 3 == refused
    assert before == lock_of(scene, name)


def test_a_dead_owners_result_is_written_before_its_lock_is_released(scene: Scene, run: Run):
    """The work is done, and a release would have charged twice."""
    name = scene.new_id("unwritten")
    hold = scene.faults.plan("CompleteRequest", Hold(arrives=False), key=scene.key(name))
    scene.client.start(name, VISA)
    hold.wait()
    scene.stop(name)
    hold.go_on.set()

    refused = run("locks", "release", name, *SIGNED)

    assert (3, "Refused") == kind(refused)
    assert "COMPLETED" == lock_of(scene, name).status
    assert "COMPLETED" == scene.run(name, VISA).status
    assert 1 == len(scene.charges(scene.key(name)))


# -- two at once -----------------------------------------------------------------------------------
def test_of_two_operators_at_once_one_is_told(
    scene: Scene, folder: Path, monkeypatch: pytest.MonkeyPatch, result: str
):
    """Both were shown the same record; the second writes nothing."""
    name = held(scene)
    both = threading.Barrier(2)

    def think(asked: confirmation.Confirmation, _shown: Any, _question: str) -> str:
        both.wait(60)
        return str(asked.why)

    monkeypatch.setattr(confirmation.Confirmation, "ask", think)
    monkeypatch.setenv("STEPONCE_HOME", str(folder))
    codes: dict[str, int] = {}

    def act(by: str, *command: str) -> None:
        codes[by] = commands.run([*command, "--yes", "--by", by, "--why", f"{by} says", "--local"])

    threads = [
        threading.Thread(target=act, args=("alice", "locks", "release", name)),
        threading.Thread(target=act, args=("bob", "locks", "complete", name, result)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert [0, 3] == sorted(codes.values())
    (done,) = lock_of(scene, name).interventions
    assert codes[done.by] == 0


def test_a_workflow_that_takes_the_lock_meanwhile_is_not_overwritten(
    scene: Scene, run: Run, monkeypatch: pytest.MonkeyPatch, result: str
):
    """The operator thinks, another one retries, and the workflow has finished by then."""
    name = scene.new_id("race")
    scene.run(name, UNREACHABLE)
    scene.closed(name)

    def think(asked: confirmation.Confirmation, _shown: Any, _question: str) -> str:
        assert "COMPLETED" == scene.run(name, UNREACHABLE).status
        return str(asked.why)

    monkeypatch.setattr(confirmation.Confirmation, "ask", think)

    refused = run("locks", "complete", name, result, *SIGNED)

    assert (3, "RecordChanged") == kind(refused)
    assert "changed since you looked: it is COMPLETED" in refused[1]["error"]["message"]
    assert {"chargeId": "ch_found"} != json.loads(lock_of(scene, name).result or "")


def test_an_owner_that_finishes_while_the_operator_thinks_is_not_cancelled(
    scene: Scene, run: Run, monkeypatch: pytest.MonkeyPatch
):
    """Its answer stays."""
    name, hold = in_work(scene)

    def think(asked: confirmation.Confirmation, _shown: Any, _question: str) -> str:
        hold.go_on.set()
        scene.client.wait(name, timeout_seconds=100)
        scene.closed(name)
        return str(asked.why)

    monkeypatch.setattr(confirmation.Confirmation, "ask", think)

    assert (3, "RecordChanged") == kind(run("cancel", name, *SIGNED))
    assert "COMPLETED" == lock_of(scene, name).status


# -- cancelling ------------------------------------------------------------------------------------
def test_a_request_that_is_cancelled_before_its_work_never_charges(scene: Scene, run: Run):
    """It has failed for good, and whoever sends it again hears so."""
    name = scene.new_id("early")
    hold = scene.faults.plan("AcquireLock", Hold(after=True), key=scene.key(name))
    scene.client.start(name, VISA)
    hold.wait()

    code, told = run("cancel", name, *SIGNED)
    hold.go_on.set()

    assert (0, "FAILED", "Cancelled") == (code, told["record"]["status"], told["record"]["error"])
    again = scene.run(name, VISA)
    assert ("FAILED", CANCELLATION) == (again.status, Failure(again.error, again.cause))
    assert f"(alice: {SIGNED[-1]})" in told["record"]["interventions"][-1]["why"]
    assert [] == scene.charges(scene.key(name))
    assert not scene.on_open_index(lock_of(scene, name))


def test_a_request_that_is_cancelled_in_its_work_waits_for_a_person(scene: Scene, run: Run, result: str):
    """At once; but only when its work is surely over may somebody settle it."""
    name, hold = in_work(scene)

    code, told = run("cancel", name, *SIGNED)
    hold.go_on.set()

    assert (0, "FAILED", "Cancelled", True) == (
        code,
        told["record"]["status"],
        told["record"]["error"],
        told["record"]["onOpenIndex"],
    )
    assert SIGNED[-1] not in told["record"]["cause"]
    assert SIGNED[-1] in told["record"]["interventions"][-1]["why"]
    assert (3, "Refused") == kind(run("locks", "complete", name, result, *SIGNED))
    story = run("show", name)[1]
    assert ("waits for a person", "Cancelled", f"alice: {SIGNED[-1]}") == (
        story["diagnosis"],
        story["attempts"][0]["error"],
        story["attempts"][0]["cause"],
    )
    scene.clock.let_an_hour_pass()
    code, settled = run("locks", "complete", name, result, *SIGNED)
    assert (0, "COMPLETED") == (code, settled["record"]["status"])


def test_a_request_that_is_cancelled_while_it_writes_its_result_has_that_result(scene: Scene, run: Run):
    """The charge has happened, and is not lost."""
    name = scene.new_id("late")
    hold = scene.faults.plan("CompleteRequest", Hold(arrives=False), key=scene.key(name))
    scene.client.start(name, VISA)
    hold.wait()

    code, told = run("cancel", name, *SIGNED)
    hold.go_on.set()

    assert (0, "recorded", "COMPLETED") == (code, told["done"], told["record"]["status"])
    assert 500 == told["record"]["result"]["amount"]
    assert 1 == len(scene.charges(scene.key(name)))


def test_a_request_that_has_finished_cannot_be_cancelled(scene: Scene, run: Run):
    """Nor one that nobody knows."""
    name = scene.new_id("done")
    scene.run(name, VISA)
    scene.closed(name)

    assert (3, "Refused") == kind(run("cancel", name, *SIGNED))
    assert (1, "RequestNotFound") == kind(run("cancel", f"{name}-never", *SIGNED))


# -- erasing ---------------------------------------------------------------------------------------
def test_one_customer_is_erased_and_the_neighbour_keeps_everything(scene: Scene, run: Run):
    """Lock records and awaiting steps; a late message of theirs runs again, and is a new charge."""
    customer = scene.new_id("acme")
    for owner in (f"{customer}/", f"{customer}2/"):
        waits = Waiting.begin(scene, scene.new_id("waits"), f"{owner}o-1")
        waits.answer({"outcome": "success", "output": None})
        scene.run(scene.new_id("o"), VISA, lock_token=f"{owner}o-2")
        scene.client.wait(waits.name, timeout_seconds=100, lock_token=f"{owner}o-1")

    code, told = run("erase", f"{customer}/", *SIGNED)

    assert (0, [f"{customer}/o-1", f"{customer}/o-2"], 1) == (code, told["locks"], told["awaitingSteps"])
    assert [] == list(scene.locks.under(f"{customer}/"))
    assert 2 == len(list(scene.locks.under(f"{customer}2/")))
    neighbour = scene.run(scene.new_id("o"), VISA, lock_token=f"{customer}2/o-2")
    assert (True, "COMPLETED") == (neighbour.duplicate, neighbour.status)
    assert (0, [], 0) == (
        (again := run("erase", f"{customer}/", *SIGNED))[0],
        again[1]["locks"],
        again[1]["awaitingSteps"],
    )


def test_nothing_is_erased_while_something_waits(scene: Scene, run: Run, result: str):
    """Neither the order that waits, be it for a person, nor the one beside it that is done."""
    customer = scene.new_id("busy")
    scene.run(scene.new_id("o"), VISA, lock_token=f"{customer}/o-1")
    waits = Waiting.begin(scene, scene.new_id("waits"), f"{customer}/o-2")

    assert (3, "Refused") == kind(run("erase", f"{customer}/", *SIGNED))
    assert 2 == len(list(scene.locks.under(f"{customer}/")))

    assert 0 == run("cancel", waits.name, *SIGNED)[0]
    refused = run("erase", f"{customer}/", *SIGNED)
    assert (3, "Refused") == kind(refused)
    assert "waits for a person" in refused[1]["error"]["message"]

    complete = ("locks", "complete", f"{customer}/o-2", result, *SIGNED)
    scene.clock.let_an_hour_pass()
    assert 0 == run(*complete)[0]
    code, told = run("erase", f"{customer}/", *SIGNED)
    assert (0, 2, 1) == (code, len(told["locks"]), told["awaitingSteps"])


def test_an_order_that_waits_for_its_answer_is_not_late(scene: Scene, run: Run):
    """However long it was expected to take."""
    waits = Waiting.begin(scene)
    scene.change_lock(scene.key(waits.name), expectedCompletion="2020-01-01T00:00:00.000Z")

    story = run("show", waits.name)[1]

    assert ("running", False) == (story["diagnosis"], story["record"]["overdue"])
    assert any(waits.step.id in command for command in story["next"])
    waits.answer({"outcome": "success", "output": None})


# -- as a shell runs it ----------------------------------------------------------------------------
def test_in_a_pipe_yes_is_said_and_not_asked(scene: Scene, folder: Path):
    """Without it nothing happens, and nothing hangs."""
    name = held(scene)

    refused = run_in_a_pipe(folder, "locks", "release", name, "--why", "x", payload="y\n")
    assert (2, "UsageError") == kind(refused)
    assert "--yes" in refused[1]["error"]["message"]
    assert "FAILED" == lock_of(scene, name).status

    code, told = run_in_a_pipe(folder, "locks", "complete", name, "-", *SIGNED, payload={"chargeId": "ch_7"})
    assert (0, {"chargeId": "ch_7"}) == (code, told["record"]["result"])


def test_on_a_terminal_it_is_asked(scene: Scene, folder: Path):
    """The record is shown, the reason and the answer are typed; the answer itself goes to the pipe."""
    name = held(scene)
    master, slave = pty.openpty()
    program = subprocess.Popen(
        [PROGRAM, "locks", "release", name, "--by", "carol"],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        env=environment(folder) | {"TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(slave)
    os.write(master, b"nothing was charged\ny\n")
    told, _ = program.communicate(timeout=100)
    shown = os.read(master, 65_536).decode()
    os.close(master)

    assert (0, "nothing was charged") == (program.returncode, json.loads(told)["why"])
    assert "ZeroDivisionError" in shown
    assert f"Release {scene.key(name)}?" in shown
    (done,) = lock_of(scene, name).interventions
    assert ("carol", "released") == (done.by, done.what)
