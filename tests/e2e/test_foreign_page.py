"""A page from elsewhere, in a real browser, tries to drive the local stack."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from steponce.local import LocalStack
from tests.e2e.test_callback_page import browser, pytestmark

__all__ = ["browser", "pytestmark"]

TRY = """
const [url, options, done] = arguments;
fetch(url, options).then(answer => answer.text().then(text => done([answer.type, answer.status, text])),
                         problem => done(["failed", 0, String(problem)]));
"""
SHOW = """
const [url, done] = arguments;
const image = new Image();
image.onload = image.onerror = event => done(event.type);
image.src = url;
"""


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """A page that is served by somebody else."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<title>elsewhere</title>")

        def log_message(self, *_arguments: Any) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}/"
    server.shutdown()


def test_a_page_from_elsewhere_reads_nothing_and_starts_nothing(
    stack: LocalStack, browser: WebDriver, page: str
):
    """Neither by a request that needs a preflight, nor by a plain one, nor by an image."""
    browser.get(page)
    start = {"stateMachineArn": stack.outputs["RunOnceStateMachineArn"], "name": "by-a-page", "input": "{}"}
    headers = {
        "X-Amz-Target": "AWSStepFunctions.StartExecution",
        "Content-Type": "application/x-amz-json-1.0",
    }
    with_preflight = {"method": "POST", "headers": headers, "body": json.dumps(start)}
    plain = {"method": "POST", "mode": "no-cors", "body": '{"by": "a page"}'}
    function = f"/2015-03-31/functions/{stack.name}-ChargeCardFunction/invocations"
    queue = stack.outputs["RequestsQueueUrl"].rpartition("/")[2]
    send = f"/123456789012/{queue}?Action=SendMessage&MessageBody=by-a-page"
    before = stack.logs(f"{stack.name}-ChargeCardFunction")

    read = browser.execute_async_script(TRY, stack.endpoints["states"], with_preflight)
    browser.execute_async_script(TRY, stack.endpoints["lambda"] + function, plain)
    browser.execute_async_script(SHOW, stack.endpoints["aws"] + send)

    assert "failed" == read[0]
    assert before == stack.logs(f"{stack.name}-ChargeCardFunction")
    sqs, url = stack.boto3("sqs"), stack.outputs["RequestsQueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    assert "0" == found["Attributes"]["ApproximateNumberOfMessages"]
    states = stack.boto3("stepfunctions")
    names = [
        execution["name"]
        for answer in states.get_paginator("list_executions").paginate(
            stateMachineArn=start["stateMachineArn"]
        )
        for execution in answer["executions"]
    ]
    assert "by-a-page" not in names
