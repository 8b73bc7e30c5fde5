"""The parts of a definition that paths lead through. `estimate` has checked the fields before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steponce.cost.errors import CannotPrice

Machine = dict[str, Any]
State = dict[str, Any]


def states_of(machine: Machine) -> tuple[Mapping[str, State], str]:
    """
    The states of a machine, and the one that it starts with.

    Raises:
        CannotPrice: StartAt, or the way on from a state, names a state that does not exist.
    """
    states, start = machine["States"], machine.get("StartAt")
    if not isinstance(start, str) or start not in states:
        raise CannotPrice(f"StartAt must name one of the states, and is {start!r}.")
    for name, state in states.items():
        for target in [*ways_on(state), *ways_of_catch(state)]:
            if target not in states:
                hint = " Give the template that fills the placeholder in." if "${" in target else ""
                raise CannotPrice(
                    f"{name!r} leads to {target!r}, but there is no such state at its level.{hint}"
                )
    return states, start


def ways_on(state: State) -> list[str]:
    """Where a state leads that does not fail."""
    ways = [*(rule["Next"] for rule in state.get("Choices", [])), state.get("Default"), state.get("Next")]
    return list(dict.fromkeys(str(way) for way in ways if way is not None))


def ways_of_catch(state: State) -> list[str]:
    """Where a state leads that fails."""
    return list(dict.fromkeys(catcher["Next"] for catcher in state.get("Catch", [])))


def ends(state: State) -> bool:
    """Whether a state ends the machine without a failure."""
    return state.get("End") is True or state.get("Type") == "Succeed"


def branches_of(state: State) -> list[Machine]:
    """The machines in the branches of a Parallel."""
    return list(state["Branches"])


def processor_of(state: State) -> Machine:
    """The machine that a Map runs for each item."""
    processor: Machine = state.get("ItemProcessor") or state["Iterator"]
    return processor
