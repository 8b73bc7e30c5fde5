"""Finds the stack that a command is for: the local one that `steponce up` started, or one on AWS."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import boto3
import click
from botocore.config import Config
from click.core import ParameterSource

from steponce.aws.clients import client_of, stack_outputs
from steponce.cli.keys import expecting
from steponce.cli.shell import Named
from steponce.client import Client
from steponce.errors import StackNotFound, SteponceError
from steponce.program import program
from steponce.request.workflows import OWN, Workflows

HOME = "STEPONCE_HOME"
STACK = "STEPONCE_STACK"

_INVALID_ENDPOINT = "Invalid endpoint: "
"""How botocore's error begins if the address of a service cannot be one."""

_CONFIG = Config(retries={"mode": "standard", "max_attempts": 4}, connect_timeout=5, read_timeout=60)


class Unreachable(SteponceError):
    """The stack is not there, or was not deployed from this template."""


def home() -> Path:
    """The folder that holds the facts of the local stack."""
    return Path(os.environ.get(HOME) or ".steponce")


class Stack(Protocol):
    """A running stack: its name, its Outputs, and clients for it."""

    name: str

    @property
    def outputs(self) -> Mapping[str, str]: ...

    def boto3(self, service: str) -> Any: ...

    def client(self, *, machine: str | None = None) -> Client: ...


class AwsStack:
    """A stack on AWS; the local one is `steponce.local.RunningStack`."""

    def __init__(self, name: str, session: boto3.Session) -> None:
        """
        Read the stack's Outputs.

        Raises:
            Unreachable: no stack has this name.
        """
        self.name = name
        self._session = session
        try:
            self.outputs = stack_outputs(session, name)
        except StackNotFound as error:
            raise Unreachable(str(error)) from None

    def boto3(self, service: str) -> Any:
        """A plain boto3 client."""
        return client_of(self._session, service, config=_CONFIG)

    def client(self, *, machine: str | None = None) -> Client:
        """A steponce client; `machine` is as for `Client.from_stack`."""
        if not len(Workflows.from_outputs(self.outputs)):
            output_of(self, OWN)
        if machine is None and OWN in self.outputs:
            output_of(self, "LocksTable")
        return Client.from_outputs(self.outputs, machine=machine, session=self._session)


def output_of(stack: Stack, name: str) -> str:
    """
    One Output of a stack.

    Raises:
        Unreachable: the stack has none of this name.
    """
    if name not in stack.outputs:
        raise Unreachable(
            f"The stack {stack.name!r} has no Output {name!r}, so it was not deployed from this template."
        )
    return stack.outputs[name]


@dataclass
class Invocation:
    """
    One call of the program.

    Args:
        options: Those that name its stack, as they were given.
        named: Which state machine its next commands name, and which local stack.
    """

    options: tuple[str, ...] = ()
    named: Named = field(default_factory=Named)


@dataclass(frozen=True)
class Target:
    """
    The stack that a command is for, as its options say.

    Args:
        local: Whether --local was given.
        stack: The name of a stack on AWS.
        profile: The AWS profile.
        region: The AWS region.
        options: The same options as they were given on the command line, for the next commands.
        machine: The state machine that --machine names. None if it was not given.
    """

    local: bool
    stack: str | None
    profile: str | None
    region: str | None
    options: tuple[str, ...] = ()
    machine: str | None = None

    def reach(self) -> Stack:
        """
        Find the stack.

        Raises:
            Unreachable: it does not run, does not exist, or was not deployed from this template.
            click.UsageError: no option names a stack, or the options contradict each other.
        """
        if self.local or self.stack is None:
            if self.profile or self.region:
                raise click.UsageError("--profile and --region go with --stack NAME, a stack on AWS.")
            return self._local()
        try:
            return AwsStack(self.stack, boto3.Session(profile_name=self.profile, region_name=self.region))
        except ValueError as error:  # of boto3, which takes settings from the environment
            raise click.UsageError(what_to_correct(error)) from None
        except OSError as error:  # of a file or a program that the credentials come from
            raise Unreachable(
                f"The credentials cannot be read: {error}. Correct the variable AWS_… or the profile."
            ) from None

    def _local(self) -> Stack:
        try:
            from steponce.local import LocalStack, LocalStackError, read_facts
        except ModuleNotFoundError as error:
            raise self._nowhere(needs_local(error)) from None
        try:
            facts = read_facts(home())
        except LocalStackError as error:
            raise self._nowhere(str(error)) from None
        if silent := not_serving(facts["endpoints"]):
            raise Unreachable(
                f"The local stack does not answer at {silent}. Start it again with: {program()} up"
            )
        at = ("--endpoint-url", facts["endpoints"]["lambda"], "--region", facts["region"])
        running = invocation()
        running.named = replace(running.named, local=(*at, "--no-sign-request"))
        return LocalStack.attach(facts)

    def _nowhere(self, reason: str) -> Exception:
        if self.local:
            return Unreachable(reason)
        return click.UsageError(
            f"Say which stack: --local, --stack NAME or the variable {STACK}. The default is the local one. "
            f"{reason}"
        )


