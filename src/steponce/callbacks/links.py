"""
Signs and verifies links. The holder of a link may answer one step, until a time, with certain outcomes.

A link carries the step's id and never its task token. The signature is an HMAC-SHA256 over id, expiry and
allowed outcomes. The key is a secret with two valid versions, so rotating it does not break links that were
sent.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from botocore.exceptions import ClientError

from steponce.aws import times
from steponce.aws.errors import answering, error_code
from steponce.errors import Forbidden, InvalidSetting, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

CACHED_SECONDS = 10
"""
How long cached keys sign and verify links. A key that was rotated out stays valid no longer than this, and
signs no longer than this. Forged links cannot cause more frequent calls of Secrets Manager. A key that is
younger does not sign, because a function with cached keys would take its links for forged.
"""

UNANSWERED_SECONDS = 300
"""How long cached keys sign and verify links while Secrets Manager does not answer."""


class Keys:
    """
    The signing key and the one before it, read from Secrets Manager and cached.

    Args:
        secrets: A Secrets Manager client that may read the secret.
        secret: Its ARN or name.
    """

    def __init__(self, secrets: SecretsManagerClient, secret: str) -> None:
        self._secrets = secrets
        self._secret = secret
        self._keys: list[str] = []
        self._made: datetime | None = None
        self._read_at: datetime | None = None

    def newest(self) -> str:
        """
        The key that signs: the newest, or for its first seconds the one before it.

        Raises:
            InvalidSetting: the key is no text.
            Unavailable: Secrets Manager did not answer; safe to try again.
        """
        keys = self.valid()
        is_young = self._made is not None and times.now() - self._made < timedelta(seconds=CACHED_SECONDS)
        return keys[-1 if is_young else 0]

    def valid(self) -> list[str]:
        """The keys that verify, newest first. Raises as `newest`."""
        if self.are_old():
            try:
                self._read()
            except Unavailable:
                if self._are_older_than(UNANSWERED_SECONDS):
                    raise
        return self._keys

    def are_old(self) -> bool:
        """Whether the keys may have been rotated: Secrets Manager does not answer."""
        return self._are_older_than(CACHED_SECONDS)

    def _are_older_than(self, seconds: int) -> bool:
        """
        Measured by the clock of the day: a monotonic one stands still while Lambda has frozen the function.

        A clock that was set back tells no age, so the keys count as old.
        """
        if self._read_at is None:
            return True
        return not timedelta() <= times.now() - self._read_at < timedelta(seconds=seconds)

    def _read(self) -> None:
        began = times.now()  # the secret may be rotated between the two calls
        (current, self._made), (previous, _) = self._version("AWSCURRENT"), self._version("AWSPREVIOUS")
        self._keys = [key for key in (current, previous) if key]
        self._read_at = began

    def _version(self, stage: str) -> tuple[str | None, datetime | None]:
        """A key, and when it was made."""
        try:
            with answering("Secrets Manager"):
                answer = self._secrets.get_secret_value(SecretId=self._secret, VersionStage=stage)
        except ClientError as error:
            if stage == "AWSPREVIOUS" and error_code(error) == "ResourceNotFoundException":
                return None, None
            raise
        if "SecretString" not in answer and stage == "AWSCURRENT":
            raise InvalidSetting(
                f"The secret {self._secret} has no text: its key was put with --secret-binary. Move its "
                "AWSCURRENT back to the version before, and put a new key with --secret-string."
            )
        return answer.get("SecretString"), answer.get("CreatedDate")  # bytes have never signed a link


def sign(keys: Keys, step_id: str, expires_at: str, outcomes: Sequence[str]) -> str:
    """
    Make the path and query of a link.

    Args:
        keys: The signing keys; the newest signs.
        step_id: The awaiting-step id.
        expires_at: When the link expires (UTC text).
        outcomes: The outcomes that the link may answer: success, failure, heartbeat.
    """
    expires, allow = str(times.epoch_seconds(expires_at)), ",".join(sorted(outcomes))
    query = {"expires": expires, "allow": allow, "signature": _mac(keys.newest(), step_id, expires, allow)}
    return f"/callbacks/{step_id}?{urlencode(query)}"


def verify(keys: Keys, step_id: str, query: Mapping[str, str]) -> frozenset[str]:
    """
    Verify a link in constant time.

    Args:
        keys: The signing keys; any valid one may have signed the link.
        step_id: From the link's path.
        query: The link's query parameters.

    Returns:
        The outcomes that the link allows.

    Raises:
        Forbidden: the signature is missing or wrong, or the link has expired.
        Unavailable: no key that is known has signed it, and Secrets Manager does not tell newer ones.
    """
    expires, allow = query.get("expires", ""), query.get("allow", "")
    given = query.get("signature", "").encode(errors="replace")

    macs = [_mac(key, step_id, expires, allow).encode() for key in keys.valid()]
    if True not in [hmac.compare_digest(mac, given) for mac in macs]:  # all are compared
        if keys.are_old():
            raise Unavailable(
                "Secrets Manager does not tell the newest key. The same call is safe to try again."
            )
        raise Forbidden("This link is not genuine. Use the link as it was sent.")
    if int(expires) <= times.now().timestamp():
        raise Forbidden(
            "This link has expired. If a newer one was sent, use that. Otherwise its step waits for no "
            "answer any more, and an answer that had arrived before stands."
        )
    return frozenset(allow.split(","))


def _mac(key: str, step_id: str, expires: str, allow: str) -> str:
    signed = f"{step_id}\n{expires}\n{allow}".encode(errors="surrogatepass")
    return hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()
