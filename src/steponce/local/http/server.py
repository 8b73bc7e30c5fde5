"""What the embedded HTTP servers have in common."""

from __future__ import annotations

import io
import logging
import threading
from http import HTTPStatus
from typing import Any

from werkzeug.serving import BaseWSGIServer, DechunkedInput, WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

from steponce.local.http.loopback import OnlyThisMachine

_log = logging.getLogger(__name__)

# How soon a server ends after it was asked to.
_POLL_SECONDS = 0.5
# More than any service takes.
_LARGEST_BODY = 64 * 1024 * 1024
# More digits than any size has. Python raises ValueError for more than 4,300.
_MOST_DIGITS = 100
_NO_CONTENT = (204, 304)


class _Whole:
    """
    A connection that reads as much as was announced, or raises OSError.

    werkzeug takes a chunk for read that ends too early, and reads on for as long as it was announced.
    """

    def __init__(self, connection: io.BufferedIOBase) -> None:
        self._connection = connection
        self._left = _LARGEST_BODY

    def read(self, size: int) -> bytes:
        """Exactly so many bytes."""
        found = self._connection.read(size)
        self._left -= size
        if len(found) < size or self._left < 0:
            raise OSError("The chunk ends too early, or is too large.")
        return found

    def readline(self, size: int = -1) -> bytes:
        """The line that says how long a chunk is, or the end of one."""
        return self._connection.readline(size)


class QuietHandler(WSGIRequestHandler):
    """
    Keeps connections open, and no access log: standard output is the owner's.

    werkzeug's own closes each connection and listens for another 10 ms whether more comes: a third of what
    a request costs. This one reads the whole request first, so that the next one begins where it ends.
    """

    wbufsize = -1  # head and body in one packet

    def run_wsgi(self) -> None:
        """Answer one request."""
        self.wfile.flush()  # "100 Continue", which http.server has written
        environ = self.make_environ()
        body = self._body(environ)
        if isinstance(body, HTTPStatus):
            self.send_error(body)
            self.close_connection = True
            return
        environ["wsgi.input"] = io.BytesIO(body)
        try:
            response = Response.from_app(self.server.app, environ, buffered=True)
        except Exception:
            _log.exception("%s %s", self.command, self.path)
            response = Response(status=500)
        self._say(response)

    def _body(self, environ: dict[str, Any]) -> bytes | HTTPStatus:
        """The request's body; or the status of one that cannot be read."""
        if environ.get("wsgi.input_terminated"):  # it comes in chunks
            try:
                whole: Any = _Whole(self.rfile)
                return DechunkedInput(whole).read()
            except ConnectionError:
                raise
            except (OSError, ValueError):  # a chunk is malformed, or ends too early
                return HTTPStatus.BAD_REQUEST
        size = environ.get("CONTENT_LENGTH") or "0"
        if not size.isdecimal() or len(size) > _MOST_DIGITS or int(size) > _LARGEST_BODY:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return self.rfile.read(int(size))

    def _say(self, response: Response) -> None:
        content = response.get_data()
        self.send_response(response.status_code)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in response.headers and response.status_code not in _NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        if not self.server.multithread:  # the next connection would wait for this one's end
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()

    def log(self, type: str, message: str, *args: Any) -> None:
        """Say nothing."""


def serve(
    application: Any,
    handler: type[WSGIRequestHandler] = QuietHandler,
    *,
    threaded: bool = True,
    is_for_people: bool = False,
    poll_seconds: float = _POLL_SECONDS,
) -> BaseWSGIServer:
    """
    Serve a WSGI application on a free port of the loopback interface.

    Args:
        threaded: One thread a connection; otherwise one for all.
        is_for_people: Whether a link on another page may lead here.
    """
    server = make_server("127.0.0.1", 0, application, threaded=threaded, request_handler=handler)
    server.app = OnlyThisMachine(application, server.server_port, is_for_people=is_for_people)
    threading.Thread(target=server.serve_forever, args=(poll_seconds,), daemon=True).start()
    return server


def url_of(server: BaseWSGIServer) -> str:
    """Where the server listens."""
    return f"http://127.0.0.1:{server.server_port}"
