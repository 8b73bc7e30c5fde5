"""The HTTP API in the words of OpenAPI: requests and answers. `make openapi` writes openapi.json from it."""

from typing import Any

from steponce.http_api.headers import BARE, LONGEST_KEY, LONGEST_WAIT_SECONDS, QUOTED
from steponce.http_api.responses import PROBLEM_TYPE, PROBLEMS

_BOOLEAN = {"type": "string", "enum": ["true", "false"]}
_TEXT_OR_NULL = {"type": ["string", "null"]}

SCHEMAS: dict[str, Any] = {
    "Payload": {
        "type": "object",
        "description": "What the work gets. Whole numbers up to ±(2**53 - 1); at most 196,608 bytes.",
    },
    "Request": {
        "type": "object",
        "required": ["requestId", "status", "replayed", "attempt"],
        "properties": {
            "requestId": {"type": "string", "description": "The key, as the caller gave it."},
            "status": {"enum": ["RUNNING", "COMPLETED", "FAILED"]},
            "replayed": {
                "type": "boolean",
                "description": "Whether this is the answer to an earlier request with the same key.",
            },
            "attempt": {
                "type": "integer",
                "minimum": 0,
                "description": "Grows with every attempt; 0 while it has not begun.",
            },
            "result": {"description": "What the work answered; once COMPLETED."},
            "error": _TEXT_OR_NULL | {"description": "The error's name; once FAILED."},
            "cause": _TEXT_OR_NULL | {"description": "The error's text; once FAILED."},
            "detail": {
                "type": "string",
                "description": "Why a request that is over counts as RUNNING, or that FAILED is not final.",
            },
        },
        "oneOf": [
            {
                "properties": {
                    "status": {"const": "RUNNING"},
                    "result": False,
                    "error": False,
                    "cause": False,
                },
            },
            {
                "properties": {"status": {"const": "COMPLETED"}, "error": False, "cause": False},
                "required": ["result"],
            },
            {
                "properties": {"status": {"const": "FAILED"}, "result": False},
                "required": ["error", "cause"],
            },
        ],
        "additionalProperties": False,
    },
    "Problem": {
        "type": "object",
        "description": "RFC 9457.",
        "required": ["type", "title", "status", "detail", "replayed"],
        "properties": {
            "type": {"enum": [PROBLEM_TYPE + name for name in PROBLEMS]},
            "title": {"type": "string"},
            "status": {"enum": sorted({status.value for status, _ in PROBLEMS.values()})},
            "detail": {"type": "string"},
            "replayed": {"type": "boolean"},
        },
        "additionalProperties": False,
    },
}

PARAMETERS: dict[str, Any] = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": True,
        "description": f"The operation's key, 1 to {LONGEST_KEY} characters: between double quotes, or bare, "
        "without blanks and commas. Send the header once. "
        "Each caller has keys of their own. The same key with the same payload is the same request, however "
        "often it comes.",
        "schema": {"type": "string", "pattern": f"^(?:{QUOTED}|{BARE})$"},
        "example": '"order-1"',
    },
    "Prefer": {
        "name": "Prefer",
        "in": "header",
        "description": f"`wait=N` (RFC 7240) waits up to N seconds for the end, {LONGEST_WAIT_SECONDS} at "
        "the most, and two seconds at least for what does not run. With `wait=0` a POST that finds its "
        "request running is a 409.",
        "schema": {"type": "string"},
        "example": "wait=10",
    },
    "RequestId": {
        "name": "requestId",
        "in": "path",
        "required": True,
        "description": "The last part of Location: the key, percent-encoded. A key that no path carries, for "
        "example one with a slash, is `~` and its base64url.",
        "schema": {"type": "string", "minLength": 1},
        "example": "order-1",
    },
}

TAKES: dict[str, Any] = {
    "post": {
        "parameters": ["IdempotencyKey", "Prefer"],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Payload"}}},
        },
    },
    "get": {"parameters": ["RequestId", "Prefer"]},
}
"""The parameters and the body of each method."""

