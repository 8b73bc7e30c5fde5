"""
What stands before every server of the stack: web pages may not drive it.

Each browser on this machine reaches 127.0.0.1, whatever page it shows. A page from elsewhere says so in its
Origin, or in Sec-Fetch-Site where a browser sends none; one that has its own name resolved to 127.0.0.1 has
that name in Host. The servers behind look at none of these, and moto lets every origin in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

_NAMES = ("127.0.0.1", "localhost")
_OUR_OWN = ("same-origin", "none")

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class OnlyThisMachine:
    """
    A WSGI application for programs on this machine, and for its own pages.

    Args:
        application: What is behind.
        port: Where it is served.
        is_for_people: Whether a link on another page may lead here.
    """

    def __init__(self, application: Application, port: int, *, is_for_people: bool = False) -> None:
        self._application = application
        self._hosts = {f"{name}:{port}" for name in _NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}
        self._is_for_people = is_for_people

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request, or refuse it."""
        if problem := self._problem(environ):
            body = json.dumps({"message": problem}).encode()
            start_response("403 Forbidden", [("Content-Type", "application/json")])
            return [body]

        def start_without_cors(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            kept = [
                (name, value) for name, value in headers if not name.lower().startswith("access-control-")
            ]
            return start_response(status, kept, *more)

        return self._application(environ, start_without_cors)

    def _problem(self, environ: Environ) -> str | None:
        host, site = environ.get("HTTP_HOST", ""), environ.get("HTTP_SEC_FETCH_SITE", "none")
        origin = environ.get("HTTP_ORIGIN")
        if host.lower() not in self._hosts:
            return (
                f"The local stack is not called {host[:100]}. Use one of: {', '.join(sorted(self._hosts))}."
            )
        # The form of a page of its own whose Referrer-Policy is no-referrer has the origin null.
        is_own_form = origin == "null" and site == "same-origin"
        if origin is not None and origin.lower() not in self._origins and not is_own_form:
            return "The local stack takes no requests of web pages from elsewhere."
        if site not in _OUR_OWN and not self._is_followed_link(environ):
            return "The local stack takes no requests of web pages from elsewhere."
        return None

    def _is_followed_link(self, environ: Environ) -> bool:
        """Somebody has followed a link, say in a mail; that only looks."""
        return (
            self._is_for_people
            and environ.get("REQUEST_METHOD") in ("GET", "HEAD")
            and environ.get("HTTP_SEC_FETCH_MODE") == "navigate"
            and environ.get("HTTP_SEC_FETCH_DEST") == "document"
        )
