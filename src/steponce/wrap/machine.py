"""What wrapping asks about states: which lead where, which have effects, what they catch."""

from __future__ import annotations

from steponce.lint.asl import Machine, State, own_states, transitions


def edges(machine: Machine) -> dict[str, list[str]]:
    """The states that each state of a machine leads to. Inner machines have graphs of their own."""
    return {name: [part[key] for part, key in transitions(state)] for name, state in own_states(machine)}


def is_action(state: State) -> bool:
    """Whether a state may have an effect: a Task, or what may hold one."""
    return state["Type"] in ("Task", "Parallel", "Map")


def catches(state: State, error: str) -> bool:
    """Whether a Catch of the state takes this error of its task."""
    names = {name for catcher in state.get("Catch", []) for name in catcher["ErrorEquals"]}
    return not names.isdisjoint({error, "States.ALL", "States.TaskFailed"})