_HEADERS: dict[str, Any] = {
    "Idempotent-Replayed": {
        "description": "Whether this is the answer to an earlier request with the same key.",
        "required": True,
        "schema": _BOOLEAN,
    },
    "Cache-Control": {"required": True, "schema": {"const": "no-store"}},
    "X-Content-Type-Options": {"required": True, "schema": {"const": "nosniff"}},
}
_LOCATION = {
    "Location": {
        "description": "Where to ask what became of the request.",
        "required": True,
        "schema": {"type": "string", "pattern": "^/requests/[^/?#]+$"},
    }
}
_MAYBE_LOCATION = {"Location": {"schema": _LOCATION["Location"]["schema"], "description": "If it runs."}}
_APPLIED = {
    "Preference-Applied": {
        "description": "If Prefer asked for it: the longest wait for the answer.",
        "schema": {"type": "string", "pattern": "^wait=[0-9]+$"},
    }
}
_RETRY_AFTER = {
    "Retry-After": {
        "description": "Send the same request again after so many seconds.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    }
}
_RATE_LIMIT = {
    "RateLimit-Policy": {
        "description": "If the rate limit is used up: its window, quota and seconds "
        "(draft-ietf-httpapi-ratelimit-headers-10).",
        "schema": {"type": "string", "pattern": '^"[a-z0-9]+";q=[0-9]+;w=[0-9]+$'},
    },
    "RateLimit": {
        "description": "If the rate limit is used up: nothing is left for so many seconds.",
        "schema": {"type": "string", "pattern": '^"[a-z0-9]+";r=0;t=[0-9]+$'},
    },
}
_ACCEPT_ENCODING = {
    "Accept-Encoding": {
        "description": "How a body may be encoded: not at all.",
        "required": True,
        "schema": {"const": "identity"},
    }
}


def _request(description: str, headers: dict[str, Any]) -> dict[str, Any]:
    return _response(description, "application/json", "Request", headers)


def _problem(description: str, headers: dict[str, Any]) -> dict[str, Any]:
    return _response(description, "application/problem+json", "Problem", headers)


def _response(description: str, kind: str, schema: str, headers: dict[str, Any]) -> dict[str, Any]:
    content = {kind: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "headers": _HEADERS | headers, "content": content}


_FOR_ALL: dict[int, Any] = {
    403: _problem("The authorizer does not say who calls. Nothing was started.", {}),
    500: _problem("The request's record or its large result cannot be read, as the title says.", {}),
    429: _problem("Throttled. The same request is safe to send again.", _RETRY_AFTER),
}

START: dict[str, Any] = {
    "summary": "Start a request, or find the one already started",
    "operation_id": "startRequest",
    "responses": {
        200: _request("Finished, with its result or its error.", _APPLIED),
        202: _request("Running.", _LOCATION | _APPLIED),
        400: _problem("Key or payload cannot be used. Nothing was started.", {}),
        409: _problem("Running, and `Prefer: wait=0`; or attempted too often.", _MAYBE_LOCATION | _APPLIED),
        413: _problem("The payload is too large. Nothing was started.", {}),
        415: _problem("The body is compressed. Nothing was started.", _ACCEPT_ENCODING),
        422: _problem("The key was used with another payload. The detail says if anything was started.", {}),
        503: _problem("AWS does not answer; or nothing has happened yet, as the title says.", _RETRY_AFTER),
        **_FOR_ALL,
        429: _problem(
            "Throttled, or the rate limit is used up, as the title says. The same request is safe to send "
            "again.",
            _RETRY_AFTER | _RATE_LIMIT | _APPLIED,
        ),
    },
}
READ: dict[str, Any] = {
    "summary": "Read the state of a request",
    "description": "After FAILED with a detail the answer is not final, and the detail says why. Either the "
    "same POST starts the next attempt, or a person decides and the answer may change, or the key was sent "
    "with another payload than the request of its business key has. After RateLimited the "
    "same POST starts the next attempt once the window is over, whose end the cause names.",
    "operation_id": "readRequest",
    "responses": {
        200: _request("Its state, with its result or its error once it is finished.", _APPLIED),
        404: _problem(
            "This caller has started no such request, or its record has expired. Where the payload has the "
            "business key, it may also be too old to be found by its key.",
            {},
        ),
        503: _problem("AWS does not answer.", _RETRY_AFTER),
        **_FOR_ALL,
    },
}
