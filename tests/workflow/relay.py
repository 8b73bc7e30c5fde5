"""An HTTP server that passes each call on, or not: what the fault proxies and the switchboard are made of."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_NOT_PASSED_ON = ("host", "content-length", "transfer-encoding")
_NOT_PASSED_BACK = ("content-length", "transfer-encoding", "connection", "server", "date")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Relay(BaseHTTPRequestHandler):
    """Reads a call, asks `answer` what to say, and says it."""

    protocol_version = "HTTP/1.1"
    # Head and body in one packet. The second of two waits 40 ms for the first's acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def answer(self, body: bytes) -> Answer:
        """What to say to a call."""
        raise NotImplementedError

    def forward(self, upstream: str, body: bytes) -> Answer:
        """What another server says to it."""
        return self.forwarding(upstream, body)()

    def forwarding(self, upstream: str, body: bytes) -> Callable[[], Answer]:
        """The same for later, when another call may have come by the same connection."""
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_PASSED_ON}
        return partial(_ask, upstream, self.command, self.path, body, headers)

    def do_POST(self) -> None:
        answer = self.answer(self._body())
        with suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    do_GET = do_POST

    def log_message(self, *_arguments: Any) -> None:
        """Stay silent."""

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # Step Functions Local sends its calls in chunks.
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)


def _ask(upstream: str, command: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
    address = urlsplit(upstream)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=120)
    connection.request(command, path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in _NOT_PASSED_BACK]
    connection.close()
    return Answer(answer.status, kept, content)


def serve(handler: type[Relay], host: str = "127.0.0.1", port: int = 0) -> str:
    """Serve until this process ends; the address."""
    server = ThreadingHTTPServer((host, port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://{host}:{server.server_port}"
