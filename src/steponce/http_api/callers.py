"""Who calls, and what is theirs: two callers with the same key never meet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import quote

from steponce.errors import MissingKey, SteponceError
from steponce.request.canonical import in_one_form
from steponce.request.expressions import find
from steponce.request.settings import RequestRules

PATHS = {"jwt": "jwt.claims.sub", "iam": "iam.cognitoIdentity.identityId || iam.userArn"}
"""
Where an authorizer of each kind says who calls, unless a parameter names another place.

All users of a Cognito identity pool sign with one ARN.
"""


LONGEST_PREFIX = 1_700
"""With a machine's name (80) and a key (255) it fits into a lock token's 2,048 bytes."""


class CallerUnknown(SteponceError):
    """The authorizer does not say who calls; without a caller there is no scope to look or start in."""


@dataclass(frozen=True)
class Scope:
    """
    The part of all requests that belongs to one caller.

    Args:
        prefix: The caller and `/`, percent-encoded so that it holds no other `/`; empty if all callers
            share their keys.
    """

    prefix: str

    def request_id(self, key: str) -> str:
        """The request that this caller means by a key."""
        return self.prefix + key

    def rules(self, rules: RequestRules) -> RequestRules:
        """The machine's rules, with lock tokens that no other caller can make."""
        return replace(rules, key_prefix=f"{rules.key_prefix}/{self.prefix}".removesuffix("/"))


@dataclass(frozen=True)
class Callers:
    """
    How a caller is found.

    Args:
        path: JMESPath into what the authorizer said; None if nobody checks who calls.
    """

    path: str | None

    @classmethod
    def by_parameters(cls, http_access: str, caller_path: str) -> Self:
        """Read the template's parameters HttpAccess and CallerPath."""
        default = PATHS.get(http_access)
        return cls(default and (caller_path or default))

    def scope(self, authorizer: Mapping[str, Any]) -> Scope:
        """
        The scope of a request's sender.

        Args:
            authorizer: What the gateway's authorizer said: `requestContext.authorizer` of the event.

        Raises:
            CallerUnknown: it names no caller. Such a call never gets the scope that all share.
        """
        if self.path is None:
            return Scope("")
        try:
            caller = find(self.path, in_one_form(authorizer), "authorizer")
        except MissingKey:
            caller = None
        if not isinstance(caller, str) or not caller.strip():
            raise CallerUnknown("The authorizer does not say who calls. Look at the parameter CallerPath.")
        try:
            prefix = quote(caller, safe="") + "/"
        except UnicodeEncodeError:
            raise CallerUnknown("The caller's name holds half a character.") from None
        if len(prefix) > LONGEST_PREFIX:
            raise CallerUnknown("The caller's name is too long to be part of a lock token.")
        return Scope(prefix)
