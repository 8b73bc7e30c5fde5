"""SAM CLI on the template: it validates, builds, and runs functions, workflow and routes in containers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from samtranslator.yaml_helper import yaml_parse

from tests import layer
from tests.real.conftest import Contained
from tests.real.sam import Build, Sam, is_error, validate
from tests.rules.documents import FUNCTIONS, ROOT, monitoring
from tests.workflow.scene import VISA, Scene
from tests.workflow.test_run_once import (  # noqa: F401 - the very same tests, here on `sam local start-lambda`
    test_a_declined_card_is_a_final_answer,
    test_a_request_is_answered_with_the_result_of_its_work,
    test_an_execution_started_by_hand_needs_only_a_payload,
    test_an_unreachable_provider_is_tried_again_then_released,
    test_another_id_with_the_key_of_a_completed_request_replays_its_result,
    test_another_payload_under_the_same_id_is_refused,
    test_the_same_id_after_completion_gets_the_stored_result,
    test_the_same_id_twenty_times_at_once_runs_once,
)
from tests.workflow.waiting import YES, Waiting

pytestmark = pytest.mark.timeout(600)

# What each function's answer to its file in events/ must say.
ANSWERS: dict[str, Callable[[Any], bool]] = {
    "charge_card": lambda answer: answer["amount"] == 500,
    "check_owner": lambda answer: answer["verdict"] == "settled",
    "close_execution": lambda answer: set(answer) == {"verdict"},
    "find_missed_ends": lambda answer: answer["skipped"] == 0,
    "find_overdue": lambda answer: answer["skipped"] == 0,
    "http_api": lambda answer: answer["statusCode"] in (200, 202),
    "prepare_request": lambda answer: answer["lockToken"] == "contained-run-once/order-1",
    "record_awaiting_step": lambda answer: answer["status"] == "PENDING",
    "resend_request": lambda answer: answer["disposition"] == "resent",
    "resolve_awaiting_step": lambda answer: answer["verdict"] == "unknown",
    "start_from_event": lambda answer: answer["outcomes"][0]["disposition"] == "started",
    "start_from_queue": lambda answer: answer["batchItemFailures"] == [],
}


def event(name: str) -> Path:
    """An example event's file."""
    return ROOT / "events" / f"{name}.json"


def call(method: str, url: str, body: object = None, **headers: str) -> tuple[int, Any]:
    """One HTTP request: the status, and the JSON or text."""
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=120)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    content = None if body is None else json.dumps(body)
    connection.request(
        method,
        f"{address.path}?{address.query}",
        content,
        {"Content-Type": "application/json", **headers},
    )
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    is_json = "json" in answer.headers.get_content_type()
    return answer.status, json.loads(text) if is_json else text


@pytest.mark.usefixtures("on_sam_cli")
@pytest.mark.parametrize("template", ["template.yaml", "requests.yaml", "monitoring.yaml"])
def test_the_template_is_valid(template: str):
    """`sam validate --lint`, which is cfn-lint and the transform."""
    assert "is a valid SAM Template" in validate(template)


@pytest.mark.usefixtures("on_sam_cli")
def test_the_nested_stack_is_built(built: Build):
    """The built template names a copy of monitoring.yaml, with every alarm."""
    copy = yaml_parse(built.nested("Monitoring").read_text())
    assert set(monitoring()["Resources"]) == set(copy["Resources"])


@pytest.mark.usefixtures("on_sam_cli")
def test_every_function_and_the_layer_are_built(built: Build):
    """Each handler is where Lambda looks for it, and the package is in the layer with what it imports."""
    assert {folder.name for folder in FUNCTIONS} == {_source(name) for name in built.functions}
    assert {True} == {(folder / "app.py").exists() for folder in built.functions.values()}
    assert {True} == {(built.layer / "python" / name).is_dir() for name in ("steponce", "jsonschema")}


@pytest.mark.usefixtures("on_sam_cli")
def test_the_layer_holds_nothing_of_a_laptop_nor_of_lambda(built: Build):
    """Neither the command line and the local stack, nor what Lambda has of its own."""
    python = built.layer / "python"
    parts = {path.name for path in (python / "steponce").iterdir()}
    packages = {path.name for path in python.iterdir()}

    assert parts.isdisjoint(layer.listed("LAPTOP"))
    assert packages.isdisjoint({"boto3", "botocore", "moto", "click", "bin"})
    assert sum(file.stat().st_size for file in python.rglob("*")) < 20_000_000


