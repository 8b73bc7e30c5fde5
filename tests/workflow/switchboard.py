"""
One address for the functions and tables of all stacks.

Step Functions Local is told where Lambda and DynamoDB are when it starts, and never again. The stacks of
the tests share one such server, and each has functions, tables and fault proxies of its own: the name of
the function or the table says whose it is.
"""

from __future__ import annotations

import json
from urllib.parse import unquote

from steponce.local.runtime.functions import function_name
from tests.workflow.relay import Answer, Relay, serve

_NO_SUCH_STACK = Answer(404, [("Content-Type", "application/json")], b'{"message": "whose is this?"}')


class Switchboard:
    """Passes each call on to the stack that it is for."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._lines: dict[tuple[str, str], str] = {}
        self.url = serve(_relay(self), host, port)

    def connect(self, stack: str, service: str, url: str) -> str:
        """From now on, calls of `lambda` or `dynamodb` for this stack's resources go there."""
        self._lines[stack, service] = url
        return url

    def line(self, path: str, body: bytes) -> str | None:
        """Where a call is to go."""
        functions = "/2015-03-31/functions/"
        if path.startswith(functions):
            service, resource = "lambda", function_name(unquote(path.removeprefix(functions).split("/")[0]))
        else:
            service, resource = "dynamodb", str(json.loads(body or b"{}").get("TableName"))
        return next(
            (
                url
                for (stack, offered), url in self._lines.items()
                if offered == service and resource.startswith(f"{stack}-")
            ),
            None,
        )


def _relay(board: Switchboard) -> type[Relay]:
    class Line(Relay):
        def answer(self, body: bytes) -> Answer:
            upstream = board.line(self.path, body)
            return self.forward(upstream, body) if upstream else _NO_SUCH_STACK

    return Line
