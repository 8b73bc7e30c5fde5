"""Rules for the order of states in a machine that takes locks."""

from __future__ import annotations

from collections.abc import Iterator

from steponce import workflow
from steponce.lint.asl import reachable
from steponce.lint.findings import Complaint, Complaints
from steponce.lint.machine import Handler, Machine, State
from steponce.lint.missing_reads import OF_LOCKS, missing_reads
from steponce.lint.protocol import (
    ACQUIRE_LOCK,
    BEFORE_EFFECT,
    COMPLETE_REQUEST,
    RELEASE_LOCK,
    SAFE,
    WORK,
    states_of_work,
)
from steponce.lint.repeating import why_not_repeatable
from steponce.lint.rule import Rules

RUN_ONCE_FLOW = Rules("run-once")


@RUN_ONCE_FLOW.rule("complete-without-catch", "error")
def complete_without_catch(machine: Machine) -> Complaints:
    """
    `CompleteRequest` has a Catch.

    The work is done when the state is entered. A lost write must not look like a failed request: the monitor
    reads the result from the execution's history. Remove the Catch.
    """
    state = machine.states.get(COMPLETE_REQUEST)
    if state is not None and "Catch" in state.body:
        yield Complaint(
            COMPLETE_REQUEST, "the work is done there, so nothing may be caught. Remove its Catch."
        )


@RUN_ONCE_FLOW.rule("work-retry", "error")
def work_retry(machine: Machine) -> Complaints:
    """
    `DoWork` is retried after an error that does not prove that the work has not run, or gives up too early.

    After most errors the work may have taken effect: a second try would be a second charge. `RetryLater` and
    `Lambda.TooManyRequestsException` prove that a function has not run; both are retried, and both release
    the lock afterwards. A call that AWS makes only once, such as the start of an execution with a `Name`, may
    be retried. Work of several Tasks has no Retry at all, since that would repeat the Tasks that are done.

    If `DoWork` is a callback that only calls `record_awaiting_step`, give it the Retry of
    `AwaitConfirmation`, and in its Comment `lint: ignore work-retry, retry-repeats-work because a newer token
    replaces the recorded one`. Without that Retry, a lost answer of the function would end the request, and
    people's answers would come too late.
    """
    work = machine.states.get(WORK)
    if work is None:
        yield Complaint("", f"it takes a lock and has no state {WORK} for the work.")
        return
    retried = {error for retrier in work.retriers for error in retrier.errors if retrier.tries > 0}
    if work.call is None:
        for error in sorted(retried):
            yield Complaint(
                WORK, f"it is tried again after {error}, which would repeat what is done. Remove it."
            )
        return
    if why_not_repeatable(work):
        for error in sorted(retried - SAFE):
            text = f"it is tried again after {error}, which does not prove that the work has not run."
            yield Complaint(WORK, f"{text} Remove it from Retry.")
    if work.call.service == "lambda" and not work.call.pattern:
        released = {error for catcher in _releasing(machine, work) for error in catcher.errors}
        for error in sorted(SAFE - retried):
            yield Complaint(
                WORK, f"it gives up at {error}, which proves that nothing has happened. Retry it."
            )
        for error in sorted(SAFE - released):
            yield Complaint(WORK, f"it keeps the lock after {error}. Catch it and lead it to {RELEASE_LOCK}.")


@RUN_ONCE_FLOW.rule("release-after-effects", "error")
def release_after_effects(machine: Machine) -> Complaints:
    """
    The lock may be released although the work has taken effect.

    Another execution would do it again. Only a Catch of `DoWork` leads to `ReleaseLock`, for errors that
    prove that nothing has happened. If the work has several Tasks, an error of a later one proves nothing
    about those before: it must be caught inside, or `DoWork` must not release the lock after it. A Fail state
    inside the work that only such errors of the first Task reach may raise an error for it.
    """
    work = machine.states.get(WORK)
    if work is None:
        return
    if RELEASE_LOCK in reachable(machine.graph, *work.ways_on):
        yield Complaint(WORK, f"its success leads to {RELEASE_LOCK}. Only its Catch may.")
    released = {error for catcher in _releasing(machine, work) for error in catcher.errors}
    for error in sorted(released - SAFE - BEFORE_EFFECT - _markers(machine, work)):
        yield Complaint(
            WORK, f"it releases the lock after {error}, which does not prove that nothing has happened."
        )
    for state in _later_tasks(machine, work):
        caught = {error for catcher in state.catchers for error in catcher.errors}
        escaping = set() if {"States.ALL", "States.TaskFailed"} & caught else (released & SAFE) - caught
        if escaping:
            text = f"{', '.join(sorted(escaping))} there releases the lock, and a Task before it has run."
            yield Complaint(state.name, f"{text} Catch it, or let {WORK} lead it elsewhere.")


