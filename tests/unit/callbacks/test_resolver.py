"""
Verdicts on answers, in every order of what can happen, and whoever dies where.

The invariant: the workflow gets at most one answer, at most one call is told `accepted`, and every verdict
is a true statement of what the workflow got.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from itertools import count, product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from moto import mock_aws

from steponce.aws import times
from steponce.callbacks import awaiting, resolver
from steponce.callbacks.answer import Answer
from steponce.callbacks.awaiting import ANSWERED, LATE, PENDING, AwaitingStep, AwaitingSteps
from steponce.callbacks.resolver import Callbacks
from steponce.errors import InvalidAnswer, StepAlreadyAnswered, SteponceError, Unavailable
from steponce.executions import YOUNG
from tests import covering
from tests.fakes.awaiting_steps_table import QuickTable, create_table
from tests.fakes.calls import Boundary, Died
from tests.fakes.errors import client_error
from tests.fakes.waiting_step import BEGINNING, CRASH, WaitingStep
from tests.unit.callbacks.interleaving import Schedule, schedules, together
from tests.unit.shared_clients import shared

YES = Answer("success", {"confirmed": True})
NO = Answer("failure", error="Declined", cause="no")
MAYBE = Answer("success", {"confirmed": "perhaps"})
BEAT = Answer("heartbeat")

FULL = pytest.mark.full

NOW = BEGINNING + timedelta(days=1)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the day after."""
    monkeypatch.setattr(times, "now", lambda: NOW)


