"""`steponce callback`: answers a step that waits for an answer from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Group

from steponce.callbacks.answer import Answer, Verdict
from steponce.cli.awaiting import framed
from steponce.cli.machines import Machines
from steponce.cli.output import CONFLICT, DONE, FAILED, ask_which, plain, say, to_copy
from steponce.cli.payload import read_json, read_object
from steponce.cli.resolve import resolve
from steponce.cli.target import Target, output_of, where_to_which
from steponce.cli.which_step import id_argument, which_step
from steponce.errors import InvalidAnswer, InvalidPayload
from steponce.next_step import NextStep

VERDICTS = """\b
Verdicts and exit codes:
    accepted   0  the workflow got this answer, by this command
    duplicate  0  the workflow got the same answer before
    conflict   3  the workflow got another answer before
    late       1  the step does not wait any more
    unknown    1  there is no such step
  2 is wrong usage or a malformed answer, 4 unreachable; the same
  command is always safe to try again.
"""
_CODES: Mapping[Verdict, int] = {
    "accepted": DONE,
    "duplicate": DONE,
    "conflict": CONFLICT,
    "late": FAILED,
    "unknown": FAILED,
}
_MEANINGS: Mapping[Verdict, str] = {
    "accepted": "The workflow has it.",
    "duplicate": "The workflow got the same answer before. There is nothing more to do.",
    "conflict": "The workflow got another answer before, which stands.",
    "late": "The step does not wait any more. Nothing was changed.",
    "unknown": "There is no such step, or its record has expired.",
}
_NEXT: Mapping[Verdict, tuple[NextStep, ...]] = {"unknown": (NextStep("list steps"),)}
_FAILURE = 'Expected is one JSON object, like {"error": "Declined", "cause": "The bank says no."}.'


@click.group(invoke_without_command=True, epilog=VERDICTS)
@click.pass_context
def callback(context: click.Context) -> None:
    """
    Answer a step that waits. The first answer counts, and each gets one verdict.

    ID is the awaiting step's, or that of its request, which stands for the step of its newest attempt. If
    that one has had several steps, or an earlier attempt was answered, name the step.
    """
    ask_which(context)


@callback.command(epilog=VERDICTS)
@id_argument
@click.argument("file", required=False)
@where_to_which
def succeed(given: str, file: str | None, target: Target) -> int:
    """
    Let the step succeed.

    FILE holds its output, any JSON; - reads it from standard input. Without FILE the output is null.
    """
    output = None
    if file is not None:
        with _of_an_answer():
            output = read_json(file, "Expected is one JSON value.")
    return _answer(target, given, {"outcome": "success", "output": output})


@callback.command(epilog=VERDICTS)
@id_argument
@click.argument("file", required=False)
@click.option("--error", metavar="NAME", help="The error's name, which the workflow can catch.")
@click.option("--cause", metavar="TEXT", help="What happened, for people.")
@where_to_which
def fail(given: str, file: str | None, error: str | None, cause: str | None, target: Target) -> int:
    """
    Let the step fail.

    FILE holds {"error": ..., "cause": ...}, each of which may be absent; - reads it from standard input.
    """
    failure: dict[str, Any] = {
        name: text for name, text in (("error", error), ("cause", cause)) if text is not None
    }
    if file is not None:
        if failure:
            raise click.UsageError("FILE says what --error and --cause say. Give one or the other.")
        with _of_an_answer():
            failure = read_object(file, _FAILURE)
        if failure.get("outcome", "failure") != "failure":
            raise InvalidAnswer(f"The outcome in {file} is not failure, but the command says fail.")
    return _answer(target, given, failure | {"outcome": "failure"})


@callback.command(epilog=VERDICTS)
@id_argument
@where_to_which
def heartbeat(given: str, target: Target) -> int:
    """Send a heartbeat: the answer will still come, and the step's heartbeat time starts again."""
    return _answer(target, given, {"outcome": "heartbeat"})


@contextmanager
def _of_an_answer() -> Iterator[None]:
    """Report an unreadable file as a malformed answer."""
    try:
        yield
    except InvalidPayload as error:
        raise InvalidAnswer(str(error)) from None


def _answer(target: Target, given: str, answer: Mapping[str, Any]) -> int:
    Answer.parse(answer)  # checked before any call
    machines = Machines.reach(target)
    stack = machines.stack
    step_id = which_step(machines, given)
    function = output_of(stack, "ResolveAwaitingStepFunction")
    verdict = resolve(stack.boto3("lambda"), function, step_id, answer)
    what_next = machines.commands(_NEXT.get(verdict, ()))
    say(
        {"awaitingStepId": step_id, "outcome": answer["outcome"], "verdict": verdict},
        Group(framed(step_id, verdict, plain(_MEANINGS[verdict])), *to_copy(what_next)),
    )
    return _CODES[verdict]
