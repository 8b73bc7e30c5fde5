"""The README's commands, run as they stand there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from steponce.local import LocalStack, write_facts
from tests.rules.documents import template
from tests.rules.picture import ROOT, in_readme

README = (ROOT / "README.md").read_text()
BIN = Path(sys.executable).parent

ELSEWHERE = {
    "make test": "is what runs this test",
    "make run": "is run by a test of its own below",
    ".venv/bin/steponce up": "is run by tests/workflow/test_cli.py; here the stack is up already",
    "sam build": "needs the SAM CLI, which is no part of `make test`",
    "sam deploy --guided": "needs an AWS account",
    "aws dynamodb list-tables": "looks for what a failed deployment leaves on AWS",
    "aws dynamodb update-table --table-name TABLE --no-deletion-protection-enabled": "likewise",
    "aws dynamodb delete-table --table-name TABLE": "likewise",
    "aws cloudformation delete-stack --stack-name steponce": "likewise",
    "sam local invoke StartFromQueueFunction --event events/start_from_queue.json": "tests/real runs it",
    "sam local generate-event sqs receive-message": "needs the SAM CLI",
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    return [line.partition(" # ")[0].strip() for line in lines if line.strip()]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalStack, Path]]:
    """A stack of its own, which `--local` finds."""
    folder = tmp_path_factory.mktemp("steponce") / ".steponce"
    with LocalStack.from_template(ROOT / "template.yaml", parameters={"HttpDoor": "open"}) as stack:
        write_facts(stack.facts(), folder)
        yield stack, folder


def test_every_command_works_in_its_order(home: tuple[LocalStack, Path]):
    """A newcomer copies them one after the other."""
    stack, folder = home
    ran = [run(command, stack, folder) for command in commands() if command not in ELSEWHERE]
    assert len(ran) >= 4


def run(command: str, stack: LocalStack, folder: Path) -> str:
    words = shlex.split(command)
    if words[0] == "aws":
        return run_aws(words, stack)
    if words[0].startswith("REQUESTS_URL="):
        return run_python(words[-1].removesuffix(")"), stack, folder)
    if words[0] == "curl":
        return run_curl(words, stack)
    assert words[0] == ".venv/bin/steponce", f"No test runs {command!r}"
    done = subprocess.run(
        [BIN / "steponce", *words[1:]],
        cwd=ROOT,
        env=os.environ | {"STEPONCE_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert 0 == done.returncode, (command, done.stdout, done.stderr)
    return done.stdout


def run_aws(words: list[str], stack: LocalStack) -> str:
    """What the AWS CLI would send, sent by boto3."""
    assert ["aws", "stepfunctions", "start-execution"] == words[:3]
    given = dict(zip(words[3::2], words[4::2], strict=True))
    text = (ROOT / given["--input"].removeprefix("file://")).read_text()
    started = stack.boto3("stepfunctions").start_execution(
        stateMachineArn=given["--state-machine-arn"], name=given["--name"], input=text
    )
    assert "COMPLETED" == stack.client().wait(given["--name"], timeout_seconds=100).status
    return str(started["executionArn"])


def run_curl(words: list[str], stack: LocalStack) -> str:
    """What curl would send, sent by Python."""
    address, *given = [word for word in words[1:] if word != "-i"]
    options = list(zip(given[::2], given[1::2], strict=True))
    bodies = [(ROOT / value.removeprefix("@")).read_bytes() for option, value in options if option == "-d"]
    headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
    url = address.replace("$REQUESTS_URL", stack.outputs["RequestsUrl"])
    request = Request(url, *bodies, headers=headers)  # noqa: S310 - without a type, as curl sends a form
    with urlopen(request, timeout=100) as answer:  # noqa: S310 - our own server
        assert "COMPLETED" == json.load(answer)["status"]
        return str(answer.status)


def run_python(script: str, stack: LocalStack, folder: Path) -> str:
    """The address that the shell keeps, from the facts of the stack that runs."""
    told = subprocess.check_output([sys.executable, "-c", script], cwd=folder.parent, text=True).strip()
    assert stack.outputs["RequestsUrl"] == told
    return told


def test_the_python_examples_work(home: tuple[LocalStack, Path], monkeypatch: pytest.MonkeyPatch):
    """As they stand, with their own assertions; the second one where a stack runs."""
    for block in blocks("python"):
        monkeypatch.chdir(home[1].parent if "read_facts" in block else ROOT)
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own text


def test_the_main_job_tells_what_the_readme_says():
    """`make run` prints the lines that the README quotes, and ends well."""
    told = subprocess.run(
        [sys.executable, "-m", "steponce.local"], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert 0 == told.returncode, told.stdout
    quoted = [re.sub(r"ch_[0-9a-f]+", "ch_", line) for line in blocks("text")[0].splitlines()]
    assert [] == [line for line in quoted if line not in re.sub(r"ch_[0-9a-f]+", "ch_", told.stdout)]


def test_make_has_the_targets_that_are_named():
    """`make -n` knows every one of them."""
    for target in sorted(set(re.findall(r"(?:^|`)make ([a-z]+)\b", README, re.MULTILINE))):
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_the_pictures_are_those_of_the_state_machines():
    """`make picture` would change nothing."""
    for path in sorted((ROOT / "statemachines").glob("*.asl.json")):
        assert README == in_readme(README, path)


def test_every_parameter_of_the_template_is_told():
    """And none that it does not have."""
    table = README.partition("\n## Deploy\n")[2].partition("\n## ")[0]
    first = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    assert set(template()["Parameters"]) == {name for cell in first for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.full
def test_the_template_passes_the_linter():
    """cfn-lint is what `sam validate --lint` runs, which tests/real does; this one needs no SAM CLI."""
    subprocess.run([BIN / "cfn-lint", "-t", ROOT / "template.yaml", "--regions", "us-east-1"], check=True)


def test_every_link_leads_somewhere():
    """Files that are named exist."""
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
