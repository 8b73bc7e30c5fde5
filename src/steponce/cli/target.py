"""Where to: the local stack that `steponce up` started, or a stack on AWS."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import click
from botocore.exceptions import ClientError
from click.core import ParameterSource

from steponce.aws import error_code
from steponce.client import Client
from steponce.errors import SteponceError

HOME = "STEPONCE_HOME"
STACK = "STEPONCE_STACK"


class Unreachable(SteponceError):
    """The stack that the request is for is not there, or is no stack of ours."""


def home() -> Path:
    """The folder that holds the facts of the local stack."""
    return Path(os.environ.get(HOME) or ".steponce")


@dataclass(frozen=True)
class Target:
    """What the options of every command but `up` say."""

    local: bool
    stack: str | None
    profile: str | None
    region: str | None

    def connect(self) -> Client:
        """
        A client for the stack that is meant.

        Raises:
            Unreachable: it does not run, does not exist, or is not ours.
            click.UsageError: nothing says which stack, or the options contradict each other.
        """
        if self.local or self.stack is None:
            if self.profile or self.region:
                raise click.UsageError("--profile and --region go with --stack NAME, a stack on AWS.")
            return self._local()
        return self._on_aws(self.stack)

    def _local(self) -> Client:
        try:
            from steponce.local import LocalStack, LocalStackError, read_facts
        except ModuleNotFoundError as error:
            raise self._nowhere(needs_local(error)) from None
        try:
            facts = read_facts(home())
        except LocalStackError as error:
            raise self._nowhere(str(error)) from None
        except (ValueError, KeyError, TypeError):
            raise self._nowhere(
                f"The facts in {home()} cannot be read. Start a stack with: steponce up"
            ) from None
        if silent := not_serving(facts["endpoints"]):
            raise Unreachable(f"The local stack does not answer at {silent}. Start it anew with: steponce up")
        return LocalStack.attach(facts).client()

    def _nowhere(self, reason: str) -> Exception:
        if self.local:
            return Unreachable(reason)
        return click.UsageError(
            f"Say which stack: --local, --stack NAME or the variable {STACK}. The default is the local one. "
            f"{reason}"
        )

    def _on_aws(self, stack: str) -> Client:
        session = boto3.Session(profile_name=self.profile, region_name=self.region)
        try:
            return Client.from_stack(stack, session=session)
        except ClientError as error:
            if error_code(error) != "ValidationError":
                raise
            raise Unreachable(
                f"There is no stack {stack!r} in {session.region_name}. Check name, region and profile."
            ) from None
        except KeyError as error:
            raise Unreachable(
                f"The stack {stack!r} has no Output {error}, so it was not deployed from this template."
            ) from None


def where_to(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that say which stack it is for, and hand them over as one `target`."""

    @click.option("--local", is_flag=True, help="The stack that `steponce up` started.")
    @click.option("--stack", metavar="NAME", envvar=STACK, show_envvar=True, help="A stack on AWS.")
    @click.option("--profile", metavar="NAME", help="The AWS profile to use.")
    @click.option("--region", metavar="NAME", help="The stack's AWS region.")
    @functools.wraps(command)
    def with_target(
        *, local: bool, stack: str | None, profile: str | None, region: str | None, **others: Any
    ) -> int:
        source = click.get_current_context().get_parameter_source("stack")
        if local and source is ParameterSource.COMMANDLINE:
            raise click.UsageError("--local and --stack are two places. Give one.")
        return command(target=Target(local, stack, profile, region), **others)

    return with_target


def not_serving(endpoints: Mapping[str, str]) -> str | None:
    """The first address at which nobody answers; None where all do."""
    for url in sorted(set(endpoints.values())):
        at = urlsplit(url)
        port = at.port or (443 if at.scheme == "https" else 80)
        try:
            socket.create_connection((at.hostname or "", port), timeout=5).close()
        except OSError:
            return url
    return None


def needs_local(error: ModuleNotFoundError) -> str:
    """What to say where the parts of the local stack are not installed."""
    return f"The local stack needs {error.name}. Install it with: pip install 'steponce[local]'"
