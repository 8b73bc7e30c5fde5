"""
The HTTP API: a caller starts a request with a key of its own, and reads what became of it.

    routes            POST /requests and GET /requests/{requestId}
    headers           reads Idempotency-Key and Prefer
    callers           finds out who calls, and keeps the keys of two callers apart
    callers_requests  starts and reads one caller's requests
    address           a key as the last part of a path, and back
    answers           a request's state, or a problem (RFC 9457), as an HTTP response
    contract          what the API takes and answers, in the words of OpenAPI
    openapi.json      the OpenAPI document; `make openapi` writes it
"""
