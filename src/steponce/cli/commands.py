"""The commands: parse, call, answer."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from steponce.cli import applications
from steponce.cli.awaiting import awaiting
from steponce.cli.callback import callback
from steponce.cli.cancel_erase import cancel, erase
from steponce.cli.cost import cost
from steponce.cli.errors import EXIT_CODES, say_error
from steponce.cli.keys import expecting, lock_token_of_request, of_request
from steponce.cli.letters import letters
from steponce.cli.limits import limits
from steponce.cli.lint import lint_files
from steponce.cli.locks import locks
from steponce.cli.machines import Machines
from steponce.cli.not_found import explained
from steponce.cli.output import DONE, ask_which, say, say_receipt, waiting_for
from steponce.cli.parameters import template_parameters
from steponce.cli.payload import read_payload
from steponce.cli.requests import requests
from steponce.cli.target import Invocation, Target, where_to_which
from steponce.cli.timeline import timeline
from steponce.cli.unwritten import Program, Unwritten, end_unwritten, writing
from steponce.cli.which_step import AWAITING_STEPS_TABLE, awaiting_steps
from steponce.cli.wrap import wrap
from steponce.client import Client
from steponce.report import collector
from steponce.request.receipt import Receipt
from steponce.scaffold import sources

DEFAULT_TIMEOUT_SECONDS = 60.0


def run(arguments: Sequence[str]) -> int:
    """Run one command. Returns its exit code."""
    try:
        return _run(arguments)
    except Unwritten as error:
        return end_unwritten(error)


@writing()
def _run(arguments: Sequence[str]) -> int:
    invocation = Invocation()
    try:
        code: int = steponce.main(
            list(arguments), prog_name="steponce", standalone_mode=False, obj=invocation
        )
    except Unwritten:
        raise
    except Exception as error:
        code = say_error(error, invocation.options, invocation.named)
    sys.stdout.flush()
    return code


def _seconds(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (value >= 0 and math.isfinite(value)):
        raise click.BadParameter("give a number of seconds, 0 or more.")
    return value


_timeout = click.option(
    "--timeout",
    type=float,
    callback=_seconds,
    metavar="SECONDS",
    help=f"How long to wait.  [default: {DEFAULT_TIMEOUT_SECONDS:g}]",
)


@click.group(
    cls=Program, epilog=EXIT_CODES, invoke_without_command=True, context_settings={"max_content_width": 100}
)
@click.version_option(package_name="steponce")
@click.pass_context
def steponce(context: click.Context) -> None:
    """
    A request runs at most once, and everyone who asks gets the same answer.

    On a terminal the answer is a table, in a pipe one JSON object; errors are on standard error, and in a
    pipe an object {"error": {"type": ..., "message": ...}}.

    \b
    Try it:
        steponce up
        steponce start order-1 events/start_order.json --local --wait
        steponce show order-1 --local
    """
    ask_which(context)


steponce.add_command(applications.init)
steponce.add_command(applications.upgrade)
steponce.add_command(awaiting)
steponce.add_command(callback)
steponce.add_command(cancel)
steponce.add_command(cost)
steponce.add_command(erase)
steponce.add_command(letters)
steponce.add_command(limits)
steponce.add_command(lint_files)
steponce.add_command(locks)
steponce.add_command(requests)
steponce.add_command(wrap)


@steponce.command()
@of_request
@click.argument("file")
@lock_token_of_request
@click.option(
    "--check-owner", is_flag=True, help="Look now whether the lock's owner lives, and settle it if not."
)
@click.option("--wait", "and_wait", is_flag=True, help="Wait until the request is finished.")
@_timeout
@where_to_which
def start(
    request_id: str,
    file: str,
    key: str | None,
    check_owner: bool,
    and_wait: bool,
    timeout: float | None,
    target: Target,
) -> int:
    """
    Start a request, or find the one already started.

    FILE holds the payload, one JSON object; - reads it from standard input.
    """
    if timeout is not None and not and_wait:
        raise click.UsageError("--timeout goes with --wait.")
    payload = read_payload(file)
    client = Machines.reach(target).to_start()
    receipt = client.start(request_id, payload, lock_token=key, check_owner=check_owner)
    if and_wait and receipt.status == "RUNNING":
        done = _wait(client, request_id, receipt.lock_token, timeout, payload)
        receipt = done.as_duplicate(receipt.duplicate or done.duplicate)
    return say_receipt(receipt)


@steponce.command()
@of_request
@lock_token_of_request
@where_to_which
def status(request_id: str, key: str | None, target: Target) -> int:
    """Show what is known about a request now."""
    machines = Machines.reach(target)
    with explained(machines, request_id, key):
        client = machines.of_request(request_id, key)
        return say_receipt(client.status(request_id, lock_token=key))


@steponce.command()
@of_request
@lock_token_of_request
@_timeout
@where_to_which
def wait(request_id: str, key: str | None, timeout: float | None, target: Target) -> int:
    """Wait until a request is finished, and show its result or error."""
    machines = Machines.reach(target)
    with explained(machines, request_id, key):
        client = machines.of_request(request_id, key)
        return say_receipt(_wait(client, request_id, key, timeout))


@steponce.command()
@of_request
@lock_token_of_request
@click.option("--payload", "with_payload", is_flag=True, help="Show payloads, causes and answers, too.")
@where_to_which
def show(request_id: str, key: str | None, with_payload: bool, target: Target) -> int:
    """
    Show a request's history: attempts, states, waiting steps, the lock record and who has changed it; and
    what to do next.

    The exit code is 0 for every request that exists, also for one that failed.
    """
    machines = Machines.reach(target)
    stack = machines.stack
    steps = awaiting_steps(stack) if AWAITING_STEPS_TABLE in stack.outputs else None
    with explained(machines, request_id, key):
        client = machines.of_request(request_id, key)
        story = collector.collect(
            client,
            request_id,
            lock_token=key,
            steps=steps,
            with_payload=with_payload,
            deployed_seconds=client.rules.longest_work_seconds,
        )
    what_next = machines.commands(story.next_steps)
    answer = {name: value for name, value in story.to_dict().items() if name != "nextSteps"}
    say(answer | {"next": what_next}, timeline(story, what_next))
    return DONE


@steponce.command()
@click.option(
    "--template",
    default=sources.template,
    show_default="template.yaml here, else the sample's",
    callback=expecting("Give a file's name, or leave --template out."),
    help="The SAM template.",
)
@template_parameters
def up(template: str, parameters: dict[str, str]) -> int:
    """
    Run the template's stack on this machine until Ctrl-C.

    Its facts are in the folder .steponce, or the one that the variable STEPONCE_HOME names; every other
    command finds it there.
    """
    from steponce.cli.up import serve

    return serve(template, parameters)


def _wait(
    client: Client,
    request_id: str,
    lock_token: str | None,
    timeout: float | None,
    payload: Mapping[str, Any] | None = None,
) -> Receipt:
    seconds = DEFAULT_TIMEOUT_SECONDS if timeout is None else timeout
    with waiting_for(request_id):
        return client.wait(request_id, lock_token=lock_token, timeout_seconds=seconds, payload=payload)
