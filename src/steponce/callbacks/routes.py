"""The callback links: GET shows a page with buttons and changes nothing, POST answers."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from steponce.callbacks import page
from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import AwaitingSteps
from steponce.callbacks.links import Keys, verify
from steponce.callbacks.step import AwaitingStep
from steponce.errors import (
    Forbidden,
    InvalidAnswer,
    InvalidPayload,
    OutputTooLarge,
    SteponceError,
    Unavailable,
)
from steponce.request.strict_json import LONGEST_TEXT, read_strictly

STATUS = {
    "accepted": HTTPStatus.OK,
    "duplicate": HTTPStatus.OK,
    "conflict": HTTPStatus.CONFLICT,
    "late": HTTPStatus.GONE,
    "unknown": HTTPStatus.NOT_FOUND,
}
REFUSALS: tuple[tuple[type[SteponceError], HTTPStatus, str], ...] = (
    (Forbidden, HTTPStatus.FORBIDDEN, "This link does not work"),
    (OutputTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "This is no answer"),
    (InvalidAnswer, HTTPStatus.BAD_REQUEST, "This is no answer"),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE, "Please try again"),
)
"""What a route may raise: its status, and the title of its page."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": page.CONTENT_SECURITY_POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def routes(
    steps: AwaitingSteps, resolve: Callable[[str, Answer], Verdict], keys: Keys
) -> APIGatewayHttpResolver:
    """The HTTP API's routes."""
    app = APIGatewayHttpResolver()

    @app.get("/callbacks/<step_id>")
    def show(step_id: str) -> Response[str]:
        """Ask for a click: mail scanners follow links, and must not answer."""
        allowed = verify(keys, step_id, app.current_event.query_string_parameters)
        step = steps.get(step_id)
        status = HTTPStatus.NOT_FOUND if step is None else HTTPStatus.OK
        return show_page(status, page.question_html(step, allowed, link_ends(app.current_event)))

    @app.post("/callbacks/<step_id>")
    def answer(step_id: str) -> Response[str]:
        """Answer, with JSON from a program or a button from the page."""
        allowed = verify(keys, step_id, app.current_event.query_string_parameters)
        by_button = is_form(app.current_event)
        given = (form_answer if by_button else json_answer)(app.current_event)
        if given.outcome not in allowed:
            raise Forbidden(f"This link does not allow {given.outcome}. Ask for another link.")
        verdict = resolve(step_id, given)
        if by_button:
            return show_page(STATUS[verdict], page.verdict_html(verdict, record_now(step_id)))
        return reply(STATUS[verdict], {"verdict": verdict, "awaitingStepId": step_id})

    def record_now(step_id: str) -> AwaitingStep | None:
        """The answer has its verdict, also where the record cannot be read once more."""
        with suppress(Unavailable):
            return steps.get(step_id)
        return None

    for kind, status, title in REFUSALS:
        app.exception_handler(kind)(
            lambda error, status=status, title=title: refused(app.current_event, error, status, title)
        )
    return app


def link_ends(event: APIGatewayProxyEventV2) -> datetime:
    """When the link ends, by its signed query."""
    return datetime.fromtimestamp(int(event.query_string_parameters["expires"]), UTC)


def is_form(event: APIGatewayProxyEventV2) -> bool:
    """A button's answer. By default, curl sends JSON under this type as well."""
    return "x-www-form-urlencoded" in content_type(event) and not body_of(event).lstrip().startswith("{")


def form_answer(event: APIGatewayProxyEventV2) -> Answer:
    """
    The answer of the button that was pressed.

    Raises:
        InvalidAnswer: there is no such button.
    """
    pressed = parse_qs(body_of(event)).get("outcome", [""])[0]
    if pressed not in page.BUTTONS:
        raise InvalidAnswer("No button gives this answer. Open the link again, and press one.")
    return page.BUTTONS[pressed].answer


def json_answer(event: APIGatewayProxyEventV2) -> Answer:
    """
    The answer of a program.

    Raises:
        InvalidAnswer, OutputTooLarge: it is none.
    """
    try:
        return Answer.parse(read_strictly(body_of(event), "The body"))
    except InvalidPayload as error:
        raise InvalidAnswer(str(error)) from None


def body_of(event: APIGatewayProxyEventV2) -> str:
    """
    The body's text.

    Raises:
        InvalidAnswer: it is not text.
        OutputTooLarge: it is longer than any answer.
    """
    try:
        text = event.decoded_body or ""
    except ValueError:
        raise InvalidAnswer("The body is not text.") from None
    if len(text) > LONGEST_TEXT:
        raise OutputTooLarge(f"The body has more than {LONGEST_TEXT:,} bytes. Send less.")
    return text


def content_type(event: APIGatewayProxyEventV2) -> str:
    """The media type of the body, in small letters."""
    return event.headers.get("content-type", "").lower()


def refused(event: APIGatewayProxyEventV2, error: Exception, status: HTTPStatus, title: str) -> Response[str]:
    """For programs and for people."""
    if "application/json" not in content_type(event):
        return show_page(status, page.problem_html(title, str(error)))
    retry = {"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return reply(status, {"error": type(error).__name__, "message": str(error)}, retry)


def reply(
    status: HTTPStatus, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response[str]:
    """For programs."""
    return Response(status, "application/json", json.dumps(body), headers=HEADERS | dict(headers or {}))


def show_page(status: HTTPStatus, text: str) -> Response[str]:
    """For people."""
    return Response(status, "text/html; charset=utf-8", text, headers=HEADERS)
