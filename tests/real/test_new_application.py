"""What `steponce init` writes: SAM CLI takes it, makes the same of the same files, and deploys it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from steponce.scaffold import application
from steponce.scaffold.application import Choices
from tests.real.ministack import STACK, deploy, emulator
from tests.real.programs import Python, environment, run, tool, tools_python, wanted_runtime
from tests.real.sam import REGION
from tests.rules.documents import ROOT
from tests.second_workflow import write

pytestmark = pytest.mark.timeout(600)

EVERYTHING = Choices(STACK, callback=True, http=True)
ORDER = {"orderId": "1", "amount": 500}
LOCATION = str(ROOT / "application")
NESTED = ("template", "requests")


@pytest.mark.usefixtures("on_sam_cli")
def test_sam_init_writes_the_same(tmp_path: Path):
    """`sam init --location`, on Python packages of SAM CLI's own."""
    application.init(tmp_path / "ours", EVERYTHING)
    context = json.dumps({"project_name": STACK, "callback": "yes", "http": "yes"})

    run(sam_init(LOCATION, "--no-input", "--extra-context", context), env=environment(), cwd=tmp_path)

    assert contents(tmp_path / "ours") == contents(tmp_path / STACK)


@pytest.mark.usefixtures("on_sam_cli")
def test_enter_is_a_good_answer_to_every_question_of_sam_init(tmp_path: Path):
    """Also for a location that is relative to where it is called."""
    application.init(tmp_path / "ours", Choices("orders"))
    command = sam_init(os.path.relpath(LOCATION, tmp_path))

    subprocess.run(command, env=environment(), cwd=tmp_path, input="\n" * 4, text=True, check=True)

    assert contents(tmp_path / "ours") == contents(tmp_path / "orders")


@pytest.mark.usefixtures("on_sam_cli")
def test_sam_init_refuses_a_name_that_no_stack_can_have(tmp_path: Path):
    """And leaves nothing."""
    command = sam_init(LOCATION, "--no-input", "--name", "my_orders")
    ran = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True)

    assert "'my_orders' cannot name a stack" in ran.stdout + ran.stderr
    assert (True, []) == (ran.returncode != 0, list(tmp_path.iterdir()))


@pytest.mark.usefixtures("on_sam_cli")
def test_the_new_application_is_valid(tmp_path: Path):
    """`sam validate --lint` as its README has it: samconfig.toml says the rest."""
    application.init(tmp_path / "orders", EVERYTHING)

    for template in ("template.yaml", *(f"steponce-installation/{name}.yaml" for name in NESTED)):
        command = [tool("sam"), "validate", "--region", REGION, "--template", template]
        assert "is a valid SAM Template" in run(command, env=environment(), cwd=tmp_path / "orders")


@pytest.mark.usefixtures("on_ministack")
def test_the_new_application_is_deployed_and_runs_a_request(tmp_path: Path):
    """`sam build` and `sam deploy` with every default; the machine and the installation find each other."""
    folder = tmp_path / "orders"
    application.init(folder, EVERYTHING)
    build(folder, tools_python())

    with emulator(tmp_path) as cloud:
        deploy(folder / ".aws-sam" / "build", cloud.url, {})
        client = cloud.client()
        client.start("order-1", ORDER)
        done = client.wait("order-1", timeout_seconds=100)

    assert ("COMPLETED", "1") == (done.status, done.result["orderId"])
    assert f"{STACK}-run-once/order-1" == done.lock_token


@pytest.mark.usefixtures("on_ministack")
def test_a_second_workflow_is_deployed_beside_it(tmp_path: Path):
    """As docs/several-workflows.md says: its queue leads to its own state machine and function."""
    folder = tmp_path / "orders"
    write(folder, STACK, "def handler(work, context):\n    return {'refunded': work['payload']['amount']}\n")
    build(folder, tools_python())

    with emulator(tmp_path) as cloud:
        deploy(folder / ".aws-sam" / "build", cloud.url, {})
        refunds, locks = json.loads(cloud.outputs["RefundsWorkflow"]), cloud.client().machine.locks
        sent = cloud.boto3("sqs").send_message(
            QueueUrl=refunds["requestsQueueUrl"], MessageBody=json.dumps(ORDER)
        )
        key = f"{refunds['keyPrefix']}/{sent['MessageId']}"
        lock = cloud.eventually(lambda: (found := locks.get(key)) and found.status == "COMPLETED" and found)

    assert f"{STACK}-refunds" == refunds["keyPrefix"]
    assert {"refunded": 500} == json.loads(lock.result)
    assert f"execution:{STACK}-refunds:" in lock.locked_by


def sam_init(location: str, *options: str) -> list[str]:
    """The command."""
    return [tool("sam"), "init", "--location", location, *options]


def build(folder: Path, python: Python) -> None:
    """`sam build`, for the Python that ministack runs in."""
    nested = (folder / "steponce-installation" / f"{name}.yaml" for name in NESTED)
    for template in (folder / "template.yaml", *nested):
        text = template.read_text()
        template.write_text(text.replace(f"python{wanted_runtime()}", python.runtime))
    path = f"{python.path.parent}{os.pathsep}{os.environ['PATH']}"
    command = [tool("sam"), "build", "--region", REGION]
    run(command, env=environment(PATH=path, RUNTIME=python.runtime), cwd=folder)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
