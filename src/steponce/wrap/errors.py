"""Why a definition cannot be wrapped."""

from __future__ import annotations

from collections.abc import Sequence

from steponce.errors import SteponceError


class CannotWrap(SteponceError):
    """
    The definition cannot be wrapped, or not in this form. Nothing was written.

    Args:
        reasons: One sentence each, with the state that it is about.
    """

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(" ".join(reasons))
        self.reasons = list(reasons)
