"""What changes in a machine whose states go into the workflow, and what must not."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from steponce.wrap import CannotWrap, decisions, source, wrap_around, wrap_inline
from steponce.wrap.refusals import expect_taken
from tests.machines import effect, fails_with, machine, passes
from tests.machines.inline import BESIDE, CLASH, CONTEXT, LATER, ORDER, SOON
from tests.rules.documents import template

THROTTLED = {"ErrorEquals": ["Lambda.TooManyRequestsException"], "MaxAttempts": 3}
USUAL_RETRY = {"ErrorEquals": ["Lambda.ServiceException", "Lambda.TooManyRequestsException"]}


def wrapped(definition: dict[str, Any], **options: Any) -> Any:
    """A definition, wrapped."""
    return wrap_inline(json.dumps(definition), **options)


def inside(definition: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Its states in the workflow."""
    found: dict[str, Any] = wrapped(definition, **options).definition["States"]["DoWork"]["Branches"][0][
        "States"
    ]
    return found


def test_the_payload_is_the_input_and_the_output_is_the_result():
    """The branch gets nothing else, and its output stands alone in an array."""
    work = wrapped(ORDER.definition).definition["States"]["DoWork"]
    assert ("$.payload", {"result.$": "$[0]"}, "$.work") == (
        work["InputPath"],
        work["ResultSelector"],
        work["ResultPath"],
    )


def test_work_of_several_states_is_never_tried_again():
    """A second try would repeat the effects of the first states."""
    assert "Retry" not in wrapped(ORDER.definition).definition["States"]["DoWork"]


def test_the_machine_s_time_out_is_the_workflow_s():
    """With a margin for the workflow's own states; a Parallel has none. A machine without has 30 days."""
    assert 3600 + 900 == wrapped(ORDER.definition).definition["TimeoutSeconds"]
    assert (
        31_536_000 == wrapped({**ORDER.definition, "TimeoutSeconds": 31_536_000}).definition["TimeoutSeconds"]
    )
    assert 2_592_000 == wrapped(CLASH.definition).definition["TimeoutSeconds"]


def test_references_to_the_input_lead_to_the_payload():
    """In paths, templates, functions and Choices, and not in what is text."""
    first, even = (inside(CONTEXT.definition)[name] for name in ("First", "IsEven"))
    assert {
        "whole.$": "$$.Execution.Input.payload",
        "amount.$": "$$.Execution.Input.payload.amount",
        "text.$": "States.Format('$$.Execution.Input is {}', $$.Execution.Input.payload['amount'])",
        "state.$": "$$.State.Name",
        "literal": "$$.Execution.Input",
    } == first["Parameters"]
    assert [
        {"Variable": "$$.Execution.Input.payload.amount", "NumericGreaterThan": 0},
        {"Variable": "$$.Execution.Input.payload.amount", "NumericEqualsPath": "$.amount"},
    ] == even["Choices"][0]["And"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("$$.Execution.Input[0].id", "$$.Execution.Input.payload[0].id"),
        ("$$['Execution']['Input']['an id']", "$$.Execution.Input.payload['an id']"),
        ("$$['Execution'].Input.3ds-result", "$$.Execution.Input.payload.3ds-result"),
        ("$$.Execution.Input['20'].2nd-item", "$$.Execution.Input.payload['20'].2nd-item"),
        ("$$.Execution.Input..id", "$$.Execution.Input.payload..id"),
        ("$$.Execution.Name", "$$.Execution.Name"),
        ("$$.Task.Token", "$$.Task.Token"),
    ],
)
def test_each_way_to_write_a_reference_is_known(before: str, after: str):
    """Steps by a name in brackets, an index, and from anywhere below."""
    states = inside(machine({"Read": {"Type": "Pass", "Parameters": {"x.$": before}, "End": True}}))
    assert after == states["Read"]["Parameters"]["x.$"]


