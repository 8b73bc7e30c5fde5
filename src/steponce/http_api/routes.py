"""The HTTP API: POST /requests starts a request or finds it, GET /requests/{requestId} reads its state."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from steponce.aws import times
from steponce.client import Client
from steponce.errors import (
    InvalidPayload,
    InvalidRequest,
    InvalidRequestId,
    LockTokenMismatch,
    MissingKey,
    PayloadMismatch,
    PayloadTooLarge,
    RecordUnreadable,
    RequestNotFound,
    ResultUnreadable,
    SteponceError,
    TooManyAttempts,
    Unavailable,
)
from steponce.http_api.address import address_of, key_in
from steponce.http_api.callers import Callers, CallerUnknown
from steponce.http_api.callers_requests import CallersRequests, Found
from steponce.http_api.contract import READ, START
from steponce.http_api.headers import idempotency_key, preferred_wait, rate_limit_headers
from steponce.http_api.responses import answer, is_turned_away, problem
from steponce.request.receipt import Receipt
from steponce.request.settings import RequestRules
from steponce.request.strict_json import read_strictly

OTHER_PAYLOAD = (
    "This key, or the business key in the payload, was used with another payload. Nothing was started. "
    "Send the first payload again, or use new keys."
)
OTHER_KEY = (
    "This key was used for a request with another business key. Nothing was started. Send the first payload "
    "again, or use a new key for another operation. If this is the first payload, its business key has been "
    "found elsewhere then: ask the operator of this service, since under a new key the operation runs again."
)
OTHER_PAYLOAD_ON_RECORD = (
    "The business key in the payload was used with another payload. An execution was started, and did no "
    "work. This key belongs to that business key now. Send the first payload again, or use new keys."
)
OTHER_PAYLOAD_SINCE = (
    "While this call waited, another payload was started with this key, or with the business key in the "
    "payload. The answer is for that payload. Use new keys."
)

logger = Logger()


class BodyEncoded(SteponceError):
    """The body is compressed. Unpacked it may be of any size, so it is not unpacked."""


REFUSALS: tuple[tuple[type[Exception], str, str | None], ...] = (
    (InvalidRequestId, "key-malformed", None),
    (InvalidPayload, "payload-malformed", None),
    (PayloadTooLarge, "payload-too-large", None),
    (BodyEncoded, "payload-encoded", None),
    (InvalidRequest, "payload-malformed", "The business key in the payload is empty or too long."),
    (PayloadMismatch, "payload-mismatch", OTHER_PAYLOAD),
    (LockTokenMismatch, "key-mismatch", OTHER_KEY),
    (TooManyAttempts, "key-exhausted", "It will not be attempted again. Use a new key."),
)


def routes(client: Client, callers: Callers, count: Callable[[Receipt], None]) -> APIGatewayHttpResolver:
    """
    The HTTP API's routes.

    Args:
        client: For the machine.
        callers: How to find out who calls.
        count: Gets the receipt of each call that started a request or found one.
    """
    app = APIGatewayHttpResolver()

    @app.post("/requests", **START)
    def start() -> Response[str]:
        mine = requests_of_caller()
        key = idempotency_key(app.current_event.headers.get("Idempotency-Key"))
        wait = preferred_wait(app.current_event.headers.get("Prefer"))
        sent = payload_of(app.current_event)
        found = mine.start(key, sent)
        count(found.receipt)
        if wait:
            try:
                found = mine.follow(found, sent, wait)
            except PayloadMismatch:
                return problem("payload-mismatch", OTHER_PAYLOAD_SINCE)
        return started_response(key, found, wait, client.rules)

    @app.get("/requests/<request_id>", **READ)
    def read(request_id: str) -> Response[str]:
        mine = requests_of_caller()
        key = key_in(request_id)
        wait = preferred_wait(app.current_event.headers.get("Prefer"))
        return answer(HTTPStatus.OK, key, mine.read(key, wait or 0), applied(wait))

    def requests_of_caller() -> CallersRequests:
        context = app.current_event.raw_event.get("requestContext") or {}
        return CallersRequests(client, callers.scope(context.get("authorizer") or {}))

    def lacks_key(_error: MissingKey) -> Response[str]:
        rules = client.rules
        paths = [path for path in (rules.lock_token_path, rules.payload_hash_path) if path]
        paths += [rules.rate_limit_path] if rules.rate_limit and rules.rate_limit_path else []
        return problem("payload-malformed", f"The payload lacks what makes its key: {' or '.join(paths)}.")

    def unknown(_error: RequestNotFound) -> Response[str]:
        detail = "Nothing was started with this key, or only a moment ago, or its record has expired."
        if client.rules.lock_token_path is not None:  # then only the execution knows the lock token
            detail += (
                " Or it is too old to be found by its key: the same POST finds its record, or starts it."
            )
        return problem("request-unknown", detail)

    for kind, name, detail in REFUSALS:
        app.exception_handler(kind)(
            lambda error, name=name, detail=detail: problem(name, detail or str(error))
        )
    app.exception_handler(MissingKey)(lacks_key)
    app.exception_handler(RequestNotFound)(unknown)
    app.exception_handler(Unavailable)(unavailable)
    app.exception_handler(RecordUnreadable)(unreadable)
    app.exception_handler(ResultUnreadable)(result_unreadable)
    app.exception_handler(CallerUnknown)(caller_unknown)
    app.not_found(lambda _error: problem("request-unknown", "There is nothing at this address."))
    return app


def payload_of(event: APIGatewayProxyEventV2) -> dict[str, Any]:
    """
    The payload, which is the body.

    Raises:
        BodyEncoded: the body is compressed.
        InvalidPayload: the body is no JSON object in UTF-8.
    """
    if event.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
        raise BodyEncoded("The body is compressed. Send it as it is, without a Content-Encoding.")
    try:
        text = event.decoded_body or ""
    except ValueError:
        raise InvalidPayload("The body is not UTF-8.") from None
    found = read_strictly(text, "The body")
    if not isinstance(found, dict):
        raise InvalidPayload("The body is not a JSON object. Send the payload as one.")
    return found


def unavailable(error: Unavailable) -> Response[str]:
    """AWS does not answer."""
    logger.warning("unavailable", throttled=error.throttled)
    return problem(
        "throttled" if error.throttled else "unavailable",
        "Whether the request was started is not known. The same request is safe to send again.",
    )


def unreadable(error: RecordUnreadable) -> Response[str]:
    """The record is damaged."""
    logger.error("record unreadable", lockToken=error.key, attribute=error.attribute)
    return problem(
        "record-unreadable",
        "Something else has written to it. This call has started nothing. Tell the operator of this service.",
    )


def result_unreadable(error: ResultUnreadable) -> Response[str]:
    """The large result is not in the bucket as it was kept."""
    logger.error("result unreadable", reason=type(error).__name__, detail=str(error))
    return problem(
        "result-unreadable",
        "The request is completed, and will not run again. Tell the operator of this service.",
        replayed=True,
    )


def caller_unknown(error: CallerUnknown) -> Response[str]:
    """The authorizer does not say who calls."""
    logger.warning("caller unknown", reason=str(error))
    return problem("caller-unknown", "The credentials do not say who calls. Nothing was started.")


def started_response(key: str, found: Found, wait: int | None, rules: RequestRules) -> Response[str]:
    """The answer to a POST."""
    receipt = found.receipt
    if is_turned_away(receipt):
        return problem("payload-mismatch", OTHER_PAYLOAD_ON_RECORD)
    if receipt.resets_at is not None:
        return problem(
            "rate-limited",
            f"Nothing has happened. The window ends at {times.to_text(receipt.resets_at)}; send the same "
            "request again then.",
            replayed=receipt.duplicate,
            headers=rate_limit_headers(rules.request_limit(), receipt.resets_at),
        )
    if receipt.may_run_again:
        why = f" ({receipt.error})" if receipt.error else ""
        return problem(
            "nothing-happened",
            f"Nothing has happened yet{why}. Send the same request again for the next attempt.",
            replayed=receipt.duplicate,
        )
    if receipt.status != "RUNNING":
        return answer(HTTPStatus.OK, key, found, applied(wait))
    if receipt.duplicate and wait == 0:
        return problem(
            "still-running",
            "The first request with this key is still running. Ask at Location, or send it again later.",
            replayed=True,
            headers={"Location": address_of(key)} | applied(wait),
        )
    return answer(HTTPStatus.ACCEPTED, key, found, {"Location": address_of(key)} | applied(wait))


def applied(wait: int | None) -> dict[str, str]:
    """The header that names the wait that was applied."""
    return {} if wait is None else {"Preference-Applied": f"wait={wait}"}