class Scene:
    """One wait, its record, and the calls that answer it; each verdict is checked as it comes."""

    def __init__(
        self,
        retries: int = 1,
        table: Any = None,
        kind: type[Callbacks] = Callbacks,
        records: type[AwaitingSteps] = AwaitingSteps,
    ) -> None:
        self.wait = WaitingStep(retries)
        self.throttled = False
        self.table = table or QuickTable()
        self.kind, self.records = kind, records
        self.step = AwaitingStep.from_event(self.wait.handed[-1])
        self.accepted: list[Answer] = []
        self.calls: list[str] = []

    def callbacks(self, gate: Callable[[str], str | None] | None = None) -> Callbacks:
        """A resolver, all of whose calls pass a gate."""
        gate = gate or (lambda _name: None)
        steps = self.records(Boundary(self.table, gate), "steps")
        return self.kind(steps, Boundary(self.wait.sfn, gate))

    def record(self) -> None:
        """The recording function runs for the newest try, and returns."""
        try:
            self.put_on_record()
        except StepAlreadyAnswered:
            self.wait.crash()
        else:
            self.wait.submit()

    def record_only(self) -> None:
        """The recording function records, and does not return yet."""
        with suppress(StepAlreadyAnswered):
            self.put_on_record()

    def record_the_first(self) -> None:
        """The recording function of the very first try was slow, and records only now."""
        self.put_on_record(0)

    def put_on_record(self, number: int = -1) -> None:
        """The record that the recording function of one try makes."""
        self.records(self.table, "steps").record(AwaitingStep.from_event(self.wait.handed[number]))

    def stored(self) -> AwaitingStep | None:
        """The record as it is."""
        return AwaitingSteps(self.table, "steps").get(self.step.id)

    def status(self) -> str:
        """The record's status."""
        stored = self.stored()
        return stored.status if stored else "none"

    def answer_raw(self, answer: Answer) -> None:
        """Somebody answers with the newest token itself."""
        try:
            self.wait.take(self.wait.tokens[-1], answer)
        except ClientError:
            assert self.wait.token is None or self.throttled

    def retry_and_record(self) -> None:
        """The retry that is due begins, and its recorder runs; or that of the try that is at it."""
        if self.wait.is_between_tries:
            self.wait.retry()
        if self.wait.token is not None and not self.wait.is_submitted:
            self.record()

    def time_out_for_good(self) -> None:
        """Nobody has answered, and no retry is left."""
        self.wait.retries_left = 0
        self.wait.time_out()

    def again(self) -> None:
        """The workflow enters the same state once more, and its recorder runs."""
        if not self.wait.is_inside and self.wait.is_open:
            self.wait.enter()
            self.record()

    def resolve(self, answer: Answer, gate: Callable[[str], str | None] | None = None) -> str:
        """One call; its verdict, or that it was unavailable or died."""
        verdict = self.ask(answer, gate)
        self.check(answer, verdict, faulty=gate is not None)
        return verdict

    def ask(self, answer: Answer, gate: Callable[[str], str | None] | None = None) -> str:
        """One call, unchecked. No exception tells a token."""
        try:
            verdict: str = self.callbacks(gate).resolve(self.step.id, answer)
        except (Unavailable, Died) as error:
            told = "".join(traceback.format_exception(error))
            assert not [token for token in self.wait.tokens if token in told and not self.throttled]
            return "unavailable" if isinstance(error, Unavailable) else "died"
        if verdict == "accepted" and answer != BEAT:
            self.accepted.append(answer)
        return verdict

    def check(self, answer: Answer, verdict: str, *, faulty: bool = False) -> None:
        """The verdict is true now."""
        stored = self.stored()
        waits = stored is not None and stored.task_token == self.wait.token
        got = self.wait.got_with(stored.task_token) if stored else []
        assert len(got) <= 1 >= len(self.accepted)
        truths = {
            "accepted": waits if answer == BEAT else got == [answer],
            "duplicate": got == [answer],
            "conflict": got not in ([], [answer]),
            "late": not waits if answer == BEAT else not got and not waits,
            "unknown": stored is None,
            "unavailable": faulty or self.wait.lags or self.throttled or self.may_wait_again(),
            "died": faulty,
        }
        assert truths[verdict], (verdict, answer, got, stored and stored.status)

    def may_wait_again(self) -> bool:
        """Whether the recorded try is over and another one is due, or has begun and is not on record."""
        stored = self.stored()
        return stored is not None and self.wait.is_inside and stored.task_token != self.wait.token

    def look_after(self, gate: Callable[[str], str | None] | None = None) -> str:
        """The monitor comes by; whether the record is closed then."""
        try:
            return str(self.callbacks(gate).settle(self.step.id))
        except (Unavailable, Died) as error:
            return "unavailable" if isinstance(error, Unavailable) else "died"

    def throttle(self, throttled: bool = True) -> None:
        """Step Functions refuses all answers for now, or takes them again."""
        self.throttled = throttled
        self.wait.sfn.heal()
        for outcome in ("success", "failure", "heartbeat"):
            if throttled:
                self.wait.sfn.refuse(f"send_task_{outcome}", "ThrottlingException")

    def settle(self, answer: Answer = YES) -> str:
        """All is well again: one more call gets a verdict, and nothing stays half done."""
        self.wait.catch_up()
        self.throttle(False)
        self.retry_and_record()
        verdict = self.resolve(answer)
        assert self.status() in ("none", ANSWERED, LATE), self.status()
        assert verdict not in ("unavailable", "died")
        if self.accepted:
            assert self.accepted[0] in self.wait.got
        assert verdict == self.resolve(answer) or verdict == "accepted"
        return verdict


def waiting(**options: Any) -> Scene:
    """A step that is on record and waits."""
    scene = Scene(**options)
    scene.record()
    return scene


class at:  # noqa: N801 - reads like a preposition
    """A gate with a fault at one of a resolver's calls. `calls` counts how many there were."""

    def __init__(self, position: int, fault: str) -> None:
        self.position, self.fault, self.calls = position, fault, 0

    def __call__(self, _name: str) -> str | None:
        self.calls += 1
        return self.fault if self.calls == self.position else None


# -- One answer after the other ------------------------------------------------------------------


@pytest.mark.parametrize("answer", [YES, NO, Answer("success"), Answer("failure")])
def test_the_first_answer_is_accepted_and_the_same_again_is_a_duplicate(answer: Answer):
    """The workflow gets it once, as it was given."""
    scene = waiting()

    assert "accepted" == scene.resolve(answer)
    assert "duplicate" == scene.resolve(answer)

    assert [answer] == scene.wait.got
    assert ANSWERED == scene.status()


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (YES, NO),
        (NO, YES),
        (YES, MAYBE),
        (NO, Answer("failure", error="Declined")),
        (Answer("success", 1), Answer("success", True)),
    ],
)
def test_another_answer_is_a_conflict(first: Answer, other: Answer):
    """The first one stands."""
    scene = waiting()
    scene.resolve(first)

    assert "conflict" == scene.resolve(other)
    assert [first] == scene.wait.got


