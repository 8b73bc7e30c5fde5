"""Which stack a command is for."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from steponce.cli import commands, target
from steponce.local import write_facts
from tests.unit.cli.fakes import ENDPOINTS, FACTS, FakeClient, FakeStack, in_a_pipe


class FakeCloudFormation:
    """The stacks that DescribeStacks finds, or its error."""

    def __init__(self, found: list[dict[str, Any]] | Exception) -> None:
        self.found = found
        self.meta = SimpleNamespace(region_name="eu-west-1")

    def describe_stacks(self, **_: Any) -> dict[str, Any]:
        if isinstance(self.found, Exception):
            raise self.found
        return {"Stacks": self.found}


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = commands.run(["status", "order-1", *arguments])
    return code, in_a_pipe(capsys)["error"]["message"]


def test_without_a_target_and_without_a_local_stack_nobody_guesses(capsys: pytest.CaptureFixture[str]):
    """The message names the three ways to say it, and how to start a stack."""
    code, message = error_of(capsys)

    assert 2 == code
    assert all(part in message for part in ("--local", "--stack NAME", "STEPONCE_STACK", "steponce up"))


def test_local_without_a_stack_is_unreachable(capsys: pytest.CaptureFixture[str]):
    """Whoever says --local means it."""
    code, message = error_of(capsys, "--local")

    assert 4 == code
    assert "steponce up" in message


def test_a_local_stack_that_does_not_answer_is_unreachable(capsys: pytest.CaptureFixture[str], home: Path):
    """Its process id may be somebody else's by now."""
    write_facts(FACTS, home)

    code, message = error_of(capsys)

    assert 4 == code
    assert "does not answer at http://127.0.0.1:9" in message


NO_ADDRESSES = (
    *("", "http://127.0.0.1:port", "http://127.0.0.1", "http://:1", "http://a..b:1", "http:// a:1"),
    *("http://127.0.0.1:1/\n", "http://\udce9:1", f"http://{'a' * 70}:1"),
)


@pytest.mark.parametrize(
    "damage",
    [
        {"outputs": [1]},
        {"outputs": {"LocksTable": 1}},
        {"endpoints": {}},
        *({"endpoints": ENDPOINTS | {"dynamodb": address}} for address in NO_ADDRESSES),
        {"region": ""},
        {"pid": "1"},
        {"pid": -1},
        {"pid": 2**70},
        {"logs": None},
    ],
)
def test_damaged_facts_are_not_believed(
    capsys: pytest.CaptureFixture[str], home: Path, damage: dict[str, Any]
):
    """They were written by hand, or by another version."""
    write_facts(FACTS | damage, home)
    code, message = error_of(capsys, "--local")
    assert (4, True) == (code, "cannot be read" in message)


def test_a_folder_in_the_place_of_the_facts_is_named(capsys: pytest.CaptureFixture[str], home: Path):
    """It was taken for a bug."""
    (home / "stack.json").mkdir(parents=True)
    code, message = error_of(capsys, "--local")
    assert (4, True) == (code, "cannot be read" in message)


@pytest.mark.parametrize(
    "damage", ["", "{", "[" * 100_000, "null", "{}"], ids=["empty", "half", "deep", "null", "nothing"]
)
def test_facts_that_are_no_facts_are_not_believed(
    capsys: pytest.CaptureFixture[str], home: Path, damage: str
):
    """Half a file, or somebody else's."""
    home.mkdir()
    (home / "stack.json").write_text(damage)

    code, message = error_of(capsys, "--local")

    assert 4 == code
    assert f"{home / 'stack.json'} cannot be read" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--local", "--stack", "prod"], "--local and --stack are two places"),
        (["--local", "--profile", "p"], "--profile and --region go with --stack"),
        (["--region", "eu-west-1"], "--profile and --region go with --stack"),
        (["--local", "--profile", "\udcff"], "'--profile': it is not UTF-8"),
        (["--stack", "prod", "--region", "\udcff"], "'--region': it is not UTF-8"),
        (["--stack", ""], "'--stack' (env var: 'STEPONCE_STACK'): it is blank. Give a stack's name."),
        (["--stack", "prod", "--machine", ""], "'--machine': it is blank. Give a state machine's name"),
        (["--stack", "prod", "--region", ""], "'--region': it is blank. Give a region"),
        (["--stack", "prod", "--profile", ""], "'--profile': it is blank. Give a profile's name"),
    ],
)
def test_targets_that_contradict_each_other_or_name_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    """Rather than sent to one of them."""
    code, said = error_of(capsys, *arguments)

    assert 2 == code
    assert message in said


