"""moto on one port: Step Functions with its interpreter on, DynamoDB, queues, topics and the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moto.core.config import default_user_config
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)

from steponce.local import moto_patches
from steponce.local.http.server import QuietHandler, serve, url_of


class _Handler(QuietHandler, MotoRequestHandler):
    """moto's handler, without an access log."""


class _Dispatcher:
    """
    Finds the service by the operation's header.

    moto's own dispatcher looks through the folder of its 170 services at each request, one request at a
    time; it is left what has no such header.
    """

    def __init__(self) -> None:
        self._services = {
            "AWSEvents": create_backend_app("events"),
            "AWSStepFunctions": create_backend_app("stepfunctions"),
            "AmazonSQS": create_backend_app("sqs"),
            "DynamoDB_20120810": create_backend_app("dynamodb"),
        }
        self._others = DomainDispatcherApplication(_create)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        target = environ.get("HTTP_X_AMZ_TARGET", "").partition(".")[0]
        application = self._services.get(target, self._others)
        answer: Iterable[bytes] = application(environ, start_response)
        return answer


def _create(service: str) -> Any:
    """A service that no stack has to have. It is imported when it is first called."""
    application = create_backend_app(service)
    if service == "sns":
        moto_patches.patch_notifications()
    return application


def start() -> str:
    """Start serving; the answer is the address."""
    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    moto_patches.install()
    return url_of(serve(_Dispatcher(), _Handler))


def route(endpoints: dict[str, str], region: str) -> None:
    """Tell the interpreter where its tasks find DynamoDB, Lambda and Step Functions."""
    moto_patches.route(endpoints, region)