def test_an_answer_to_no_step_is_unknown():
    """Also before the step is on record."""
    assert "unknown" == Scene().resolve(YES)


def test_an_accepted_answer_costs_four_calls():
    """Read, claim, send, close; and a repeated one a single read."""
    calls: list[str] = []
    scene = waiting()

    scene.resolve(YES, calls.append)
    assert ["get_item", "update_item", "send_task_success", "update_item"] == calls
    scene.resolve(YES, calls.append)
    assert 5 == len(calls)


def test_a_heartbeat_is_accepted_while_the_step_waits():
    """As often as it comes, and the answer after it too."""
    scene = waiting()

    assert ["accepted"] * 3 + ["accepted"] == [scene.resolve(one) for one in (BEAT, BEAT, BEAT, YES)]
    assert "late" == scene.resolve(BEAT)


@pytest.mark.parametrize("raw", [YES, NO, Answer("failure"), Answer("success")])
@pytest.mark.parametrize("probe", [YES, NO, BEAT])
def test_an_answer_with_the_raw_token_closes_the_record_by_what_follows(raw: Answer, probe: Answer):
    """The record then tells the answer that the workflow got, whoever asked: an answer or a heartbeat."""
    scene = waiting()
    scene.answer_raw(raw)

    verdict = scene.resolve(probe)

    # An answer like the raw one may be the raw one: AWS does not tell a repeated call from another's.
    assert verdict == ("late" if probe == BEAT else "accepted" if probe == raw else "conflict")
    assert (ANSWERED, raw) == (scene.status(), scene.stored().answer)
    assert "duplicate" == scene.resolve(raw)


@pytest.mark.parametrize("output", [10**30, ["\ud800"], {"n": 2**53}])
def test_a_raw_answer_that_we_would_refuse_is_a_conflict(output: Any):
    """It is recorded all the same."""
    scene = waiting()
    scene.answer_raw(Answer("success", output))

    assert ["conflict", "conflict", "late"] == [scene.resolve(one) for one in (YES, YES, BEAT)]


def test_an_output_is_compared_as_json():
    """Step Functions may write it otherwise than we send it."""
    scene = waiting()
    scene.wait.take(scene.wait.tokens[0], Answer("success", {"b": 1.0, "a": "é"}))
    scene.wait.events[-2]["taskSucceededEventDetails"]["output"] = '{ "b": 1.0, "a": "\\u00e9" }'

    assert "accepted" == scene.ask(Answer("success", {"a": "é", "b": 1}))


@pytest.mark.parametrize("details", [{}, {"error": "", "cause": ""}, {"error": None, "cause": None}])
def test_a_failure_without_words_is_the_same_however_it_is_shown(details: dict[str, Any]):
    """Absent, empty and null are one."""
    scene = waiting()
    scene.answer_raw(Answer("failure"))
    scene.wait.events[-2]["taskFailedEventDetails"] = details

    assert "accepted" == scene.resolve(Answer.parse({"outcome": "failure"}))


@pytest.mark.parametrize("probe", [YES, NO, BEAT])
@pytest.mark.parametrize("end", ["time_out", "stop", "crash", "abort"])
def test_what_comes_after_the_step_is_over_is_late(probe: Answer, end: str):
    """Timed out, stopped, failed by its own function or aborted with its sibling: it got no answer."""
    scene = Scene(retries=0)
    scene.record_only()
    if end != "crash":
        scene.wait.submit()
    getattr(scene.wait, end)()

    assert ["late"] * 3 == [scene.resolve(one) for one in (probe, YES, BEAT)]
    assert LATE == scene.status()
    assert [] == scene.wait.got


def test_a_failure_is_known_by_its_words_even_before_the_function_returned():
    """The outside was quicker than the recorder, and the reply was lost: this failure is no crash."""
    scene = Scene()
    scene.record_only()

    assert "accepted" == scene.resolve(NO, at(3, "repeat"))
    assert [NO] == scene.wait.got


