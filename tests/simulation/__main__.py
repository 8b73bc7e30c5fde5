"""Runs the schedules of many seeds or one story, and tells which of them broke a promise."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.callbacks.examine import examine as examine_callbacks
from tests.simulation.callbacks.planted import PLANTED as PLANTED_IN_CALLBACKS
from tests.simulation.examine import examine
from tests.simulation.planted import NOTHING, PLANTED


def main() -> int:
    """
    Print each broken promise with its seed. One seed alone and a story print what happened as well.

    Returns:
        The exit code: 0 if no promise was broken, or if a planted fault was found.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", default="0-99", help="one seed, or the first and the last (default: 0-99)")
    parser.add_argument("--when-outcome-unknown", default="hold", choices=("hold", "take-over"))
    parser.add_argument("--when-completed", default="replay", choices=("replay", "refuse"))
    parser.add_argument("--rate-limit", action="store_true", help="a user may run one request in ten minutes")
    parser.add_argument("--put-back", action="store_true", help="people put dead letters back")
    parser.add_argument(
        "--callbacks", action="store_true", help="requests that wait for answers from outside"
    )
    every = PLANTED | PLANTED_IN_CALLBACKS
    parser.add_argument(
        "--plant", choices=sorted(every), help="plant this fault; stop at the seed that finds it"
    )
    parser.add_argument(
        "--story",
        choices=sorted(every),
        metavar="FAULT",
        help="instead of seeds, run the story that finds this fault; --plant it as well to see how",
    )
    given = parser.parse_args()
    if given.callbacks and given.rate_limit:
        parser.error("The schedules of callbacks have no rate limit. Leave one of the two out.")
    planted = every.get(given.plant, NOTHING)
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    sources = [every[given.story].story] if given.story else seeds
    parameters = {
        "when_outcome_unknown": given.when_outcome_unknown,
        "when_completed": given.when_completed,
        "rate_limit": given.rate_limit,
        "puts_back": given.put_back,
    }
    waits = given.callbacks or not PLANTED_IN_CALLBACKS.keys().isdisjoint({given.plant, given.story})
    run = examine_callbacks if waits else examine
    found: Counter[str] = Counter()
    began, count = time.monotonic(), 0
    for source in sources:
        count += 1
        examined = run(source, planted, **parameters)
        if len(sources) == 1:
            print(*examined.trace, sep="\n")
        for complaint in examined.complaints:
            print(f"{'story' if given.story else f'seed {source}'}: {complaint}", flush=True)
            found[complaint.partition(":")[0]] += 1
        if given.plant and examined.complaints:
            break
    print(f"{count:,} schedules in {time.monotonic() - began:.0f} s: {dict(found) or 'no broken promise'}")
    return bool(found) != bool(given.plant)


if __name__ == "__main__":
    sys.exit(main())
