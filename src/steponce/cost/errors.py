"""Why a definition cannot be priced."""

from __future__ import annotations

from steponce.errors import SteponceError


class CannotPrice(SteponceError):
    """The definition, the region or a number is not what it must be. The message says what to give."""