def test_an_answer_to_a_step_that_is_about_to_be_retried_waits_for_the_retry():
    """It is claimed, cannot be sent yet, and goes with the newer token."""
    scene = waiting()
    scene.wait.time_out()
    assert "unavailable" == scene.resolve(YES)
    assert "unavailable" == scene.resolve(BEAT)

    scene.wait.retry()
    assert "unavailable" == scene.resolve(YES)
    scene.record()

    assert "duplicate" == scene.resolve(YES)
    assert [YES] == scene.wait.got


def test_a_late_step_that_is_entered_again_takes_an_answer():
    """The earlier one was told the truth: it was late, and is not applied now."""
    scene = waiting(retries=0)
    scene.wait.time_out()
    assert "late" == scene.resolve(NO)

    scene.again()

    assert "accepted" == scene.resolve(YES)
    assert [YES] == scene.wait.got
    assert "conflict" == scene.resolve(NO)


def test_an_answer_to_an_old_run_never_reaches_the_new_one():
    """Each run has an id of its own; the old one's is late."""
    scene = waiting()
    scene.wait.stop()
    new = AwaitingStep.from_event(scene.wait.handed[-1] | {"callId": "other", "taskToken": "token-new"})
    AwaitingSteps(scene.table, "steps").record(new)

    assert "late" == scene.resolve(YES)
    stored = AwaitingSteps(scene.table, "steps").get(new.id)
    assert stored is not None
    assert PENDING == stored.status


def test_an_execution_that_is_gone_was_too_late():
    """Step Functions forgets after 90 days; but a history that is young may just not be there yet."""
    scene, young = waiting(), waiting()
    scene.wait.vanish()
    young.wait.vanish()

    assert "late" == scene.resolve(YES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(times, "now", lambda: times.from_text(young.step.entered_at) + YOUNG)
        assert "unavailable" == young.ask(YES)


@pytest.mark.parametrize("hidden", range(1, 5))
def test_a_history_that_lags_is_never_taken_for_the_whole(hidden: int):
    """A stopped or answered step whose end does not show yet is unavailable, not late."""
    scene = waiting()
    scene.answer_raw(NO)
    scene.wait.finish()
    scene.wait.lag(hidden)

    verdict = scene.resolve(YES)

    assert verdict == ("conflict" if hidden < 3 else "unavailable")
    assert "conflict" == scene.settle()


def test_an_answer_that_step_functions_refuses_does_not_block_the_step():
    """Its sender is told, the claim is given back, and the next answer is taken."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_failure", "ValidationException")

    with pytest.raises(InvalidAnswer, match="does not accept this answer"):
        scene.callbacks().resolve(scene.step.id, NO)

    assert PENDING == scene.status()
    assert "accepted" == scene.resolve(YES)


def test_a_refused_answer_whose_sender_died_does_not_block_the_step():
    """Whoever finds it takes it out, and goes on with the own one."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_failure", "ValidationException")
    assert "died" == scene.resolve(NO, at(3, "die before"))

    assert "accepted" == scene.resolve(YES)
    assert [YES] == scene.wait.got


