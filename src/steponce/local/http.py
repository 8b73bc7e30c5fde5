"""What the embedded HTTP servers have in common."""

from __future__ import annotations

import threading
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from steponce.local.loopback import OnlyThisMachine

# How soon a server that is told to end does so.
_POLL_SECONDS = 0.5


class QuietHandler(WSGIRequestHandler):
    """Keeps no access log: standard output is the owner's."""

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