def test_text_in_a_result_or_a_literal_field_stays():
    """It is no reference, whatever its name."""
    result = {"x.$": "$$.Execution.Input", "InputPath": "$$.Execution.Input"}
    states = machine({"Say": passes(result, Next="Do"), "Do": effect("do")})
    states["States"]["Do"]["Parameters"]["FilePath"] = "$$.Execution.Input"
    found = inside(states)
    assert result == found["Say"]["Result"]
    assert "$$.Execution.Input" == found["Do"]["Parameters"]["FilePath"]


@pytest.mark.parametrize("reference", ["$$", "$$.Execution", "$$..Input", "$$[0]", "$$.Execution..Input"])
def test_a_reference_to_the_whole_execution_is_refused(reference: str):
    """Its Input is another one inside of the workflow."""
    with pytest.raises(CannotWrap, match=r"Read: it reads .* as a whole"):
        inside(machine({"Read": {"Type": "Pass", "Parameters": {"x.$": reference}, "End": True}}))


def test_a_state_whose_name_is_taken_has_another_and_says_its_old_one():
    """Wherever the machine leads to it or speaks of it."""
    result = wrapped(CLASH.definition)
    found = inside(CLASH.definition)
    names = ["AcquireLock", "CompleteRequest", "DoWork", "NothingHappened", "ReleaseLock", "SayRetryLater"]
    names.remove("SayRetryLater")  # the workflow has it only where a state may release the lock
    assert {name: f"Work{name}" for name in names} == result.renamed
    assert "WorkDoWork" == found["WorkAcquireLock"]["Next"]
    assert "WorkReleaseLock" == found["WorkDoWork"]["Branches"][0]["StartAt"]
    assert "States.Format('CompleteRequest')" == found["WorkCompleteRequest"]["Parameters"]["name.$"]
    assert (
        "States.Format('{}', States.Format('CompleteRequest'))"
        == found["WorkCompleteRequest"]["Parameters"]["said.$"]
    )


def test_a_name_is_never_taken_twice():
    """The machine may have the other name, too."""
    states = {"AcquireLock": passes(Next="WorkAcquireLock"), "WorkAcquireLock": passes()}
    assert {"AcquireLock": "WorkWorkAcquireLock"} == wrapped(machine(states)).renamed


def test_a_placeholder_may_stand_for_a_number():
    """SAM replaces it before anything reads the JSON."""
    each = {"Type": "Map", "MaxConcurrency": 7, "ItemProcessor": machine({"Do": passes()}), "End": True}
    limited = machine({"Each": each})
    text = json.dumps(limited).replace('"MaxConcurrency": 7', '"MaxConcurrency": ${Most}')
    assert '"MaxConcurrency": ${Most}' in source.write(wrap_inline(text).definition)
    timed = json.dumps({**BESIDE.definition, "TimeoutSeconds": 1}).replace('": 1}', '": ${Seconds}}')
    assert '"TimeoutSeconds": ${Seconds}' in source.write(wrap_inline(timed).definition)


def test_a_placeholder_may_have_any_name():
    """AWS asks for no alphabet."""
    pay = {"Type": "Task", "Resource": "${fn-arn}", "End": True}
    text = json.dumps({**machine({"Pay": pay}), "TimeoutSeconds": 1}).replace('": 1}', '": ${time.out}}')

    result = wrap_inline(text)

    assert {"fn-arn", "time.out"} <= source.placeholders(source.write(result.definition))


def test_a_placeholder_that_both_have_keeps_its_meaning_for_the_machine():
    """The workflow's has another name, which its template gives a value."""
    result = wrapped(ORDER.definition)
    text = source.write(result.definition)
    assert "SteponcePartition" == result.substitutions["Partition"]
    assert "arn:${Partition}:states:::dynamodb:updateItem" in text
    assert "arn:${SteponcePartition}:states:::lambda:invoke" in text
    assert source.placeholders(text) == {*result.substitutions.values(), "Partition", "EffectsTable"}