@pytest.mark.parametrize("code", ["AccessDeniedException", "KmsAccessDeniedException"])
def test_an_error_of_the_set_up_is_told_by_its_name(code: str):
    """Not by its text, in which AWS may quote the token; when it is mended the answer goes its way."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_success", client_error(code, scene.step.task_token))

    with pytest.raises(SteponceError, match=rf"refused the answer with {code}\.$") as refused:
        scene.callbacks().resolve(scene.step.id, YES)
    assert refused.value.__suppress_context__
    assert scene.step.task_token not in "".join(traceback.format_exception(refused.value))

    assert "duplicate" == scene.settle()


def test_throttling_is_unavailable():
    """The answer is claimed, and goes with the next call."""
    scene = waiting()
    scene.throttle()

    assert ["unavailable", "unavailable"] == [scene.resolve(YES), scene.resolve(NO)]
    assert "duplicate" == scene.settle(YES)


def test_a_record_that_never_stands_still_is_unavailable():
    """After some tries the call gives up; nothing is sent twice."""
    scene = waiting(retries=99)

    def gate(name: str) -> None:
        if name == "update_item":
            scene.wait.time_out()
            scene.retry_and_record()

    assert "unavailable" == scene.resolve(YES, gate)
    assert [] == scene.wait.got


def test_a_sibling_branch_is_not_taken_for_the_step():
    """Events of both branches stand mixed; they are told apart by what they follow from."""
    scene = waiting(retries=0)
    scene.wait.time_out()

    assert "late" == scene.resolve(YES)


@pytest.mark.parametrize("kind", ["TaskStartFailed", "TaskSubmitFailed"])
def test_a_try_that_never_began_brought_no_answer(kind: str):
    """The step is late only when the state has been left: a retry may follow."""
    scene = Scene()
    scene.record_only()
    scene.wait.fail_to_start(kind)
    assert "unavailable" == scene.resolve(YES)

    assert "duplicate" == scene.settle(YES)
    assert [YES] == scene.wait.got


def test_a_token_that_a_retry_keeps_counts_for_its_last_try():
    """moto gives every try of a state the same token."""
    scene = waiting()
    scene.wait.time_out()
    scene.wait.retry()
    first, second = scene.wait.tokens
    for event in scene.wait.events:
        scheduled = event.get("taskScheduledEventDetails", {"parameters": ""})
        scheduled["parameters"] = scheduled["parameters"].replace(second, first)
    scene.answer_raw(YES)

    assert "accepted" == scene.resolve(YES)


def test_an_answer_on_its_way_goes_along_when_the_step_is_entered_again():
    """Nobody knows yet whether it arrived, so it answers the second wait too; another name avoids that."""
    scene = waiting()
    assert "died" == scene.resolve(YES, at(3, "die after"))
    scene.again()

    assert "duplicate" == scene.resolve(YES)
    assert [YES, YES] == scene.wait.got


def test_a_retry_after_an_accepted_failure_is_no_second_chance():
    """Who retries on the answer's own error name sees StepAlreadyAnswered; the answer stands."""
    scene = waiting()
    assert "accepted" == scene.resolve(NO)
    scene.again()

    assert (None, CRASH) == (scene.wait.token, scene.wait.events[-1]["taskFailedEventDetails"]["cause"])
    assert "duplicate" == scene.resolve(NO)


# -- Every order ---------------------------------------------------------------------------------

HAPPENINGS: dict[str, Callable[[Scene], object]] = {
    "record": Scene.record,
    "record only": Scene.record_only,
    "slow record": Scene.record_the_first,
    "lag": lambda scene: scene.wait.lag(),
    "yes": lambda scene: scene.resolve(YES),
    "no": lambda scene: scene.resolve(NO),
    "beat": lambda scene: scene.resolve(BEAT),
    "raw yes": lambda scene: scene.answer_raw(YES),
    "raw maybe": lambda scene: scene.answer_raw(MAYBE),
    "time out": lambda scene: scene.wait.time_out(),
    "time out for good": Scene.time_out_for_good,
    "crash": lambda scene: scene.wait.crash(),
    "retry": lambda scene: scene.wait.retry() if scene.wait.is_between_tries else None,
    "again": Scene.again,
    "stop": lambda scene: scene.wait.stop(),
    "yes, dying": lambda scene: scene.resolve(YES, at(3, "die before")),
    "no, dying": lambda scene: scene.resolve(NO, at(3, "die after")),
}


def live_through(scene: Scene, order: Iterable[str]) -> None:
    """Let things happen in this order; every verdict on the way is checked, and the end."""
    for happening in order:
        HAPPENINGS[happening](scene)
    scene.settle()


@pytest.mark.parametrize("share", [len(HAPPENINGS), pytest.param(1, marks=FULL)])
def test_every_order_of_what_can_happen_keeps_the_invariant(share: int):
    """
    Answers, heartbeats, ends, retries, stops and deaths: every three of them in every order; or so many that
    every two are at every two places.
    """
    names = list(HAPPENINGS)
    for numbers in product(range(len(names)), repeat=3):
        if sum(numbers) % share == 0:
            live_through(waiting(), (names[number] for number in numbers))
    for order in product(HAPPENINGS, repeat=2):
        live_through(Scene(), order)


