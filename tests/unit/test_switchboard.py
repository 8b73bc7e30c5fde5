"""The address that a shared Step Functions Local calls, and which stack a call is passed on to."""

import json
from http.client import HTTPConnection
from urllib.parse import urlsplit

from tests.patience import PATIENCE_SECONDS
from tests.workflow.relay import Answer, Relay, serve
from tests.workflow.switchboard import Switchboard


def test_the_switchboard_knows_whose_a_call_is():
    """By the name of the function or of the table, also in chunks; a stranger's call goes nowhere."""
    board = Switchboard()
    for stack in ("one", "two"):
        for service in ("lambda", "dynamodb"):
            board.connect(stack, service, serve(_saying(f"{stack} {service}")))
    function = "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A123456789012%3Afunction%3Atwo-Work"

    assert "two lambda {}" == _post(board.url, f"{function}/invocations", b"{}")
    assert 'one dynamodb {"TableName": "one-Locks"}' == _post(board.url, "/", b'{"TableName": "one-Locks"}')
    chunks = iter([b'{"TableName": ', b'"two-Locks"}'])
    assert 'two dynamodb {"TableName": "two-Locks"}' == _post(board.url, "/", chunks)
    assert "whose" in _post(board.url, "/", json.dumps({"TableName": "three-Locks"}).encode())


def _saying(text: str) -> type[Relay]:
    class Parrot(Relay):
        def answer(self, body: bytes) -> Answer:
            return Answer(200, [], f"{text} {body.decode()}".encode())

    return Parrot


def _post(url: str, path: str, body: object) -> str:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_SECONDS)
    connection.request("POST", path, body, encode_chunked=not isinstance(body, bytes))
    text = connection.getresponse().read().decode()
    connection.close()
    return text
