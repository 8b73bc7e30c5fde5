"""The commands and examples of every document, run as they stand there."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from steponce.local import LocalStack, write_facts
from tests.rules.documents import ROOT
from tests.rules.prose import DOCUMENTS, Document
from tests.workflow.program import run_here, run_in_a_pipe

ELSEWHERE = {
    "make test": "is what runs this test",
    "make check": "runs this test as well",
    "make run": "is run by a test of its own below",
    ".venv/bin/steponce up": "is run by tests/workflow/test_cli.py; here the stack is up already",
    "make dist": "is run by tests/real/test_installed.py",
    'pip install "$(ls dist/*.whl)[local]"': "likewise",
    "steponce init orders": "is run by tests/e2e/test_wheel.py, in a folder of its own",
    "cd orders": "likewise",
    "make setup": "likewise, by tests/real/test_installed.py",
    "steponce up": "likewise",
    "steponce start order-1 events/start_order.json --local --wait": "likewise",
    "steponce show order-1 --local": "likewise",
    "steponce upgrade": "is run by tests/unit/cli/test_applications.py",
    "steponce wrap order.asl.json": "is run by tests/unit/cli/test_wrap.py, in a folder of its own",
    "steponce wrap order.asl.json --may-retry-later Reserve --may-retry-later Charge --force": "likewise",
    "steponce wrap --into template.yaml --machine OrdersStateMachine": "by tests/unit/wrap/test_into.py",
    "sam build": "needs the SAM CLI, which is no part of `make test`",
    ".venv/bin/steponce start order-1 events/start_order.json --stack steponce --wait": "needs AWS",
    "sam deploy": "needs an AWS account",
    "sam package --resolve-s3 --output-template-file packaged.yaml": "likewise",
    ".venv/bin/steponce up --template examples/customer_record/template.yaml": "tests/workflow starts it",
    "sam build --template examples/customer_record/template.yaml": "needs the SAM CLI",
    "sam deploy --guided --stack-name customer-record": "needs an AWS account",
    "aws dynamodb list-tables": "looks for what a failed deployment leaves on AWS",
    "aws dynamodb update-table --table-name TABLE --no-deletion-protection-enabled": "likewise",
    "aws dynamodb delete-table --table-name TABLE": "likewise",
    "aws cloudformation delete-stack --stack-name steponce": "likewise",
    "aws dynamodb describe-table --table-name TABLE"
    ' --query "Table.GlobalSecondaryIndexes[].Projection.NonKeyAttributes"': "looks at a stack on AWS",
    "aws lambda list-layer-versions --layer-name SteponceLayer": "looks for what an uninstalled stack leaves",
    "aws lambda delete-layer-version --layer-name SteponceLayer --version-number VERSION": "likewise",
    "sam local invoke ChargeCardFunction --event events/charge_card.json": "tests/real runs it",
    "sam local generate-event sqs receive-message": "needs the SAM CLI",
}

AS_A_PROGRAM = ".venv/bin/steponce show order-1 --local"
"""Run as a shell does; the other commands run in this process, which costs a second less each."""

PARAMETERS = {"HttpAccess": "open", "Limits": "yes"}
"""What the documents tell to start the stack with."""

WITH_COMMANDS = [document for document in DOCUMENTS if set(document.commands()) - set(ELSEWHERE)]
OF_ANOTHER_COMMAND = "lint.md"
"""What it quotes is what `steponce lint` prints, which tests/unit/cli/test_lint.py knows."""

IN_A_PROJECT = "testing.md"
"""Its examples are tests, which tests/unit/testing runs in a project of their own."""

WITH_PYTHON = [one for one in DOCUMENTS if one.blocks("python") and one.path.name != IN_A_PROJECT]


TAKE_LONGEST = {"cost.md", "operations.md", "powertools.md", "wrap.md"}


def _those_that_take_longest_are_full(documents: list[Document]) -> pytest.MarkDecorator:
    marks = dict.fromkeys(TAKE_LONGEST, (pytest.mark.full,))
    params = [pytest.param(one, id=one.path.name, marks=marks.get(one.path.name, ())) for one in documents]
    return pytest.mark.parametrize("document", params)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalStack, Path]]:
    """A stack of its own, which `--local` finds."""
    folder = tmp_path_factory.mktemp("steponce") / ".steponce"
    with LocalStack.from_template(ROOT / "template.yaml", parameters=PARAMETERS) as stack:
        write_facts(stack.facts(), folder)
        yield stack, folder


@_those_that_take_longest_are_full(WITH_COMMANDS)
def test_every_command_works_in_its_order(
    document: Document, home: tuple[LocalStack, Path], monkeypatch: pytest.MonkeyPatch
):
    """A newcomer copies them one after the other."""
    monkeypatch.chdir(ROOT)
    for command in document.commands():
        if command not in ELSEWHERE:
            run(command, *home)


def test_a_command_that_nothing_runs_is_found(home: tuple[LocalStack, Path]):
    """A document cannot show a program that this test does not know how to run."""
    with pytest.raises(AssertionError, match="No test runs 'sam publish'"):
        run("sam publish", *home)


def test_no_command_is_excused_that_no_document_has():
    """The list of what runs elsewhere is not longer than it must be."""
    commands = {command for document in DOCUMENTS for command in document.commands()}
    assert set() == {*ELSEWHERE, AS_A_PROGRAM} - commands


def run(command: str, stack: LocalStack, folder: Path) -> None:
    words = shlex.split(command)
    if words[0] == "aws":
        run_aws(words, stack)
    elif words[0].startswith("REQUESTS_URL="):
        run_python(words[-1].removesuffix(")"), stack, folder)
    elif words[0] == "curl":
        run_curl(words, stack)
    else:
        assert words[0] == ".venv/bin/steponce", f"No test runs {command!r}"
        execute = run_in_a_pipe if command == AS_A_PROGRAM else run_here
        code, answer = execute(folder, *words[1:])
        assert 0 == code, (command, answer)


def run_aws(words: list[str], stack: LocalStack) -> None:
    """What the AWS CLI would send, sent by boto3."""
    assert ["aws", "stepfunctions", "start-execution"] == words[:3]
    given = dict(zip(words[3::2], words[4::2], strict=True))
    text = (ROOT / given["--input"].removeprefix("file://")).read_text()
    stack.boto3("stepfunctions").start_execution(
        stateMachineArn=given["--state-machine-arn"], name=given["--name"], input=text
    )
    assert "COMPLETED" == stack.client().wait(given["--name"], timeout_seconds=100).status


def run_curl(words: list[str], stack: LocalStack) -> None:
    """What curl would send, sent by Python."""
    address, *given = [word for word in words[1:] if word != "-i"]
    options = list(zip(given[::2], given[1::2], strict=True))
    bodies = [(ROOT / value.removeprefix("@")).read_bytes() for option, value in options if option == "-d"]
    headers = dict(value.split(": ", 1) for option, value in options if option == "-H")
    url = address.replace("$REQUESTS_URL", stack.outputs["RequestsUrl"])
    request = Request(url, *bodies, headers=headers)
    with urlopen(request, timeout=100) as answer:
        assert "COMPLETED" == json.load(answer)["status"]


def run_python(script: str, stack: LocalStack, folder: Path) -> None:
    """The address that the shell keeps, from the facts of the stack that runs."""
    printed = subprocess.check_output([sys.executable, "-c", script], cwd=folder.parent, text=True).strip()
    assert stack.outputs["RequestsUrl"] == printed


@_those_that_take_longest_are_full(WITH_PYTHON)
def test_the_python_examples_work(
    document: Document, home: tuple[LocalStack, Path], monkeypatch: pytest.MonkeyPatch
):
    """As they stand, with their own assertions; one that reads the facts of a stack, where a stack runs."""
    for block in document.blocks("python"):
        monkeypatch.chdir(home[1].parent if "read_facts" in block else ROOT)
        exec(compile(block, document.path.name, "exec"), {})  # noqa: S102 - our own text


@pytest.mark.full  # CI runs `make run` itself
def test_the_main_job_prints_what_the_documents_quote():
    """`make run` prints these lines and exits with 0."""
    ran = subprocess.run(
        [sys.executable, "examples/tour.py"], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert 0 == ran.returncode, ran.stdout
    printed = without_charge_ids(ran.stdout)
    quoting = [document for document in DOCUMENTS if document.path.name != OF_ANOTHER_COMMAND]
    quoted = [
        line for document in quoting for block in document.blocks("text") for line in block.splitlines()
    ]
    assert len(quoted) >= 4
    assert [] == [line for line in quoted if without_charge_ids(line) not in printed]


@pytest.mark.full
def test_the_main_job_ends_in_a_sentence_when_it_is_interrupted():
    """Somebody has seen enough of it."""
    command = [sys.executable, "-u", "examples/tour.py"]
    told = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=told, stderr=subprocess.STDOUT, text=True) as tour:
        assert tour.stdout
        for line in tour.stdout:
            if "The stack of template.yaml is up" in line:
                tour.send_signal(signal.SIGINT)
                break
        rest = tour.stdout.read()
    assert (130, False) == (tour.returncode, "Traceback" in rest)
    assert rest.endswith("Stopped, and the stack with it.\n")


def without_charge_ids(text: str) -> str:
    """Each stack makes other charge ids."""
    return re.sub(r"ch_[0-9a-f]+", "ch_", text)
