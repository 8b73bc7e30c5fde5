"""Reports an error: a line and the next commands for people, an object for a pipe, and the exit code."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from steponce.aws.errors import error_code, was_sent_before, words_of
from steponce.cli import output
from steponce.cli.output import (
    BUG,
    CONFLICT,
    FAILED,
    INTERRUPTED,
    UNREACHABLE,
    USAGE,
    plain,
    say,
)
from steponce.cli.shell import Named, commands
from steponce.cli.target import Unreachable, is_of_an_endpoint, what_to_correct
from steponce.cli.unwritten import complain, writing_an_error
from steponce.errors import (
    Conflict,
    InvalidRequest,
    MachineAmbiguous,
    MachineNotFound,
    Refused,
    StartRefused,
    SteponceError,
    Unavailable,
)

EXIT_CODES = """\b
Exit codes:
    0  done: started, found or running; completed, if you waited;
       a waiting step has this answer, now or from before
    1  the request failed, is not known, is unsettled, or still runs
       when the time to wait is over (wait again, that does no harm);
       a waiting step is not known, or the answer came too late;
       a record is not known or cannot be read, or a large result is not
       on record; you said no when asked; no answer came, and the
       message says what to look at before you repeat the command;
       a path costs more than its budget, or a state machine has an error
    2  wrong usage, an invalid request or an invalid answer, or a state
       machine that is not known or must be named: nothing was started,
       sent or changed
    3  conflict: the id or key was used with another payload or key;
       a waiting step has another answer; the record does not allow
       the command, or has changed since you looked; an installation
       was edited
    4  unreachable: no credentials, no such stack, throttled, no answer;
       the same command is safe to try again
   70  a bug in steponce
   74  the answer could not be written, as on a full disk; what the
       command did is done
  130  interrupted; a request that was started goes on
  141  the reader of the pipe has gone; what the command did is done
"""

_HINTS: Mapping[type[BotoCoreError], str] = {
    NoCredentialsError: "Log in to AWS or name a --profile; --local needs neither.",
    NoRegionError: "Give --region or set AWS_DEFAULT_REGION.",
}


def say_error(error: Exception, options: Sequence[str] = (), named: Named | None = None) -> int:
    """
    Report an error: a line and the next commands for people, an object for a pipe.

    Args:
        error: What went wrong.
        options: The options that name the stack, for the next commands.
        named: The state machine that the next commands name.

    Returns:
        The exit code.
    """
    shown, code = report_error(error, options, named)
    if not output.for_people():
        with writing_an_error():
            say({"error": shown}, "")
    return code


def report_error(
    error: BaseException, options: Sequence[str] = (), named: Named | None = None
) -> tuple[dict[str, Any], int]:
    """Report an error for people alone. Returns what a pipe gets, and the exit code."""
    kind, message, code = _explain(error)
    line = " ".join(message.split())
    what_next = commands(error.next_steps, options, named) if isinstance(error, SteponceError) else []
    complain(f"steponce: {kind}: {plain(line)}\n")
    complain("".join(f"{line}\n" for line in output.to_copy(what_next)))
    shown: dict[str, Any] = {"type": kind, "message": message}
    return shown | ({"next": what_next} if what_next else {}), code


def words_for(error: BotoCoreError | ClientError) -> str:
    """What a command says of an error of AWS or botocore, with a hint."""
    _, words, _ = _explain(error)
    return words


def _explain(error: BaseException) -> tuple[str, str, int]:
    kind = type(error).__name__
    if isinstance(error, SteponceError):
        return kind, str(error), _code(error)
    if isinstance(error, click.Abort | KeyboardInterrupt):
        told = "What was started goes on, and what was written stays."
        return "Interrupted", told, INTERRUPTED
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "steponce"
        return "UsageError", f"{error.format_message()} (Help: {path} --help)", USAGE
    if isinstance(error, ClientError):
        said = error.response["Error"].get("Message", "")
        told = f"{error.operation_name} was refused: {said}"
        if was_sent_before(error):
            told = f"{told.rstrip('. ')}. boto3 had tried it before."
        return error_code(error), told, UNREACHABLE
    if isinstance(error, BotoCoreError):
        hint = next((text for cls, text in _HINTS.items() if isinstance(error, cls)), "")
        return kind, f"{words_of(error)}. {hint}".replace("..", ".").strip(), UNREACHABLE
    if is_of_an_endpoint(error):  # of a service that the command calls after it has found the stack
        return "InvalidEndpoint", what_to_correct(error), UNREACHABLE
    # The text and the local variables may hold a payload, so only the places are shown.
    complain("".join(traceback.format_tb(error.__traceback__)))
    return kind, "This is a bug in steponce; the lines above say where.", BUG


def _code(error: SteponceError) -> int:
    if isinstance(error, InvalidRequest | MachineAmbiguous | MachineNotFound):
        return USAGE
    if isinstance(error, Conflict | Refused):
        return CONFLICT
    if isinstance(error, Unavailable | Unreachable | StartRefused):
        return UNREACHABLE
    return FAILED
