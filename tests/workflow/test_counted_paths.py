"""
What `steponce cost` says of each path of each machine is what a run along it uses.

The embedded engine's interpreter runs the machines. Each task is answered by a script, so that every way is
taken, and the requests that would be sent are counted. test_cost.py counts on a whole stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest

from steponce.cost import Usage
from tests.counting import run_once, samples, shipped, wrapped
from tests.counting.comparing import Explore, all_paths, compare, untried_steps
from tests.counting.drives import Driven, Subject
from tests.rules.documents import ROOT

SUBJECTS = [*run_once.SUBJECTS, *shipped.SUBJECTS, *wrapped.SUBJECTS, *samples.SUBJECTS]
WHOLE = [one for one in SUBJECTS if not one.ends_like]
IN_STEPS = [one for one in SUBJECTS if one.ends_like or (one.usual and not one.is_small)]


def each_of(subjects: list[Subject], usual: Callable[[Subject], bool]) -> pytest.MarkDecorator:
    """A test for each; `make test` has only the usual ones."""
    params = [
        pytest.param(one, id=one.name, marks=() if usual(one) else pytest.mark.full) for one in subjects
    ]
    return pytest.mark.parametrize("subject", params)


@pytest.fixture(scope="module")
def engine() -> Iterator[Explore]:
    """Explores in a process of its own, since the engine's patches cannot be taken back."""
    from tests.counting.exploring import explore  # brings much with it that no other test wants

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield lambda *asked: pool.submit(explore, *asked).result()


@each_of(WHOLE, usual=lambda subject: subject.usual and subject.is_small)
def test_each_path_uses_what_is_counted_on_it(engine: Explore, subject: Subject):
    """Every path is taken, and no run takes another one."""
    compared = compare(subject, engine, is_thorough=True)

    assert [] == compared.wrong
    assert compared.driven
    assert subject.is_partial or [] == compared.missed


@each_of(IN_STEPS, usual=lambda subject: subject.usual)
def test_each_answer_leads_where_cost_says(engine: Explore, subject: Subject):
    """A large machine makes every step from a state to the next, on some of its paths."""
    compared = compare(subject, engine, is_thorough=False)

    assert [] == compared.wrong
    assert set() == untried_steps(compared)


def test_every_definition_of_the_repository_is_driven():
    """Those in files; tests/machines has the others."""
    folders = ("statemachines", "examples", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.asl.json")]
    names = [one.name for one in SUBJECTS]

    assert [] == [file for file in files if not any(file.name.partition(".")[0] in name for name in names)]


def test_what_is_wrong_is_found():
    """Another count, a path that cost does not know, and one that nothing takes."""
    subject = shipped.KEEP_CUSTOMER
    runs = [
        Driven(path.states, path.usage, path.fails, "Any" if path.fails else None)
        for path in all_paths(subject.drives[0])
    ]

    def found(*driven: Driven) -> list[str]:
        compared = compare(subject, lambda *_: [list(driven)], is_thorough=True)
        return [*compared.wrong, *compared.missed]

    first, *others = runs
    path = " > ".join(first.states)
    assert [] == found(*runs)
    assert [path] == found(*others)
    dearer = replace(first, usage=first.usage + Usage(writes=1))
    assert f"{path}: {dearer.usage}, and cost says {first.usage}" in found(dearer, *others)
    assert "cost does not know the path" in found(replace(first, states=first.states[:1]), *runs)[0]
