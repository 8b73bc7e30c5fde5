"""`steponce up`: runs a stack in the foreground, and stores its facts for the other commands."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Group, RenderableType
from rich.text import Text

from steponce.cli.output import DONE, fields, for_people, say
from steponce.cli.target import HOME, Unreachable, home, needs_local, not_serving
from steponce.program import program
from steponce.scaffold import sources

_SAMPLE = '{"orderId": "1", "amount": 500, "card": "tok_visa"}'
_ROOM = 8192
"""Bytes that facts may take. Those of the sample take half."""


def serve(template: str, parameters: Mapping[str, str]) -> int:
    """
    Run the stack until SIGINT, SIGTERM or SIGHUP.

    Raises:
        Unreachable: the stack does not start, or ends unexpectedly.
        click.UsageError: the template or a parameter is wrong, a stack runs here already, or its facts
            cannot be stored here.
    """
    try:
        from steponce.local import LocalStack, LocalStackError, TemplateError, remove_facts, write_facts
    except ModuleNotFoundError as error:
        raise Unreachable(needs_local(error)) from None
    _refuse_second({})
    if for_people() and Path(template) == sources.sample():
        sys.stderr.write(f"There is no template.yaml here, so this is the sample's: {template}\n\n")
    with _until_interrupted():
        try:
            read = LocalStack.from_template(template, parameters=parameters)
            sys.stderr.write("".join(f"{sentence}\n" for sentence in read.plan.left_out))
            _expect_writable(home())
            with read as stack:
                _refuse_second(stack.endpoints)  # it may have started meanwhile
                facts = stack.facts()
                with _storing(home() / "stack.json"):
                    write_facts(facts, home())
                try:
                    say(facts, _welcome(facts))
                    if for_people():  # not through the table, which would break or cut long lines
                        sys.stdout.write("".join(f"  {command}\n" for command in _to_try(template)))
                    _watch(stack.endpoints)
                finally:
                    remove_facts(facts, home())
        except TemplateError as error:
            raise click.UsageError(str(error)) from None
        except LocalStackError as error:
            raise Unreachable(str(error)) from None
    if for_people():
        sys.stderr.write("\nThe stack is gone, with everything in it.\n")
    return DONE


def _refuse_second(own: Mapping[str, str]) -> None:
    """
    Refuse to replace the facts of a stack that runs, and has other endpoints than our own; and a file that is
    no stack's.
    """
    from steponce.local import LocalStackError, read_facts
    from steponce.local.errors import FactsUnreadable

    try:
        facts = read_facts(home())
        runs = facts["endpoints"] != own and not_serving(facts["endpoints"]) is None
    except FactsUnreadable as error:
        raise click.UsageError(str(error)) from None
    except LocalStackError:
        return
    if runs:
        raise click.UsageError(
            f"A stack runs here already (process {facts['pid']}). Use it, end it with Ctrl-C, or give this "
            f"one a folder of its own: {HOME}=elsewhere {program()} up"
        )


def _expect_writable(folder: Path) -> None:
    """Make the folder of the facts, and a file in it that is gone at once: the start takes a while."""
    with _storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM))
            file.flush()


@contextmanager
def _storing(place: Path) -> Iterator[None]:
    """Run a block that stores facts in a folder or a file, and say what is in its way."""
    try:
        yield
    except OSError as error:
        raise click.UsageError(
            f"The facts of the stack cannot be stored in {place}: {error.strerror}. Name another folder: "
            f"{HOME}=elsewhere {program()} up"
        ) from None


@contextmanager
def _until_interrupted() -> Iterator[None]:
    """End the block in good order after the first signal, and ignore further ones."""
    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        ends.append(signal.SIGHUP)

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        for number in ends:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in ends}
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(endpoints: Mapping[str, str]) -> NoReturn:
    while not (silent := not_serving(endpoints)):
        time.sleep(2)
    raise Unreachable(
        f"The stack has ended by itself: there is no answer at {silent}. Start it again: {program()} up"
    )


def _welcome(facts: Mapping[str, Any]) -> RenderableType:
    return Group(
        Text(f"The stack {facts['name']} runs. Ctrl-C ends it.\n", "bold"),
        fields(facts["endpoints"]),
        Text(),
        fields(facts["outputs"]),
        Text("\nTry in another shell:", "bold"),
    )


def _to_try(template: str) -> list[str]:
    event = Path(template).parent / "events" / "start_order.json"
    file = shlex.quote(str(event)) if event.exists() else "-"
    before = "" if file != "-" else f"echo {shlex.quote(_SAMPLE)} | "
    where = f"{HOME}={shlex.quote(str(home()))} " if str(home()) != ".steponce" else ""
    typed = f"{where}{program()}"
    return [
        f"{before}{typed} start order-1 {file} --local --wait",
        f"{before}{typed} start order-1 {file} --local",
        f"{typed} show order-1 --local",
    ]