# -- Every line at which a resolver can die ------------------------------------------------------

MEANWHILE: dict[str, list[Callable[[Scene], object]]] = {
    "nothing": [],
    "a time-out": [lambda scene: scene.wait.time_out()],
    "a time-out, and a retry": [lambda scene: scene.wait.time_out(), Scene.retry_and_record],
    "a time-out, and entering again": [Scene.time_out_for_good, Scene.again],
    "a slow recorder": [Scene.record_the_first],
    "the same raw answer": [lambda scene: scene.answer_raw(YES)],
    "another raw answer": [lambda scene: scene.answer_raw(MAYBE)],
    "a raw answer that does not show": [
        lambda scene: scene.wait.lag(),
        lambda scene: scene.answer_raw(MAYBE),
    ],
    "a stop": [lambda scene: scene.wait.stop()],
}
BEFORE = ["nothing", "a time-out, and a retry", "another raw answer", "a stop"]
FAULTS = ["die before", "die after", "lose answer", "repeat"]


def stumble_everywhere(fault: str, before: str, **options: Any) -> None:
    """One call meets a fault, something happens, and another call finds what the first one left."""
    for first, meanwhile, after in product((YES, NO, BEAT), MEANWHILE, (YES, NO)):
        for position in count(1):
            scene, gate = waiting(**options), at(position, fault)
            for happening in MEANWHILE[before]:
                happening(scene)
            verdict = scene.resolve(first, gate)
            assert fault != "repeat" or before != "nothing" or verdict == "accepted"
            for happening in MEANWHILE[meanwhile]:
                happening(scene)
            scene.resolve(after)
            scene.settle()
            if gate.calls < position:
                break


@covering.rows(
    "before,fault",
    {f"{before}-{fault}": (before, fault) for before, fault in product(BEFORE, FAULTS)},
    [lambda row: row[0], lambda row: row[1]],
)
def test_a_resolver_may_fail_at_every_call(before: str, fault: str):
    """Died, cut off, or repeated by boto3, before or after a call took effect: the next call mends it."""
    stumble_everywhere(fault, before)


# -- Every interleaving --------------------------------------------------------------------------


def race(schedule: Schedule, answers: tuple[Answer, Answer], meanwhile: str, **options: Any) -> None:
    """Two calls and a happening, moving one call at a time; what they were told must be true at the end."""
    scene = waiting(**options)
    told: list[tuple[Answer, str]] = []

    def resolver(answer: Answer) -> Callable[[Callable[[str], None]], None]:
        return lambda gate: told.append((answer, scene.ask(answer, gate)))

    def others(gate: Callable[[str], None]) -> None:
        for happening in MEANWHILE[meanwhile]:
            happening(scene)
            gate("")

    together(schedule, *map(resolver, answers), others)

    got = scene.wait.got
    assert len(got) <= scene.wait.entries
    assert len(set(got)) <= 1 >= len(scene.accepted)
    assert all(answer in got for answer in scene.accepted)
    for answer, verdict in told:
        assert verdict != "duplicate" or answer in got
        assert verdict != "conflict" or set(got) not in (set(), {answer})
        assert verdict != "late" or answer == BEAT or "time-out" in meanwhile or "stop" in meanwhile
        assert verdict != "unavailable" or "time-out" in meanwhile or "show" in meanwhile
        assert verdict not in ("unknown", "died")
    if meanwhile == "nothing" and set(answers) != {BEAT}:
        assert 1 == len(got) == len(scene.accepted)
    scene.settle(answers[0])


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("answers", [(YES, NO), *(pytest.param((YES, o), marks=FULL) for o in (YES, BEAT))])
@pytest.mark.parametrize("switches", [2, pytest.param(3, marks=FULL)])
def test_two_answers_at_once_get_true_verdicts(answers: tuple[Answer, Answer], meanwhile: str, switches: int):
    """Whoever moves next at every call's boundary, with a few switches away from who is at it."""
    assert 50 < schedules(lambda schedule: race(schedule, answers, meanwhile), switches)


@FULL
def test_two_answers_at_once_may_switch_more_often():
    """With nothing but each other in the way, and up to four switches."""
    assert 500 < schedules(lambda schedule: race(schedule, (YES, NO), "nothing"), switches=4)