@pytest.mark.usefixtures("on_sam_cli")
def test_every_built_function_is_imported_from_the_built_layer(built: Build, tmp_path: Path):
    """With Lambda's own packages beside it; an extension of the wrong processor would fail here."""
    runtime = layer.of_lambda(tmp_path / "runtime")
    functions = list(built.functions.values())

    loaded = layer.import_functions(built.python.path, functions, built.layer / "python", runtime)

    assert {"jsonschema", "rpds", "wrapt"} <= loaded


@pytest.mark.usefixtures("on_sam_cli")
def test_the_layer_is_built_for_either_processor_and_compiled(built: Build):
    """Both extensions are there, and nothing is left for Lambda to compile at each cold start."""
    python = built.layer / "python"
    machines = {path.name.split("-")[-3] for path in (python / "rpds").glob("*.so")}
    sources = [path for path in python.rglob("*.py") if path.parent.name != "__pycache__"]

    assert {"aarch64", "x86_64"} == machines
    assert len(sources) == len(list(python.rglob("__pycache__/*.pyc")))


@pytest.mark.usefixtures("in_containers")
@pytest.mark.parametrize("name", [folder.name for folder in FUNCTIONS])
def test_the_function_answers_its_event(sam: Sam, contained: Contained, name: str):
    """`sam local invoke` with the example event; its exit code is 0 even for an exception."""
    contained.stack.boto3("dynamodb").put_item(
        TableName=contained.stack.outputs["LocksTable"],
        Item=json.loads(event("check_owner").read_text())["lock"],  # its owner sent charge_card.json
    )

    answer = sam.invoke(contained.template, _logical_id(name), event(name))

    assert not is_error(answer), answer
    assert ANSWERS[name](answer), answer


@pytest.fixture
def scene(contained: Contained, in_containers: None) -> Scene:  # noqa: ARG001 - counts the tests of the workflow
    """A stack on `sam local start-lambda`, with the template's defaults."""
    contained.faults.clear()
    return Scene(contained.stack, contained.faults)


@pytest.mark.usefixtures("in_containers")
@pytest.mark.defect(engine="SAM CLI", row="function-error")
def test_an_exception_is_reported_as_a_function_error(contained: Contained):
    """Lambda says so in a header; without it an engine takes the exception for a result."""
    answer = contained.stack.boto3("lambda").invoke(FunctionName="contained-ChargeCardFunction", Payload="{}")

    assert "Unhandled" == answer.get("FunctionError")


@pytest.fixture(scope="module")
def api(sam: Sam, contained: Contained) -> Iterator[str]:
    """`sam local start-api`."""
    routed = sam.with_native_routes(contained.template)
    with sam.serve("start-api", routed, "--warm-containers", "LAZY") as url:
        yield url


@pytest.mark.usefixtures("in_containers")
def test_a_link_answers_a_waiting_step(api: str, contained: Contained):
    """The signed link is shown and answered through the API, and the order goes on."""
    waiting = Waiting.begin(Scene(contained.stack, contained.faults))
    link = api + waiting.link().removeprefix(contained.stack.outputs["CallbacksUrl"])

    shown = call("GET", link)
    answered = call("POST", link, YES)
    done = contained.stack.client().wait(waiting.name, timeout_seconds=60)

    assert (200, True) == (shown[0], "<form" in shown[1])
    assert (200, "accepted") == (answered[0], answered[1]["verdict"])
    assert "COMPLETED" == done.status


@pytest.mark.usefixtures("in_containers")
def test_a_request_is_started_and_read_over_http(api: str, contained: Contained):
    """The same key twice is one request; its result is the work's."""
    order = Scene(contained.stack, contained.faults).new_id("http")
    options = {"Idempotency_Key": f'"{order}"', "Prefer": "wait=20"}

    first = call("POST", f"{api}/requests", VISA, **options)
    again = call("POST", f"{api}/requests", VISA, **options)
    read = call("GET", f"{api}/requests/{order}")

    assert (200, "COMPLETED", False) == (first[0], first[1]["status"], first[1]["replayed"])
    assert (first[1]["result"], True) == (again[1]["result"], again[1]["replayed"])
    assert first[1]["result"] == read[1]["result"]


@pytest.mark.usefixtures("in_containers")
@pytest.mark.defect(engine="SAM CLI", row="native-routes")
def test_native_routes_are_served_beside_sams(sam: Sam, contained: Contained):
    """`sam local start-api` shows the routes that CloudFormation would make."""
    with sam.serve("start-api", contained.template) as url:
        assert "Missing Authentication Token" != call("GET", f"{url}/requests/none")[1].get("message")


def _logical_id(folder: str) -> str:
    return "".join(part.title() for part in folder.split("_")) + "Function"


def _source(logical_id: str) -> str:
    return next(folder.name for folder in FUNCTIONS if _logical_id(folder.name) == logical_id)
