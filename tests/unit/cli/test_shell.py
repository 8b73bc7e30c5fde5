"""Next steps as commands: each can be pasted into a shell."""

import shlex
import subprocess
from typing import get_args

import click
import pytest
from rich.console import Group

from steponce.cli.commands import steponce
from steponce.cli.errors import say_error
from steponce.cli.output import say, to_copy
from steponce.cli.shell import Named, commands, on_screen
from steponce.errors import RequestNotFound
from steponce.next_step import Action, NextStep

ACTIONS: tuple[Action, ...] = get_args(Action)
OF_AWS = {"invoke function"}


@pytest.mark.parametrize("action", [action for action in ACTIONS if action not in OF_AWS])
def test_each_action_is_a_command_of_the_program(action: Action):
    """With all of its arguments, and none too many."""
    (text,) = commands([NextStep(action, "m/order 1")], ["--local"], Named("refunds"))
    name, *words = shlex.split(text)
    command: click.Command = steponce
    while isinstance(command, click.Group):
        word, *words = words
        command = command.commands[word]

    context = command.make_context(word, words)

    assert "steponce" == name
    keys = [value for value in context.params.values() if value == "m/order 1"]
    assert len(keys) == (not action.startswith("list"))


def test_a_function_is_invoked_with_the_aws_cli():
    """In the account and region that were asked. It has no word for a stack or a machine of ours."""
    step = NextStep("invoke function", "arn:aws:lambda:eu-west-1:123456789012:function:f")
    (plain,) = commands([step], [], Named("refunds"))
    (elsewhere,) = commands([step], ["--stack", "prod", "--profile", "my shop", "--region", "eu-west-1"])

    assert plain.startswith(f"aws lambda invoke --function-name {step.key} ")
    assert "local" not in plain
    assert "refunds" not in plain
    assert f"{plain} --profile 'my shop' --region eu-west-1" == elsewhere
    at = ("--endpoint-url", "http://127.0.0.1:9", "--region", "us-east-1", "--no-sign-request")
    assert [f"{plain} {' '.join(at)}"] == commands([step], ["--local"], Named(local=at))


def test_what_a_step_needs_is_quoted():
    """Ids, lock tokens and names of stacks are anybody's text."""
    step = NextStep("start request", "order 1", lock_token="acme/o 1", check_owner=True)

    assert ["steponce start 'order 1' FILE --key 'acme/o 1' --check-owner --stack 'my stack'"] == commands(
        [step], ["--stack", "my stack"]
    )


@pytest.mark.parametrize("key", ["=ls", "=", "=$HOME"])
def test_no_word_begins_with_a_bare_equals_sign(key: str):
    """To zsh it is the path of a program: the command would ask for another request."""
    step = NextStep("show request", key, lock_token=key)
    (command,) = commands([step], ["--machine", key])
    assert ["steponce", "show", key, "--key", key, "--machine", key] == shlex.split(command)
    assert " =" not in command
    assert " =" not in on_screen(f"{command} '\u3000'")


@pytest.mark.parametrize(
    "key",
    [
        "注文\u300018",
        "a\u00a0b",
        "\u200d",
        "tab\tkey",
        "o'clock\u2009",
        "back\\slash\n",
        "\U000e0001",
        "\x7f1",
    ],
    ids=ascii,
)
def test_a_command_on_the_screen_is_read_by_the_shell_as_it_was(key: str):
    """Pasted, a character that a terminal does not show was another request's."""
    (command,) = commands([NextStep("show request", key, lock_token=key)], ["--local"])
    shown = on_screen(command)
    assert shown.isprintable()
    script = f'steponce() {{ printf "%s\\0" "$@"; }}; {shown}'
    read = subprocess.run(["bash", "-c", script], env={"LC_ALL": "C"}, stdout=subprocess.PIPE, check=True)
    assert ["show", key, "--key", key, "--local", ""] == read.stdout.decode().split("\0")


def test_a_command_that_no_shell_can_hand_on_stays():
    """bash cuts a word at a NUL, so that it named another record."""
    (command,) = commands([NextStep("release lock", "victim\0x")], ["--local"])
    assert command == on_screen(command)


@pytest.mark.usefixtures("terminal")
def test_people_get_the_commands_as_a_screen_can_show_them(capsys: pytest.CaptureFixture[str]):
    """In an answer as in an error."""
    command = commands([NextStep("show request", "注文\u300018")], ["--local"])
    say({}, Group(*to_copy(command)))
    say_error(RequestNotFound("It is not known.", next_steps=[NextStep("show request", "注文\u300018")]))
    told = capsys.readouterr()
    assert r"steponce show $'注文\343\200\20018' --local" in told.out
    assert r"steponce show $'注文\343\200\20018'" in told.err


def test_a_command_that_a_screen_can_show_stays_as_it_is():
    """Most shells have no other way to quote than POSIX's."""
    (command,) = commands([NextStep("show request", "order 注文")], ["--local"])
    assert on_screen(command) == command == "steponce show 'order 注文' --local"


def test_a_step_at_another_machine_asks_for_its_stack():
    """The one that this command was for is the wrong one, unless it knows that machine."""
    step = NextStep("show request", "order-1", machine="arn:refunds")
    known = Named(typed="m", found="m", known={"arn:m": "m", "arn:refunds": "refunds"})

    assert ["steponce show order-1 --stack NAME"] == commands([step], ["--local"])
    assert ["steponce show order-1 --stack NAME"] == commands([step], ["--local"], Named("m", known={}))
    assert ["steponce show order-1 --local --machine refunds"] == commands([step], ["--local"], known)
    at = ["--stack", "s", "--profile", "prod", "--region", "eu-west-1"]
    assert ["steponce show order-1 --stack NAME --profile prod --region eu-west-1"] == commands([step], at)
    only = {"arn:refunds": "refunds"}
    assert ["steponce show order-1 --local"] == commands([step], ["--local"], Named(known=only))
    typed = Named("refunds", known=only)
    assert ["steponce show order-1 --local --machine refunds"] == commands([step], ["--local"], typed)


def test_a_machine_that_was_typed_is_typed_again():
    """In every command; one that was found only where a request id may mean another machine's request."""
    steps = [NextStep("start request", "order-1"), NextStep("retry lock", "m/order-1")]

    assert [
        "steponce start order-1 FILE --machine 'my machine'",
        "steponce locks retry m/order-1 --token --machine 'my machine'",
    ] == commands(steps, [], Named("my machine", "my machine"))
    assert [
        "steponce start order-1 FILE --local --machine refunds",
        "steponce locks retry m/order-1 --token --local",
    ] == commands(steps, ["--local"], Named(None, "refunds"))


def test_a_request_that_has_no_id_yet_gets_one_from_the_person():
    """A record of a stream may become any request."""
    assert ["steponce start REQUEST_ID FILE"] == commands([NextStep("start request")], [])


def test_a_key_that_begins_like_an_option_is_none():
    """It comes after a double dash, and a lock token in one word with its option."""
    step = NextStep("complete lock", "--help")
    asked = NextStep("start request", "-x", lock_token="--yes")

    assert [
        "steponce locks complete --token --local -- --help FILE",
        "steponce start --key=--yes --local -- -x FILE",
    ] == commands([step, asked], ["--local"])