@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_stack_on_aws_is_named_by_option_or_variable(monkeypatch: pytest.MonkeyPatch, way: str):
    """With the profile's session and the region that was given."""
    asked = []

    def aws_stack(name: str, session: Any) -> FakeStack:
        asked.append((name, session.region_name))
        return FakeStack(FakeClient())

    monkeypatch.setattr(target, "AwsStack", aws_stack)
    if way == "variable":
        monkeypatch.setenv("STEPONCE_STACK", "prod")
    arguments = ["--stack", "prod"] if way == "option" else []

    assert 0 == commands.run(["status", "order-1", *arguments, "--region", "eu-west-1"])
    assert [("prod", "eu-west-1")] == asked


@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_stack_s_name_is_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, way: str
):
    """Bytes that are no UTF-8 come from the shell as halves of characters, which no request can carry."""
    if way == "variable":
        monkeypatch.setenv("STEPONCE_STACK", "\udcff")

    code = commands.run(["status", "order-1", *(["--stack", "\udcff"] if way == "option" else [])])

    error = in_a_pipe(capsys)["error"]
    assert (2, True) == (code, "'--stack'" in error["message"])
    assert "it is not UTF-8. Give a stack's name. Look at --stack" in error["message"]


def test_local_outweighs_the_variable(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """What is typed counts more than what is set."""
    monkeypatch.setenv("STEPONCE_STACK", "prod")

    assert (4, True) == ((answer := error_of(capsys, "--local"))[0], "No local stack" in answer[1])


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("variable", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        ("profile", "credential_process"),
    ],
)
def test_credentials_whose_source_is_missing_are_unreachable(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: str,
    setting: str,
):
    """The message names the file or the program."""
    missing = str(tmp_path / "missing")
    if kind == "variable":
        monkeypatch.setenv(setting, missing)
        monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/steponce")
    else:
        config = tmp_path / "config"
        config.write_text(f"[default]\n{setting} = {missing}\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))

    code, said = error_of(capsys, "--stack", "prod", "--region", "eu-west-1")

    assert (4, True) == (code, missing in said)


def test_the_variable_that_the_error_names_gives_the_region(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """What is missing then are credentials."""
    _, said = error_of(capsys, "--stack", "prod")
    (variable,) = re.findall(r"\bAWS_\w+", said)
    monkeypatch.setenv(variable, "eu-west-1")

    assert "Log in to AWS" in error_of(capsys, "--stack", "prod")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give --region or set AWS_DEFAULT_REGION."),
        (["--region", "eu-west-1"], "Log in to AWS or name a --profile"),
        (["--profile", "nobody"], "nobody"),
    ],
)
def test_missing_region_credentials_and_profile_are_unreachable(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    """Each with its way out."""
    code, said = error_of(capsys, "--stack", "prod", *arguments)

    assert 4 == code
    assert message in said


def test_local_outweighs_a_variable_that_is_blank(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """It names no stack, and none is looked for."""
    monkeypatch.setenv("STEPONCE_STACK", " ")
    assert 4 == error_of(capsys, "--local")[0]
    assert 2 == error_of(capsys)[0]


def test_a_region_that_is_none_is_to_be_corrected_where_it_was_given(capsys: pytest.CaptureFixture[str]):
    """Only the variable and the profile were named, after two full stops."""
    code, said = error_of(capsys, "--stack", "prod", "--region", "a b")

    assert 2 == code
    assert "a supported format. Correct --region, " in said


def test_a_provider_of_expired_credentials_is_no_bug_in_steponce(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The command is the same after the next login."""
    given = {"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "s", "SessionToken": "t"}
    old = json.dumps(given | {"Expiration": "2020-01-01T00:00:00Z"})
    (tmp_path / "config").write_text(f"[profile old]\ncredential_process = echo '{old}'\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    code, said = error_of(capsys, "--stack", "prod", "--region", "eu-west-1", "--profile", "old")

    assert 4 == code
    assert "still expired. Log in to AWS again" in said


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("AWS_ENDPOINT_URL", "stack", "Invalid endpoint: stack. Correct the variable AWS_"),
        ("AWS_ENDPOINT_URL", "http://a..b", "Invalid endpoint: http://a..b. Correct the variable AWS_"),
        ("AWS_MAX_ATTEMPTS", "many", "'many'. Correct --region, the variable AWS_"),
    ],
)
def test_a_setting_of_the_environment_that_boto3_cannot_use_is_wrong_usage(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    message: str,
):
    """It was a bug in steponce."""
    monkeypatch.setenv(variable, value)

    code, said = error_of(capsys, "--stack", "prod", "--region", "eu-west-1")

    assert 2 == code
    assert message in said


def test_a_blank_region_of_the_environment_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """boto3 makes an address of it, and refuses that. The address is not what there is to correct."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "")

    code, said = error_of(capsys, "--stack", "prod")

    assert 2 == code
    assert said.startswith("The region is blank. Give --region, or correct AWS_DEFAULT_REGION")


@pytest.mark.parametrize(
    ("variable", "arguments"),
    [
        ("AWS_ENDPOINT_URL_SFN", ["status", "order-1"]),
        ("AWS_ENDPOINT_URL_DYNAMODB", ["awaiting", "list"]),
        ("AWS_ENDPOINT_URL_LAMBDA", ["callback", "succeed", f"as_{0:040}"]),
    ],
)
def test_an_address_of_a_service_that_boto3_cannot_use_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str, arguments: list[str]
):
    """The stack is found, since its service has an address of its own. It was a bug in steponce."""
    arn = "arn:aws:states:eu-west-1:123456789012:stateMachine:m"
    outputs = {"RunOnceStateMachineArn": arn, "LocksTable": "locks", "AwaitingStepsTable": "steps"}
    outputs |= {"ResolveAwaitingStepFunction": "resolve"}
    outputs |= {"ExpectedSeconds": "300", "RetentionSeconds": "86400", "KeyPrefix": "m"}
    monkeypatch.setattr(target, "stack_outputs", lambda _session, _name: outputs)
    monkeypatch.setenv(variable, "localhost:4566")

    code = commands.run([*arguments, "--stack", "prod", "--region", "eu-west-1"])

    message = in_a_pipe(capsys)["error"]["message"]
    assert (4, True) == (code, message.startswith("Invalid endpoint: localhost:4566. Correct the variable"))
    assert "AWS_ENDPOINT_URL" in message
    assert "http://" in message


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            ClientError(
                {"Error": {"Code": "ValidationError", "Message": "does not exist"}}, "DescribeStacks"
            ),
            "There is no stack 'prod' in eu-west-1.",
        ),
        ([{}], "has no Output 'RunOnceStateMachineArn'"),
        (
            [{"Outputs": [{"OutputKey": "RunOnceStateMachineArn", "OutputValue": "arn"}]}],
            "has no Output 'LocksTable'",
        ),
        (
            ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "DescribeStacks"),
            "DescribeStacks was refused: expired",
        ),
        (
            ClientError(
                {
                    "Error": {"Code": "ExpiredToken", "Message": "expired."},
                    "ResponseMetadata": {"RetryAttempts": 1},
                },
                "DescribeStacks",
            ),
            "DescribeStacks was refused: expired. boto3 had tried it before.",
        ),
        (
            ClientError({"Error": {"Code": "ValidationError", "Message": "too long"}}, "AssumeRole"),
            "AssumeRole was refused: too long",
        ),
        (
            ClientError({"Error": {"Code": "Throttling", "Message": "slow"}}, "DescribeStacks"),
            "CloudFormation said Throttling. The same call is safe to try again.",
        ),
    ],
    ids=["no such stack", "another stack", "half a stack", "refused", "refused at last", "role", "throttled"],
)
def test_a_stack_that_is_not_ours_is_unreachable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, found: Any, message: str
):
    """Not there, not deployed from this template, or not to be seen."""
    monkeypatch.setattr("boto3.Session.client", lambda *_, **__: FakeCloudFormation(found))

    code, said = error_of(capsys, "--stack", "prod", "--region", "eu-west-1")

    assert 4 == code
    assert message in said


def test_a_command_needs_no_local_parts_for_a_stack_on_aws(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Without them installed, only --local and up say so."""
    monkeypatch.setitem(sys.modules, "steponce.local", None)
    monkeypatch.setattr(target, "AwsStack", lambda *_: FakeStack(FakeClient()))

    assert 0 == commands.run(["status", "order-1", "--stack", "prod", "--region", "eu-west-1"])
    capsys.readouterr()
    code, message = error_of(capsys, "--local")
    assert 4 == code
    assert "pip install 'steponce[local]'" in message
