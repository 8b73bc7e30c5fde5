"""The two headers that a caller may send, Idempotency-Key and Prefer, and those that tell of a rate limit."""

import math
import re
from datetime import datetime

from steponce.aws import times
from steponce.errors import InvalidRequestId
from steponce.limits.request_limit import RequestLimit

LONGEST_KEY = 255
LONGEST_WAIT_SECONDS = 25
"""The gateway gives up after 30 seconds, and starting the request takes its time, too."""

QUOTED = rf'"(?:[ !#-\[\]-~]|\\["\\]){{1,{LONGEST_KEY}}}"'
BARE = rf"[!#-+\--~][!-+\--~]{{0,{LONGEST_KEY - 1}}}"
"""Without a comma: the gateway joins two headers to one by commas, and that must not be a key of its own."""

_KEY = re.compile(f"{QUOTED}|{BARE}")
_LONGEST_PREFER = 8_192
_PREFERENCE = re.compile(r'(?:[^,"]++|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))++', re.DOTALL)
"""Nothing is looked at twice: what is taken is never given back, and an open quote takes all the rest."""

_WAIT = re.compile(r'\s*wait\s*=\s*(?:"([0-9]+)"|([0-9]+))\s*(?:;.*)?', re.IGNORECASE | re.DOTALL)


def idempotency_key(header: str | None) -> str:
    """
    The key that a caller has given the request.

    Args:
        header: `"text"`, a structured field's string; or the text alone, without blanks and commas, as many
            clients send it. None if there is no such header.

    Returns:
        1 to 255 characters of ASCII that can be seen, and blanks between quotes.

    Raises:
        InvalidRequestId: there is no key, or it is not of this form.

    Source: draft-ietf-httpapi-idempotency-key-header-07, RFC 8941 section 3.3.3 (strings).
    """
    if header is None or not header.strip(" \t"):
        raise InvalidRequestId(
            "The header Idempotency-Key is missing. Send one with a key of your own for each operation, "
            "and the same one when you send the operation again."
        )
    text = header.strip(" \t")
    if "," in text and not re.fullmatch(QUOTED, text):
        raise InvalidRequestId(
            "The Idempotency-Key has a comma outside of double quotes, as if the header was sent twice. Send "
            "it once, and a key that has a comma between double quotes."
        )
    if not _KEY.fullmatch(text) or not text.strip('" '):
        raise InvalidRequestId(
            f"The Idempotency-Key is malformed. Send 1 to {LONGEST_KEY} visible ASCII characters, best "
            "between double quotes."
        )
    return re.sub(r'\\(["\\])', r"\1", text[1:-1]) if text.startswith('"') else text


def preferred_wait(header: str | None) -> int | None:
    """
    How many seconds a caller would wait, at most 25; None if nothing is said about it.

    Args:
        header: `wait=10`, perhaps among other preferences. What is malformed or has more than 8,192
            characters counts for nothing; of two waits the first one counts.

    Source: RFC 7240, sections 2 and 4.3.
    """
    if header is None or len(header) > _LONGEST_PREFER:
        return None
    for preference in _PREFERENCE.findall(header):
        if wait := _WAIT.fullmatch(preference):
            digits = (wait[1] or wait[2]).lstrip("0") or "0"
            return min(int(digits[:3]), LONGEST_WAIT_SECONDS)
    return None


def rate_limit_headers(limit: RequestLimit | None, resets_at: datetime) -> dict[str, str]:
    """
    Tell a caller whose requests of a window are used up when to come again.

    Args:
        limit: The machine's. None if it has none any more.
        resets_at: When the window ends.

    Returns:
        `Retry-After`, whole seconds, 1 or more; with the limit also `RateLimit-Policy` and `RateLimit`.

    Source: RFC 9110 section 10.2.3; draft-ietf-httpapi-ratelimit-headers-10, which is work in progress.
    """
    left = max(1, math.ceil((resets_at - times.now()).total_seconds()))
    headers = {"Retry-After": str(left)}
    if limit is None:
        return headers
    name = f'"{limit.window.name}"'
    policy = f"{name};q={limit.requests};w={limit.window.seconds}"
    return headers | {"RateLimit-Policy": policy, "RateLimit": f"{name};r=0;t={left}"}
