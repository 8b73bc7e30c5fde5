"""`make run`: the main job on the embedded stack."""

from __future__ import annotations

import sys
import time

from steponce.local import LocalStack
from steponce.local.tour import CHAPTERS, PARAMETERS, Tour, console
from steponce.program import program


def main() -> int:
    """Start the stack, go through the chapters, and answer 0 if all of it happened as told."""
    console.print(
        "[bold]steponce[/bold]: a request runs at most once, and everyone who asks gets the same answer."
    )
    begin = time.monotonic()
    with LocalStack.from_template("template.yaml", parameters=PARAMETERS) as stack:
        console.print(
            f"The stack of template.yaml is up after {time.monotonic() - begin:.1f} s, on 127.0.0.1 only."
        )
        if "ChargesTable" not in stack.outputs:
            console.print(
                f"This tells the story of the sample, charge_card. Run your own work with: {program()} up"
            )
            return 2
        tour = Tour(stack)
        for chapter in CHAPTERS:
            chapter(tour)
    if tour.wrong:
        console.print(f"\n[red]{tour.wrong} of these did not happen as told.[/red]")
        return 1
    console.print(
        "\nAll of it happened as told. Now run it yourself:\n"
        f"  {program()} up\n"
        "and in another shell\n"
        f"  {program()} start order-1 events/start_order.json --local --wait\n"
        f"  {program()} show order-1 --local"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
