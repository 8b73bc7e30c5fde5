"""What the embedded servers make of requests that are none."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from werkzeug.serving import BaseWSGIServer
from werkzeug.wrappers import Request, Response

from steponce.local.http.server import serve
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def server() -> Iterator[BaseWSGIServer]:
    """A server whose application answers with what it got."""
    found = serve(Request.application(lambda request: Response(request.get_data())), poll_seconds=0.01)
    yield found
    found.shutdown()
    found.server_close()


def answer(server: BaseWSGIServer, body: bytes) -> bytes:
    """The whole answer to a POST whose body comes in these chunks, after which the client is silent."""
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_a_body_may_come_in_chunks(server: BaseWSGIServer):
    """As from a client that does not know its size."""
    said = answer(server, b"2\r\n{}\r\n0\r\n\r\n")
    assert (True, True) == (said.startswith(b"HTTP/1.1 200 "), said.endswith(b"\r\n\r\n{}"))


@pytest.mark.parametrize(
    "body", [b"zz\r\n", b"-1\r\n", b"2\r\n{}x", b"9\r\n{}", b"2\r\n{}\r\n", b"", 40 * b"f" + b"\r\n{}"]
)
def test_a_malformed_chunk_is_refused(server: BaseWSGIServer, capfd: pytest.CaptureFixture[str], body: bytes):
    """400, and no traceback among what `steponce up` says."""
    assert answer(server, body).startswith(b"HTTP/1.1 400 ")
    assert ("", "") == capfd.readouterr()


@pytest.mark.parametrize("size", ["-1", "9" * 20, "9" * 5_000, "nine"])
def test_a_size_that_no_body_has_is_refused(
    server: BaseWSGIServer, capfd: pytest.CaptureFixture[str], size: str
):
    """Python does not even read a number of 5,000 digits."""
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")
    assert ("", "") == capfd.readouterr()