def test_a_placeholder_gets_as_many_prefixes_as_it_takes():
    """The machine may have the name with the first one, too."""
    definition = copy.deepcopy(ORDER.definition)
    first = definition["States"][definition["StartAt"]]
    first["Comment"] = "${LocksTable} ${SteponceLocksTable}"
    for result in (wrapped(definition), wrap_around(json.dumps(definition))):
        text = source.write(result.definition)
        assert "SteponceSteponceLocksTable" == result.substitutions["LocksTable"]
        assert '"TableName": "${SteponceSteponceLocksTable}"' in text
        assert '"TableName": "${SteponceLocksTable}"' not in text


@pytest.mark.parametrize("text", ["nonsense", "[]", "StartAt: Hello"])
def test_what_is_no_definition_is_refused(text: str):
    """With what to do."""
    with pytest.raises(CannotWrap, match="is not"):
        wrap_inline(text)


def test_a_key_that_stands_twice_is_refused():
    """Only its last value would be in the wrapped definition, and the other one was lost."""
    text = json.dumps(machine({"Done": {"Type": "Succeed"}}))
    twice = text.replace('"Done": {', '"Done": {"Type": "Fail"}, "Done": {', 1)
    with pytest.raises(CannotWrap, match="The key 'Done' stands twice"):
        wrap_inline(twice)


def test_a_lone_surrogate_is_refused():
    """JSON can escape it, but no file can hold it."""
    with pytest.raises(CannotWrap, match=r"a lone surrogate, '\\ud800'"):
        wrapped(machine({"Done": {"Type": "Succeed", "Comment": "\ud800"}}))


def test_what_is_nested_too_deeply_is_refused():
    """Python would run out of stack."""
    with pytest.raises(CannotWrap, match="more than 200 levels"):
        wrap_inline("[" * 100_000)
    with pytest.raises(CannotWrap, match="more than 200 levels"):
        wrap_inline('{"States":' + "[" * 200 + "]" * 200 + "}")


def test_what_has_too_many_values_is_refused():
    """The message names this limit, and not another one."""
    with pytest.raises(CannotWrap, match="more than 1,000,000 values"):
        wrap_inline(f"[{'0,' * 1_000_000}0]")


def test_parameters_that_are_a_list_stay():
    """Only a state that starts an execution needs an object there."""
    assert [1] == inside(machine({"Make": passes(Parameters=[1])}))["Make"]["Parameters"]


def catchers(definition: dict[str, Any], **options: Any) -> dict[str, str]:
    """Where each error of the work leads."""
    work = wrapped(definition, **options).definition["States"]["DoWork"]
    return {error: catcher["Next"] for catcher in work["Catch"] for error in catcher["ErrorEquals"]}


def test_retry_later_of_the_first_state_releases_the_lock():
    """No effect can have happened before."""
    result = wrapped(SOON.definition)
    assert ["First"] == result.may_retry_later
    happened = inside(SOON.definition)["NothingHappened"]["Error"]
    assert {
        happened: "SayRetryLater",
        "RetryLater": "RefuseRetryLater",
        "Lambda.TooManyRequestsException": "RefuseRetryLater",
        "${FinalErrors}": "RecordFinalError",
        "States.DataLimitExceeded": "RecordError",
        "States.ALL": "RecordError",
    } == catchers(SOON.definition)
    assert "ReleaseLock" == result.definition["States"]["SayRetryLater"]["Next"]
    assert "NothingHappened" == inside(SOON.definition)["First"]["Catch"][0]["Next"]


def test_retry_later_of_a_later_state_releases_nothing():
    """The workflow has no state that releases a lock."""
    result = wrapped(LATER.definition)
    assert [] == result.may_retry_later
    assert "SayRetryLater" not in catchers(LATER.definition).values()
    assert {"ReleaseLock", "SayRetryLater"}.isdisjoint(result.definition["States"])
    assert "RecordError" == result.definition["States"]["RefuseRetryLater"]["Next"]


