"""The address of a request: its key as one part of a path, and back."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from urllib.parse import quote

_MARK = "~"
_CARRIED = re.compile(r"(?!~|\.{1,2}$)[^/?#%\\\"`]+")
"""What arrives as it was sent: the gateway decodes a path before it looks for `/` and `?` in it."""


def address_of(key: str) -> str:
    """
    The path of a request: its key, percent-encoded.

    A key that would not survive the way through the gateway (`a/b`, `?`, `..`) is written as `~` and its
    base64url instead.
    """
    if _CARRIED.fullmatch(key):
        return "/requests/" + quote(key, safe="")
    return "/requests/" + _MARK + urlsafe_b64encode(key.encode()).decode().rstrip("=")


def key_in(segment: str) -> str:
    """The key in the last part of a path, once decoded: what `address_of` has written, or the key itself."""
    coded = segment.removeprefix(_MARK)
    if coded == segment:
        return segment
    try:
        key = urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    except ValueError:
        return segment
    return key if address_of(key) == "/requests/" + segment else segment