def race_with_the_monitor(schedule: Schedule, answer: Answer, meanwhile: str) -> None:
    """The same with one call and the monitor, for a step whose time is over."""
    scene = Scene()
    for handed in scene.wait.handed:
        handed["timeoutSeconds"] = -1
    scene.record()
    told: list[str] = []

    def others(gate: Callable[[str], None]) -> None:
        for happening in MEANWHILE[meanwhile]:
            happening(scene)
            gate("")

    together(
        schedule,
        lambda gate: told.append(scene.ask(answer, gate)),
        lambda gate: told.append(scene.look_after(gate)),
        others,
    )
    assert len(scene.wait.got) <= scene.wait.entries
    assert len(scene.accepted) <= 1
    assert all(one in scene.wait.got for one in scene.accepted)
    scene.settle()


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("answer", [YES, pytest.param(BEAT, marks=FULL)])
def test_the_monitor_and_an_answer_at_once_do_no_harm(answer: Answer, meanwhile: str):
    """Whoever of them moves next: the workflow gets one answer, and what was told is true."""
    assert 10 < schedules(lambda schedule: race_with_the_monitor(schedule, answer, meanwhile), switches=2)


def test_the_monitor_finishes_what_others_have_begun():
    """A claimed answer is sent; after that there is nothing to do, and no verdict changes."""
    scene = waiting()
    assert "died" == scene.resolve(YES, at(3, "die before"))

    assert ["True", "True"] == [scene.look_after(), scene.look_after()]

    assert ([YES], ANSWERED) == (scene.wait.got, scene.status())
    assert ["duplicate", "conflict"] == [scene.resolve(YES), scene.resolve(NO)]


def test_the_monitor_takes_out_an_answer_that_step_functions_refuses():
    """Its sender is not there to be told; the step waits on."""
    scene = waiting()
    scene.wait.sfn.refuse("send_task_failure", "ValidationException")
    assert "died" == scene.resolve(NO, at(3, "die before"))

    assert "False" == scene.look_after()
    assert "accepted" == scene.resolve(YES)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_monitor_may_fail_at_every_call(fault: str):
    """The next round mends it."""
    for position in range(1, 5):
        scene = waiting()
        assert "died" == scene.resolve(YES, at(3, "die before"))
        scene.look_after(at(position, fault))
        assert "True" == scene.look_after()
        assert [YES] == scene.wait.got


def test_the_monitor_knows_nothing_of_a_step_that_is_gone():
    """DynamoDB has deleted it."""
    assert "False" == Scene().look_after()


# -- On a real table, by chance ------------------------------------------------------------------


class LongStory(RuleBasedStateMachine):
    """Whatever happens, for long, on moto's table; each verdict and the end are checked."""

    table: Any = None

    @initialize(retries=st.integers(0, 3))
    def begin(self, retries: int) -> None:
        self.scene = Scene(retries, table=self.table)

    @rule(happening=st.sampled_from(sorted(HAPPENINGS)))
    def let_happen(self, happening: str) -> None:
        HAPPENINGS[happening](self.scene)

    @rule(
        answer=st.sampled_from([YES, NO, MAYBE, BEAT]),
        position=st.integers(1, 7),
        fault=st.sampled_from(FAULTS),
    )
    def stumble(self, answer: Answer, position: int, fault: str) -> None:
        self.scene.resolve(answer, at(position, fault))

    @rule(lag=st.booleans(), throttled=st.booleans())
    def disturb(self, lag: bool, throttled: bool) -> None:
        self.scene.wait.lag() if lag else self.scene.wait.catch_up()
        self.scene.throttle(throttled)

    @rule(position=st.integers(1, 5), fault=st.sampled_from(FAULTS))
    def look_after(self, position: int, fault: str) -> None:
        self.scene.look_after(at(position, fault))

    @rule()
    def abort(self) -> None:
        if self.scene.wait.is_inside:
            self.scene.wait.abort()

    def teardown(self) -> None:
        if hasattr(self, "scene"):
            self.scene.settle()


