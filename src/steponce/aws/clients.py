"""A boto3 client for a service that is known only when the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import boto3


def client_of(session: boto3.Session, service: str, **options: Any) -> Any:
    """
    A client of a session.

    boto3's type stubs know a client by the literal name of its service, and refuse a name in a variable.

    Args:
        service: boto3's name of the service, such as `stepfunctions`.
        options: As for `Session.client`.
    """
    make: Callable[..., Any] = session.client
    return make(service, **options)