@RUN_ONCE_FLOW.rule("skipped-completion", "error")
def skipped_completion(machine: Machine) -> Complaints:
    """
    An execution can take the lock and succeed without `CompleteRequest`.

    The lock stays in progress and has no result, so every duplicate waits in vain. Lead to `CompleteRequest`,
    or to a state that records the error.
    """
    graph = {name: ways if name != COMPLETE_REQUEST else [] for name, ways in machine.graph.items()}
    acquire, work = machine.states.get(ACQUIRE_LOCK), machine.states.get(WORK)
    starts = [*(acquire.ways_on if acquire else ()), *([WORK] if work else ())]
    for name in sorted(reachable(graph, *starts) - {COMPLETE_REQUEST}):
        if name in machine.states and machine.states[name].ends:
            yield Complaint(name, f"it ends the execution without {COMPLETE_REQUEST}. Lead it there.")


@RUN_ONCE_FLOW.rule("before-work", "error")
def before_work(machine: Machine) -> Complaints:
    """
    A state that counts as being before the work comes after it, or is part of it.

    If an execution dies in such a state, the repair concludes that the work has not begun, and lets it run
    again.
    """
    work = machine.states.get(WORK)
    if work is None:
        return
    after = reachable(machine.graph, *work.ways)
    for name in sorted((workflow.BEFORE_WORK - {RELEASE_LOCK} | workflow.TAKING_OVER | {WORK}) & after):
        yield Complaint(name, f"it counts as before the work, but can be reached from {WORK}.")
    function = work.arguments.get("FunctionName")
    for name, state in machine.states.items():
        known = name in workflow.BEFORE_WORK | workflow.TAKING_OVER
        if known and function is not None and state.arguments.get("FunctionName") == function:
            yield Complaint(name, f"it calls the function of {WORK}, and counts as before the work.")


@RUN_ONCE_FLOW.rule("data-limit-caught", "error")
def data_limit_caught(machine: Machine) -> Complaints:
    """
    A Catch of `States.ALL` has no catcher for `States.DataLimitExceeded` before it.

    `States.DataLimitExceeded` "is a terminal error that can't be caught by the `States.ALL` error type", and
    it comes after the work is done, when the result is too large. The execution would end with the lock held
    and nothing recorded.
    """
    for state in machine.states.values():
        errors = {error for catcher in state.catchers for error in catcher.errors}
        if "States.ALL" in errors and "States.DataLimitExceeded" not in errors:
            text = "its States.ALL misses States.DataLimitExceeded. Name it in a catcher before."
            yield Complaint(state.name, text)


@RUN_ONCE_FLOW.rule("unproven-path", "error", reads_paths=True)
def unproven_path(machine: Machine) -> Complaints:
    """
    A state outside the work reads a path that may be missing.

    `States.Runtime` would end the execution with its lock held. The general rule `unguarded-path` accepts a
    path unless the definition shows that it may be missing. It also checks the states of the work. Around
    the work, every path must be proven: by `IsPresent`, by the answers of this package's functions, or by
    what an earlier state has written.
    """
    work = states_of_work(machine)
    for state, path in missing_reads(machine, frozenset(), OF_LOCKS):
        if state not in work:
            text = f"it reads {path}, which may be missing there. Test for it with IsPresent."
            yield Complaint(state, text)


def _releasing(machine: Machine, work: State) -> list[Handler]:
    """The catchers of the work that lead to the lock's release, directly or through a Pass or a Choice."""
    graph = {
        name: ways if machine.states[name].kind in ("Pass", "Choice") else []
        for name, ways in machine.graph.items()
    }
    return [catcher for catcher in work.catchers if RELEASE_LOCK in reachable(graph, catcher.target)]


def _markers(machine: Machine, work: State) -> set[str]:
    """Errors of Fail states inside the work that only errors reach which prove that nothing has happened."""
    found = set()
    for branch in machine.inside(work):
        for name, state in branch.states.items():
            leading = [
                catcher
                for one in branch.states.values()
                for catcher in one.catchers
                if catcher.target == name
            ]
            only_caught = (
                not any(name in one.ways_on for one in branch.states.values()) and branch.start != name
            )
            if state.kind == "Fail" and only_caught and all(set(one.errors) <= SAFE for one in leading):
                found.add(str(state.body.get("Error")))
    return found


def _later_tasks(machine: Machine, work: State) -> Iterator[State]:
    """Tasks inside the work before or beside which another one may have run."""
    branches = machine.inside(work)
    for branch in branches:
        acting = [state for state in branch.states.values() if _tasks(branch, state)]
        later = {name for state in acting for name in reachable(branch.graph, *state.ways)}
        for state in acting:
            tasks = _tasks(branch, state)
            several = len(branches) > 1 or len(tasks) > 1 or "Map" in (state.kind, work.kind)
            if state.name in later or several:
                yield from tasks


def _tasks(machine: Machine, state: State) -> list[State]:
    """The state, if it is a Task, or the Tasks inside it."""
    inner = [one for part in machine.inside(state) for one in part.all_states()]
    return [one for one in [state, *inner] if one.kind == "Task"]
