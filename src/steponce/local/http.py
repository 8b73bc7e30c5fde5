"""What the embedded HTTP servers have in common."""

from __future__ import annotations

import threading
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server


class QuietHandler(WSGIRequestHandler):
    """Keeps no access log: standard output is the owner's."""

    def log(self, type: str, message: str, *args: Any) -> None:
        """Say nothing."""


def serve(application: Any, handler: type[WSGIRequestHandler] = QuietHandler) -> BaseWSGIServer:
    """Serve a WSGI application on a free port of the loopback interface, one thread a connection."""
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def url_of(server: BaseWSGIServer) -> str:
    """Where the server listens."""
    return f"http://127.0.0.1:{server.server_port}"