def test_a_state_that_the_user_names_may_release_it():
    """Who knows that the states before it only read."""
    assert ["Third"] == wrapped(LATER.definition, may_retry_later=["Third", "Third"]).may_retry_later
    assert [] == wrapped(SOON.definition, may_retry_later=[]).may_retry_later


FIRST = {
    "a loop": {"Do": fails_with("x", Next="Do")},
    "a try before": {"Do": fails_with("x", Retry=[THROTTLED, USUAL_RETRY])},
    "its own Catch": {
        "Do": fails_with("x", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Fix"}]),
        "Fix": passes(),
    },
    "no function": {"Do": effect("do")},
    "an activity": {
        "Do": {
            "Type": "Task",
            "Resource": "arn:aws:states:us-east-1:123456789012:activity:do",
            "End": True,
        }
    },
    "an answer from outside": {
        "Do": {**fails_with("x"), "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken"}
    },
    "nobody": {"Other": passes()},
}


@pytest.mark.parametrize("states", FIRST.values(), ids=FIRST)
def test_a_state_that_may_have_had_an_effect_before_cannot_release_it(states: dict[str, Any]):
    """Not by default, and not if the user names it."""
    definition = machine(states)
    assert [] == wrapped(definition).may_retry_later
    with pytest.raises(CannotWrap, match=r"^Do: "):
        wrapped(definition, may_retry_later=["Do"])


def test_a_try_that_did_not_run_is_none():
    """Throttled, or never repeated."""
    safe = [THROTTLED, {"ErrorEquals": ["States.ALL"], "MaxAttempts": 0}]
    assert ["Do"] == wrapped(machine({"Do": fails_with("x", Retry=safe)})).may_retry_later


def test_the_error_by_which_locks_are_released_is_the_workflow_s_alone():
    """A machine that raises it would release the lock from anywhere."""
    raising = machine(
        {"Do": effect("do", Next="Bad"), "Bad": {"Type": "Fail", "Error": "Steponce.NothingHappened"}}
    )
    with pytest.raises(CannotWrap, match="by which the workflow releases locks"):
        wrapped(raising)


def test_what_a_machine_reads_cannot_be_that_error():
    """A Fail state may take its error from the payload, and a callback may bring any: no other name fits."""
    release = {}
    for field in ("error", "reason"):
        stop = {"Type": "Fail", "ErrorPath": f"$.{field}"}
        definition = machine({"Do": fails_with("x", Next="Stop", ResultPath=None), "Stop": stop})
        (name,) = (name for name, to in catchers(definition).items() if to == "SayRetryLater")
        release[name] = definition
        assert name.startswith("Steponce.NothingHappened.")
        assert name not in json.dumps(definition)
    assert 2 == len(release)


@pytest.mark.parametrize(
    "reading",
    [
        {"Type": "Pass", "InputPath": "$$.State.Name", "Next": "Fix"},
        {
            "Type": "Choice",
            "Choices": [{"Variable": "$$.State.Name", "StringEquals": "AcquireLock", "Next": "Fix"}],
            "Default": "Fix",
        },
    ],
    ids=["path", "choice"],
)
def test_a_state_that_gets_another_name_cannot_read_its_own_by_a_path(reading: dict[str, Any]):
    """A path takes no call of a function, which would give it the name that it had."""
    with pytest.raises(CannotWrap, match=r"refused by AWS: WorkAcquireLock: .* Wrap it with --around"):
        wrapped(machine({"AcquireLock": reading, "Fix": passes()}))
    assert wrapped(machine({"Other": reading, "Fix": passes()})).renamed == {}


def test_a_state_that_hands_out_its_token_releases_no_lock():
    """Whoever has it may have had an effect, and then answer RetryLater. A placeholder hides the ARN."""
    for token in ("$$.Task.Token", "$$.Task", "$$['Task']['Token']"):
        state = {**fails_with("x"), "Resource": "${Send}", "Parameters": {"MessageBody": {"t.$": token}}}
        assert [] == wrapped(machine({"Do": state})).may_retry_later
    other = {**fails_with("x"), "Resource": "${Do}", "Parameters": {"t.$": "$.Tasks", "u.$": "$$.State.Name"}}
    assert ["Do"] == wrapped(machine({"Do": other})).may_retry_later


def test_a_text_that_is_known_later_is_no_reason_to_refuse_a_machine():
    """A date, a path or a part of an ARN may be a placeholder."""
    waits = {"Type": "Wait", "Timestamp": "${When}", "Next": "Do"}
    does = {**fails_with("x"), "Resource": "${Function}:live", "ResultPath": "${Where}"}
    definition = machine({"At": waits, "Do": does})
    expect_taken("it", json.dumps(definition))
    assert {"At", "Do"} == inside(definition).keys() - {"NothingHappened"}


def test_an_activity_behind_a_placeholder_is_told_from_a_function():
    """As far as somebody says which it is; a definition alone does not."""
    definition = machine({"Do": {**fails_with("x"), "Resource": "${Worker}"}})
    assert ["Do"] == wrapped(definition, activities=["Other"]).may_retry_later
    assert [] == wrapped(definition, activities=["Worker"]).may_retry_later
    with pytest.raises(CannotWrap, match=r"^Do: only a Task that calls a function"):
        wrapped(definition, may_retry_later=["Do"], activities=["Worker"])
    assert "Do must call a function, and not an activity" in " ".join(wrapped(definition).decisions)


def test_the_decisions_name_what_the_machine_has():
    """Its errors, its time-out, and the states that read the execution's name."""
    reading = effect("read", Next="Say")
    reading["Parameters"]["Name.$"] = "$$.Execution.Name"
    stop = {"Type": "Fail", "Error": "OutOfStock"}
    said = " ".join(wrapped(machine({"Read": reading, "Say": stop}, TimeoutSeconds=60)).decisions)
    assert "The machine's Fail states have OutOfStock" in said
    assert "The machine's TimeoutSeconds 60 is now the workflow's" in said
    assert "Read read $$.Execution.Name" in said


@pytest.mark.parametrize("wrap", [wrap_inline, wrap_around])
def test_the_decisions_say_that_nothing_of_before_is_on_record(wrap: Any):
    """The names of the old executions protect no request any more."""
    said = " ".join(wrap(json.dumps(machine({"Say": passes()}))).decisions)
    assert "There are no records of what ran before the first wrap." in said


@pytest.mark.parametrize(("given", "more"), [(60, 900), (31_536_000, 0), (31_535_000, 900), ("${T}", 0)])
def test_the_decisions_name_the_margin_of_the_workflow_s_own_states(given: Any, more: int):
    """Nothing can be added to a placeholder, or to a whole year."""
    definition = json.dumps(machine({"Say": passes()}, TimeoutSeconds=given)).replace('"${T}"', "${T}")
    said = " ".join(wrap_inline(definition).decisions)
    assert f"with {more} seconds more" in said
    assert (more == 0) == ("Nothing could be added" in said)


def test_the_decisions_name_the_time_that_a_long_machine_has_now():
    """Without a time-out, AWS gave it a year; and an answer must be kept longer than its request takes."""
    bare, longer = {"Say": passes()}, decisions.RETENTION_SECONDS
    assert str(longer) == template()["Parameters"]["RetentionSeconds"]["Default"]
    said = {
        name: " ".join(made.decisions)
        for name, made in {
            "none": wrapped(machine(bare)),
            "short": wrapped(machine(bare, TimeoutSeconds=60)),
            "long": wrapped(machine(bare, TimeoutSeconds=longer)),
            "long, around": wrap_around(json.dumps(machine(bare, TimeoutSeconds=longer))),
            "short, around": wrap_around(json.dumps(machine(bare, TimeoutSeconds=60))),
        }.items()
    }
    assert ["none"] == [name for name, text in said.items() if "the workflow's is 2592000." in text]
    assert ["long", "long, around"] == [name for name, text in said.items() if "RetentionSeconds" in text]
