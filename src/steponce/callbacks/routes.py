"""The callback links: GET shows a page with buttons and changes nothing, POST answers."""

import html
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import parse_qs

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from steponce.callbacks.answer import Answer, Verdict
from steponce.callbacks.awaiting import ANSWERED, LATE, AwaitingSteps
from steponce.callbacks.links import Keys, verify
from steponce.errors import Forbidden, InvalidAnswer, InvalidPayload, OutputTooLarge, Unavailable
from steponce.request.strict_json import LONGEST_TEXT, read_strictly

STATUS = {
    "accepted": HTTPStatus.OK,
    "duplicate": HTTPStatus.OK,
    "conflict": HTTPStatus.CONFLICT,
    "late": HTTPStatus.GONE,
    "unknown": HTTPStatus.NOT_FOUND,
}
TOLD = {
    "accepted": "Thank you, the answer has arrived.",
    "duplicate": "The same answer had arrived before; nothing more to do.",
    "conflict": "Another answer had arrived before, and stands.",
    "late": "This is not waited for any more.",
    "unknown": "There is no such step.",
}
FORM_ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "success": {"outcome": "success", "output": {"confirmed": True}},
    "failure": {"outcome": "failure", "error": "Declined", "cause": "Declined by link."},
}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
PAGE = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))


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
        if step is None:
            return page(HTTPStatus.NOT_FOUND, TOLD["unknown"])
        if step.status in (ANSWERED, LATE):
            return page(HTTPStatus.OK, TOLD["late"])
        asked = f"{step.step} of {step.request_id}"
        return page(
            HTTPStatus.OK, f"Your answer is asked for: {asked}.", [o for o in FORM_ANSWERS if o in allowed]
        )

    @app.post("/callbacks/<step_id>")
    def answer(step_id: str) -> Response[str]:
        """Answer, with JSON from a program or a button from the page."""
        allowed = verify(keys, step_id, app.current_event.query_string_parameters)
        given = Answer.parse(form_answer() if is_form() else json_body())
        if given.outcome not in allowed:
            raise Forbidden(f"This link does not allow {given.outcome}. Ask for another link.")
        verdict = resolve(step_id, given)
        if is_form():
            return page(STATUS[verdict], TOLD[verdict])
        return reply(STATUS[verdict], {"verdict": verdict, "awaitingStepId": step_id})

    def is_form() -> bool:
        """A button's answer. curl sends JSON under this type as well, if it is not told otherwise."""
        kind = app.current_event.headers.get("content-type", "")
        return "x-www-form-urlencoded" in kind and not body().lstrip().startswith("{")

    def body() -> str:
        try:
            text = app.current_event.decoded_body or ""
        except ValueError:
            raise InvalidAnswer("The body is not text.") from None
        if len(text) > LONGEST_TEXT:
            raise OutputTooLarge(f"The body has more than {LONGEST_TEXT:,} bytes. Send less.")
        return text

    def form_answer() -> Mapping[str, Any] | None:
        return FORM_ANSWERS.get(parse_qs(body()).get("outcome", [""])[0])

    def json_body() -> object:
        try:
            return read_strictly(body(), "The body")
        except InvalidPayload as error:
            raise InvalidAnswer(str(error)) from None

    def refused(error: Exception, status: HTTPStatus) -> Response[str]:
        if "application/json" not in app.current_event.headers.get("content-type", ""):
            return page(status, str(error))
        retry = {"Retry-After": "5"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        return reply(status, {"error": type(error).__name__, "message": str(error)}, retry)

    refusals = (
        (Forbidden, HTTPStatus.FORBIDDEN),
        (OutputTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (InvalidAnswer, HTTPStatus.BAD_REQUEST),
        (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    )
    for kind, status in refusals:
        app.exception_handler(kind)(lambda error, status=status: refused(error, status))
    return app


def reply(
    status: HTTPStatus, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response[str]:
    """For programs."""
    return Response(status, "application/json", json.dumps(body), headers=HEADERS | dict(headers or {}))


def page(status: HTTPStatus, text: str, outcomes: list[str] | None = None) -> Response[str]:
    """For people: a text, and a button for each outcome that they may choose."""
    labels = {"success": "Confirm", "failure": "Decline"}
    buttons = "".join(
        f'<button name="outcome" value="{outcome}">{labels[outcome]}</button>' for outcome in outcomes or []
    )
    body = PAGE.substitute(text=html.escape(text), buttons=buttons)
    return Response(status, "text/html; charset=utf-8", body, headers=HEADERS)
