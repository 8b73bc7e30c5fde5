"""Writes next steps as commands that can be pasted into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from steponce.next_step import Action, NextStep

_COMMANDS: Mapping[Action, str] = {
    "start request": "start {key} FILE",
    "show request": "show {key}",
    "wait for request": "wait {key}",
    "cancel request": "cancel {key}",
    "list locks": "locks list",
    "inspect lock": "locks inspect {key}",
    "complete lock": "locks complete {key} FILE",
    "release lock": "locks release {key}",
    "retry lock": "locks retry {key}",
    "list steps": "awaiting list",
    "answer step": "callback succeed {key}",
    "list letters": "letters list",
    "show letter": "letters show {key}",
    "redrive letter": "letters redrive {key}",
    "delete letter": "letters delete {key}",
    "show limits": "limits show {key}",
}
_INVOKE = (
    "aws lambda invoke --function-name {key} --invocation-type Event --cli-binary-format raw-in-base64-out "
    "--payload file://event.json answer.json"
)
_OF_AWS = frozenset({"--profile", "--region"})
"""The options of a stack that the AWS CLI has as well. Each has a value."""

_ANOTHER_STACK = ("--stack", "NAME")
"""Stacks that share a table are in one account and region, so the command's own profile and region stay."""

_OF_NO_MACHINE = frozenset({"show limits"})
_BY_TOKEN = frozenset({"inspect lock", "complete lock", "release lock", "retry lock"})
"""Steps whose key is a lock token. Their commands say so, since a request may have that text for its id."""
_BY_REQUEST_ID = frozenset({"start request", "show request", "wait for request", "cancel request"})


@dataclass(frozen=True)
class Named:
    """
    The state machine that the next commands name, and the local stack where the AWS CLI must be told of it.

    Args:
        typed: The one that this command was typed with. All next commands repeat it.
        found: The one that this command has found, if its stack has several. Commands that take a request id
            name it, since another machine may know the same id, and a start would go to the stack's own.
        known: By ARN: how `--machine` names each of the stack's machines.
        local: The options by which the AWS CLI reaches the local stack's functions. Empty for a stack on AWS.
    """

    typed: str | None = None
    found: str | None = None
    known: Mapping[str, str] = field(default_factory=dict)
    local: Sequence[str] = ()

    def options(self, step: NextStep, stack: Sequence[str]) -> Sequence[str]:
        """The options of a step's command that name stack and machine."""
        if step.action in _OF_NO_MACHINE:
            return stack
        if step.machine is not None:
            name = self.known.get(step.machine)
            if name is None:
                return [*_ANOTHER_STACK, *_for_aws(stack)]
            return stack if len(self.known) == 1 and not self.typed else [*stack, "--machine", name]
        name = self.typed or (self.found if step.action in _BY_REQUEST_ID else None)
        return stack if name is None else [*stack, "--machine", name]


def commands(steps: Iterable[NextStep], options: Sequence[str], named: Named | None = None) -> list[str]:
    """
    Write next steps as commands.

    Args:
        steps: The steps, in the order in which they make sense.
        options: The options that name the stack, as they were given to this command: `--local`, for example.
        named: Which state machine they name. Default: none.
    """
    names = named or Named()
    return [
        _invoke(step, names.local or _for_aws(options))
        if step.action == "invoke function"
        else _command(step, names.options(step, options))
        for step in steps
    ]


def on_screen(command: str) -> str:
    """
    Write a command for a terminal. The shell reads the same words from it.

    A character that a terminal does not show, such as the space of Japanese text, is written by its bytes, as
    bash's `$'\\343\\200\\200'`, which needs no locale. A NUL stays, because no shell can hand it on.
    """
    if command.isprintable() or "\0" in command:
        return command
    return " ".join(map(_visible, shlex.split(command)))


def _visible(word: str) -> str:
    return _quoted(word) if word.isprintable() else f"$'{''.join(map(_in_ansi_c, word))}'"


def _in_ansi_c(char: str) -> str:
    if char in "'\\":
        return f"\\{char}"
    return char if char.isprintable() else "".join(f"\\{byte:03o}" for byte in char.encode())


def _command(step: NextStep, options: Sequence[str]) -> str:
    key = _quoted(step.key) if step.key else "REQUEST_ID"
    verb, _, rest = _COMMANDS[step.action].partition(" {key}")
    arguments = [f"{key}{rest}"] if "{key}" in _COMMANDS[step.action] else []
    given = [] if step.lock_token is None else _key_option(step.lock_token)
    given += ["--check-owner"] * step.check_owner + ["--token"] * (step.action in _BY_TOKEN)
    given += map(_quoted, options)
    if step.key.startswith("-"):  # or it would be read as an option
        return " ".join(["steponce", verb, *given, "--", *arguments])
    return " ".join(["steponce", verb, *arguments, *given])


def _invoke(step: NextStep, options: Sequence[str]) -> str:
    return " ".join([_INVOKE.format(key=_quoted(step.key)), *map(_quoted, options)])


def _for_aws(options: Sequence[str]) -> list[str]:
    """The profile and the region, as they were given. The AWS CLI has no word for a stack."""
    return [part for pair in pairwise(options) if pair[0] in _OF_AWS for part in pair]


def _key_option(lock_token: str) -> list[str]:
    quoted = _quoted(lock_token)
    return [f"--key={quoted}"] if lock_token.startswith("-") else ["--key", quoted]


def _quoted(word: str) -> str:
    """The word in quotes if it needs them. To zsh, `=ls` is the path of the program `ls`."""
    quoted = shlex.quote(word)
    return f"'{quoted}'" if quoted.startswith("=") else quoted
