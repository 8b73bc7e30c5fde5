"""What can go wrong at the boundary of a call to AWS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ReadTimeoutError


class Died(Exception):
    """The resolver's process is gone."""


class Boundary:
    """A client whose every call passes a gate, before and after; `repeat` makes boto3's own retry."""

    def __init__(self, client: Any, gate: Callable[[str], str | None]) -> None:
        self._client = client
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def call(**arguments: Any) -> Any:
            wanted = self._gate(name)
            if wanted == "die before":
                raise Died
            if wanted == "repeat":
                method(**arguments)
            answer = method(**arguments)
            if wanted == "die after":
                raise Died
            if wanted == "lose answer":
                raise ReadTimeoutError(endpoint_url="https://aws")
            return answer

        return call if name != "get_paginator" else method
