"""What goes wrong with the local stack itself, as opposed to the requests that run on it."""

from __future__ import annotations

from steponce.errors import SteponceError


class LocalStackError(SteponceError):
    """The stack cannot be read, started or reached."""


class FactsUnreadable(LocalStackError):
    """The file in which a running stack leaves its addresses is no such file."""


def not_supported(what: str) -> str:
    """The stack's answer to a call of something that it does not run."""
    return f"not supported on the local stack: {what}"


class TemplateError(LocalStackError):
    """The template, one of its files or one of its parameters is not what it must be."""