def test_a_long_story_ends_well():
    """Hypothesis makes up the story."""
    with mock_aws():
        LongStory.table = shared("dynamodb")
        create_table(LongStory.table)
        run_state_machine_as_test(LongStory, settings=settings(max_examples=15, stateful_step_count=15))


# -- A rule that cannot fail is no rule ----------------------------------------------------------


def some_order(**parts: Any) -> None:
    """All orders; neighbours are alike, so they are mixed, to find a fault soon."""
    orders = list(product(HAPPENINGS, repeat=3))
    for order in random.Random(3).sample(orders, len(orders)):
        live_through(waiting(**parts), order)


def in_order(*order: str, known: bool = True) -> Callable[..., None]:
    """One telling order."""
    return lambda **parts: live_through(waiting(**parts) if known else Scene(0, **parts), order)


def races(other: Answer, meanwhile: str) -> Callable[..., None]:
    """Two answers at once, with something in between."""

    def run(**parts: Any) -> None:
        schedules(lambda schedule: race(schedule, (YES, other), meanwhile, **parts), switches=3)

    return run


BY_CLAIM = '"accepted" if step.claim == call else "duplicate"'
END_IN_SIGHT = 'return None, bool(events) and events[-1]["type"] in EXECUTION_ENDS'
OF_WAITING = "#status IN (:pending, :late) AND"

PLANTED: list[tuple[ModuleType, str, str, Callable[..., None]]] = [
    (resolver, BY_CLAIM, '"accepted"', some_order),
    (resolver, BY_CLAIM, '"duplicate"', races(YES, "nothing")),
    (resolver, 'if delivery == "sent" else self._what_arrived(step, answer)', "", some_order),
    (resolver, "else self._what_arrived(step, answer)", "else None", some_order),
    (resolver, "if arrived is None and not over:", "if False:", some_order),
    (resolver, "if arrived is None and not over:", "if arrived is None:", some_order),
    (resolver, "step = changed or self._steps.get(step_id)", "return 'accepted'", some_order),
    (resolver, 'event.get("previousEventId") not in linked:', "not linked:", some_order),
    (resolver, END_IN_SIGHT, "return None, True", some_order),
    (resolver, END_IN_SIGHT, "return None, False", some_order),
    (resolver, 'if event["type"] not in _OF_A_TRY:', "if False:", some_order),
    (resolver, "or submitted or arrived == sent", "", some_order),
    (
        resolver,
        "or submitted or arrived == sent",
        "or True",
        in_order("record only", "crash", known=False),
    ),
    (
        resolver,
        "or (submitted and scheduled is None)",
        "or submitted",
        in_order("time out", "retry", "crash"),
    ),
    (awaiting, '"#status = :pending AND', '"#status IN (:pending, :answering) AND', races(NO, "nothing")),
    (
        awaiting,
        "(:pending, :answering) AND taskToken = :taskToken",
        "(:pending, :answering)",
        races(YES, "a time-out, and entering again"),
    ),
    (
        awaiting,
        '"SET #status = :status, answer = :answer, answeredAt',
        '"SET #status = :status, answeredAt',
        some_order,
    ),
    (awaiting, "retryCount < :retryCount", "retryCount >= :retryCount", some_order),
    (
        awaiting,
        f"{OF_WAITING} {{_NEWER}}",
        OF_WAITING.removesuffix(" AND"),
        in_order("time out", "retry", "record", "slow record"),
    ),
    (awaiting, OF_WAITING, "#status = :pending AND", some_order),
    (
        awaiting,
        '"#status = :answering AND {_NEWER}"',
        '"#status = :answering AND #status = :late"',
        some_order,
    ),
]


@pytest.mark.parametrize(("module", "right", "wrong", "catcher"), PLANTED)
def test_a_planted_fault_is_caught(module: ModuleType, right: str, wrong: str, catcher: Callable[..., None]):
    """The orders and interleavings above notice each of these changes."""
    source = Path(str(module.__file__)).read_text()
    assert 1 == source.count(right)
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(source.replace(right, wrong), "spoiled", "exec"), names)  # noqa: S102 - our own text
    parts = {"kind": names["Callbacks"]} if module is resolver else {"records": names["AwaitingSteps"]}

    with pytest.raises((AssertionError, SteponceError)):
        catcher(**parts)