def invocation() -> Invocation:
    """That of the running command. Where none runs, a new one, which nobody reads."""
    context = click.get_current_context(silent=True)
    return context.ensure_object(Invocation) if context else Invocation()


def _expect_stack(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Check a stack's name, unless --local outweighs the variable that it is from."""
    check = expecting(f"Give a stack's name. Look at --stack, or at the variable {STACK}.")
    return name if context.params.get("local") else check(context, option, name)


def where_to(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that name a stack to a command, which gets them as one `target`."""

    @click.option("--local", is_flag=True, help="The stack that `steponce up` started.")
    @click.option(
        "--stack",
        metavar="NAME",
        envvar=STACK,
        show_envvar=True,
        callback=_expect_stack,
        help="A stack on AWS.",
    )
    @click.option(
        "--profile",
        metavar="NAME",
        callback=expecting("Give a profile's name, or leave it out."),
        help="The AWS profile to use.",
    )
    @click.option(
        "--region",
        metavar="NAME",
        callback=expecting("Give a region, like us-east-1, or leave it out."),
        help="The stack's AWS region.",
    )
    @functools.wraps(command)
    def with_target(
        *,
        local: bool,
        stack: str | None,
        profile: str | None,
        region: str | None,
        machine: str | None = None,
        **others: Any,
    ) -> int:
        context = click.get_current_context()
        source = context.get_parameter_source("stack")
        if local and source is ParameterSource.COMMANDLINE:
            raise click.UsageError("--local and --stack are two places. Give one.")
        given = ["--local"] * local
        given += ["--stack", stack] if stack and source is ParameterSource.COMMANDLINE else []
        given += ["--profile", profile] if profile else []
        given += ["--region", region] if region else []
        target = Target(local, stack, profile, region, tuple(given), machine)
        if invocation := context.find_object(Invocation):
            invocation.options, invocation.named = target.options, Named(machine)
        return command(target=target, **others)

    return with_target


def where_to_which(command: Callable[..., int]) -> Callable[..., int]:
    """As `where_to`, with --machine, for a command on one workflow of the stack."""
    return click.option(
        "--machine",
        metavar="NAME",
        callback=expecting("Give a state machine's name or ARN, or leave --machine out."),
        help="The name or ARN of the state machine, where the stack has several.",
    )(where_to(command))


def not_serving(endpoints: Mapping[str, str]) -> str | None:
    """The first address that does not answer. None if all answer."""
    for url in sorted(set(endpoints.values())):
        at = urlsplit(url)
        port = at.port or (443 if at.scheme == "https" else 80)
        try:
            socket.create_connection((at.hostname or "", port), timeout=5).close()
        except OSError:
            return url
    return None


def is_of_an_endpoint(error: BaseException) -> bool:
    """Whether boto3 has refused an address from the environment or the profile. It has no type for that."""
    return isinstance(error, ValueError) and str(error).startswith(_INVALID_ENDPOINT)


def what_to_correct(error: BaseException) -> str:
    """What to say of a setting that boto3 refuses."""
    if is_of_an_endpoint(error):
        if "..amazonaws" in str(error):  # AWS's own address, without a region
            return "The region is blank. Give --region, or correct AWS_DEFAULT_REGION or the profile."
        return (
            f"{error}. Correct the variable AWS_ENDPOINT_URL… or the endpoint_url of the profile. An address "
            "begins with https:// or http://."
        )
    return f"{str(error).removesuffix('.')}. Correct --region, the variable AWS_… or the profile."


def needs_local(error: ModuleNotFoundError) -> str:
    """The message if the parts of the local stack are not installed."""
    return f"The local stack needs {error.name}. Install it with: pip install 'steponce[local]'"
