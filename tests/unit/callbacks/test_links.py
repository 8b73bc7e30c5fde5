"""Signed links: what a genuine one allows, and that nothing else is taken for one."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from steponce.aws import times
from steponce.callbacks import links
from steponce.callbacks.links import CACHED_SECONDS, UNANSWERED_SECONDS, Keys, sign, verify
from steponce.errors import Forbidden, InvalidSetting, Unavailable
from tests.fakes.errors import client_error
from tests.unit.shared_clients import shared

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
STEP, OTHER_STEP = "as_1", "as_2"
EXPIRES = "2026-01-31T13:00:00.000Z"
BOTH = ["success", "failure"]
BINARY = "binary"
"""Stands for a key that is bytes, and no text."""


class Secret:
    """Secrets Manager with one secret: its current and its previous key. Counts how often it is read."""

    def __init__(self, current: str = "key-1", previous: str | None = None) -> None:
        self.versions = {"AWSCURRENT": current, "AWSPREVIOUS": previous}
        self.made = NOW - timedelta(days=1)
        self.reads = 0

    def get_secret_value(self, SecretId: str, VersionStage: str) -> dict[str, Any]:
        assert "callback-key" == SecretId
        self.reads += VersionStage == "AWSCURRENT"
        key = self.versions[VersionStage]
        if key is None:
            raise client_error("ResourceNotFoundException")
        content = {"SecretBinary": b"key"} if key == BINARY else {"SecretString": key}
        return content | {"CreatedDate": self.made}

    def rotate(self, key: str, made: datetime = NOW - timedelta(days=1)) -> None:
        """A new key; the one before the last is valid no more."""
        self.made = made
        self.versions = {"AWSCURRENT": key, "AWSPREVIOUS": self.versions["AWSCURRENT"]}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """It is twelve, and no second passes by itself."""
    clock = Clock()
    monkeypatch.setattr(times, "now", clock.now)
    return clock


@pytest.fixture
def secret() -> Secret:
    """A secret that was never rotated."""
    return Secret()


@pytest.fixture
def keys(secret: Secret) -> Keys:
    """Its keys."""
    return keys_of(secret)


def keys_of(secret: Secret) -> Keys:
    """One function's cache."""
    return Keys(secret, "callback-key")


def query(link: str) -> dict[str, str]:
    """A link's query, as the HTTP API hands it over."""
    return {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}


def test_a_genuine_link_allows_what_it_says(keys: Keys):
    """Its path names the step; the answer is the outcomes."""
    link = sign(keys, STEP, EXPIRES, BOTH)

    assert "/callbacks/as_1" == urlsplit(link).path
    assert {"success", "failure"} == verify(keys, STEP, query(link))
    assert {"heartbeat"} == verify(keys, STEP, query(sign(keys, STEP, EXPIRES, ["heartbeat"])))


def test_a_key_that_is_bytes_is_named_and_a_former_one_does_no_harm(secret: Secret, keys: Keys):
    """Put by mistake. The next rotation is the way out, and makes it the previous key."""
    secret.rotate(BINARY)
    with pytest.raises(InvalidSetting, match=r"The secret callback-key has no text.* with --secret-string\."):
        sign(keys, STEP, EXPIRES, BOTH)

    secret.rotate("key-2")
    assert set(BOTH) == verify(keys, STEP, query(sign(keys, STEP, EXPIRES, BOTH)))


def test_equal_links_are_equal_texts(keys: Keys):
    """The order of outcomes does not matter."""
    assert sign(keys, STEP, EXPIRES, BOTH) == sign(keys, STEP, EXPIRES, BOTH[::-1])


def forgeries(keys: Keys) -> dict[str, tuple[str, dict[str, str]]]:
    """Every way to make a link that nobody gave out, from one that somebody did."""
    given = query(sign(keys, STEP, EXPIRES, ["failure"]))
    signature = given["signature"]
    other_key = query(sign(keys_of(Secret("key-2")), STEP, EXPIRES, ["failure"]))
    changed = "0" if signature[0] != "0" else "1"
    return {
        "another step": (OTHER_STEP, given),
        "a later expiry": (STEP, given | {"expires": str(int(given["expires"]) + 1)}),
        "the expiry in other words": (STEP, given | {"expires": f"+{given['expires']}"}),
        "another outcome": (STEP, given | {"allow": "success"}),
        "one more outcome": (STEP, given | {"allow": "failure,success"}),
        "a field moved into another": (
            f"{STEP}\n{given['expires']}",
            given | {"expires": "failure", "allow": ""},
        ),
        "another key": (STEP, other_key),
        "a changed digit": (STEP, given | {"signature": changed + signature[1:]}),
        "capital digits": (STEP, given | {"signature": signature.upper()}),
        "a cut signature": (STEP, given | {"signature": signature[:-1]}),
        "a longer signature": (STEP, given | {"signature": f"{signature}0"}),
        "an empty signature": (STEP, given | {"signature": ""}),
        "no signature": (STEP, {name: given[name] for name in ("expires", "allow")}),
        "no expiry": (STEP, {name: given[name] for name in ("signature", "allow")}),
        "no outcomes": (STEP, {name: given[name] for name in ("signature", "expires")}),
        "nothing": (STEP, {}),
        "an expiry that is no number": (STEP, given | {"expires": "abc"}),
        "a signature that is no text": (STEP, given | {"signature": "é\ud800\x00"}),
        "fields that are no text": (STEP, given | {"expires": "\ud800", "allow": "\udfff"}),
        "a step that is no text": ("\ud800", given),
    }


@pytest.mark.parametrize("forgery", forgeries(keys_of(Secret())))
def test_a_forged_link_is_refused(keys: Keys, forgery: str):
    """And the refusal tells neither the key nor the signature that it should have had."""
    step_id, forged = forgeries(keys)[forgery]

    with pytest.raises(Forbidden, match="not genuine") as refused:
        verify(keys, step_id, forged)

    right = query(sign(keys, STEP, EXPIRES, ["failure"]))["signature"]
    assert "key-1" not in str(refused.value)
    assert right not in str(refused.value)


@given(
    st.dictionaries(
        st.sampled_from(["expires", "allow", "signature", "x"]),
        st.text(st.characters(codec=None), max_size=20),
    ),
    st.text(max_size=9),
)
def test_garbage_is_refused_and_never_crashes(garbage: dict[str, str], step_id: str):
    """Whatever stands in the query."""
    with pytest.raises(Forbidden):
        verify(keys_of(Secret()), step_id, garbage)


@pytest.mark.parametrize(
    ("expires", "is_valid"),
    [
        ("2026-01-31T11:59:59.000Z", False),
        ("2026-01-31T12:00:00.000Z", False),
        ("2026-01-31T12:00:00.001Z", True),
        ("2026-01-31T12:00:01.000Z", True),
    ],
)
def test_a_link_is_valid_until_its_time(keys: Keys, expires: str, is_valid: bool):
    """A link has whole seconds, rounded up: it never ends before its step."""
    given = query(sign(keys, STEP, expires, BOTH))

    if is_valid:
        assert {"success", "failure"} == verify(keys, STEP, given)
    else:
        with pytest.raises(Forbidden, match=r"has expired\. If a newer one was sent"):
            verify(keys, STEP, given)


def test_a_forged_link_does_not_learn_that_it_has_expired(keys: Keys):
    """Only the genuine one is told."""
    given = query(sign(keys, STEP, "2026-01-31T11:00:00.000Z", BOTH))

    with pytest.raises(Forbidden, match="not genuine"):
        verify(keys, OTHER_STEP, given)


# -- Rotation ------------------------------------------------------------------------------------


def test_two_keys_are_valid_at_once(secret: Secret, keys: Keys, clock: Clock):
    """A link survives one rotation, and not two; the newest key signs."""
    first = query(sign(keys, STEP, EXPIRES, BOTH))
    secret.rotate("key-2")
    clock.seconds += CACHED_SECONDS
    second = query(sign(keys, STEP, EXPIRES, BOTH))

    assert first["signature"] != second["signature"]
    for link in (first, second):
        verify(keys, STEP, link)

    secret.rotate("key-3")
    clock.seconds += CACHED_SECONDS
    verify(keys, STEP, second)
    with pytest.raises(Forbidden):
        verify(keys, STEP, first)


def test_a_key_that_was_rotated_out_opens_nothing_ten_seconds_later(secret: Secret, keys: Keys, clock: Clock):
    """However often its links are tried meanwhile, and although the cache still knows it."""
    given = query(sign(keys, STEP, EXPIRES, BOTH))
    verify(keys, STEP, given)
    secret.rotate("key-2")
    secret.rotate("key-3")
    for _ in range(CACHED_SECONDS - 1):
        clock.seconds += 1
        verify(keys, STEP, given)

    clock.seconds += 1
    with pytest.raises(Forbidden, match="not genuine"):
        verify(keys, STEP, given)


def test_keys_are_as_old_as_the_begin_of_their_read(
    secret: Secret, keys: Keys, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    """A rotation between its two calls leaves the old key twice."""
    read = secret.get_secret_value

    def slowly(SecretId: str, VersionStage: str) -> dict[str, Any]:
        answer = read(SecretId, VersionStage)
        if VersionStage == "AWSCURRENT":
            clock.seconds += 2
            secret.rotate("key-2")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(secret, "get_secret_value", slowly)
        assert ["key-1", "key-1"] == keys.valid()
    clock.seconds += CACHED_SECONDS - 2
    assert ["key-2", "key-1"] == keys.valid()


def test_a_link_with_a_key_that_is_newer_than_the_cache_is_genuine(secret: Secret, keys: Keys, clock: Clock):
    """The secret was rotated under the cache; another look finds the new key."""
    keys.valid()
    secret.rotate("key-2")
    newer = query(sign(keys_of(secret), STEP, EXPIRES, BOTH))
    clock.seconds += CACHED_SECONDS

    verify(keys, STEP, newer)

    assert "key-2" == keys.newest()


def test_a_link_made_right_after_a_rotation_is_genuine_everywhere(secret: Secret, keys: Keys):
    """Also for a function that has looked at the keys just before, and is answered at once."""
    keys.valid()
    secret.rotate("key-2", made=NOW)
    verify(keys, STEP, query(sign(keys_of(secret), STEP, EXPIRES, BOTH)))


def test_a_link_made_after_two_rotations_is_genuine(secret: Secret, keys: Keys, clock: Clock):
    """Also by a function that has signed with the first key before. After a leak a key is rotated twice."""
    sign(keys, STEP, EXPIRES, BOTH)
    secret.rotate("key-2")
    secret.rotate("key-3")
    clock.seconds += CACHED_SECONDS

    verify(keys_of(secret), STEP, query(sign(keys, STEP, EXPIRES, BOTH)))


def test_a_cached_key_signs_once_it_is_old_enough(secret: Secret, keys: Keys, clock: Clock):
    """The key before it may be rotated out by then."""
    secret.rotate("key-2", made=NOW - timedelta(seconds=CACHED_SECONDS / 2))
    assert "key-1" == keys.newest()

    clock.seconds += CACHED_SECONDS / 2

    assert "key-2" == keys.newest()
    assert 1 == secret.reads


def test_a_function_that_was_frozen_for_an_hour_asks_for_the_keys(
    secret: Secret, keys: Keys, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    """Lambda stops its monotonic clock meanwhile. The key of before may have leaked."""
    monkeypatch.setattr("time.monotonic", lambda: 1000.0)
    keys.valid()
    secret.rotate("key-2")
    secret.rotate("key-3")
    clock.seconds += 3600

    assert ["key-3", "key-2"] == keys.valid()


def test_a_clock_that_was_set_back_keeps_no_key_for_longer(secret: Secret, keys: Keys, clock: Clock):
    """It does not tell how old they are."""
    keys.valid()
    secret.rotate("key-2")
    clock.seconds -= 60

    assert "key-2" == keys.valid()[0]


def test_the_first_key_of_all_signs_at_once():
    """There is none before it."""
    secret = Secret()
    secret.made = NOW
    verify(keys_of(secret), STEP, query(sign(keys_of(secret), STEP, EXPIRES, BOTH)))


def test_signing_reads_the_keys_once_in_ten_seconds(secret: Secret, keys: Keys, clock: Clock):
    """However many links it makes."""
    for _ in range(10):
        sign(keys, STEP, EXPIRES, BOTH)
        clock.seconds += CACHED_SECONDS / 10
    assert 1 == secret.reads

    sign(keys, STEP, EXPIRES, BOTH)
    assert 2 == secret.reads


@pytest.mark.parametrize("forged", [True, False])
def test_nobody_who_tries_links_makes_us_read_the_keys_each_time(
    secret: Secret, keys: Keys, clock: Clock, forged: bool
):
    """A look is due once in ten seconds, however many links come, genuine or not."""
    given = query(sign(keys_of(Secret("key-0" if forged else "key-1")), STEP, EXPIRES, BOTH))
    for tenth in range(300):
        clock.seconds = 2000.0 + tenth / 10
        if forged:
            with pytest.raises(Forbidden):
                verify(keys, STEP, given)
        else:
            verify(keys, STEP, given)

    assert 3 == secret.reads


def test_links_are_checked_for_a_while_without_secrets_manager(
    secret: Secret, keys: Keys, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    """With the keys as they were last seen; then the answer is to come again."""
    given = query(sign(keys, STEP, EXPIRES, BOTH))

    def down(**_call: Any) -> None:
        raise client_error("ThrottlingException")

    monkeypatch.setattr(secret, "get_secret_value", down)
    clock.seconds += UNANSWERED_SECONDS - 1
    verify(keys, STEP, given)

    clock.seconds += 1
    with pytest.raises(Unavailable):
        verify(keys, STEP, given)


def test_without_secrets_manager_an_unknown_signature_may_be_of_a_newer_key(
    secret: Secret, keys: Keys, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    """So the answer is to come again; with keys that are known to be the newest, the link is forged."""
    keys.valid()
    secret.rotate("key-2")
    given = query(sign(keys_of(secret), STEP, EXPIRES, BOTH))
    with pytest.raises(Forbidden):
        verify(keys, STEP, given)

    def down(**_call: Any) -> None:
        raise client_error("ThrottlingException")

    clock.seconds += CACHED_SECONDS
    with monkeypatch.context() as outage:
        outage.setattr(secret, "get_secret_value", down)
        with pytest.raises(Unavailable):
            verify(keys, STEP, given)
    verify(keys, STEP, given)


def test_a_secret_that_cannot_be_read_is_not_a_forged_link(secret: Secret, keys: Keys):
    """Throttling is worth another try; a missing secret is the set-up's fault."""

    def refuse(**_call: Any) -> None:
        raise client_error(code)

    secret.get_secret_value = refuse
    code = "ThrottlingException"
    with pytest.raises(Unavailable):
        verify(keys, STEP, {})
    code = "ResourceNotFoundException"
    with pytest.raises(ClientError):
        verify(keys, STEP, {})


def test_a_key_before_that_may_not_be_read_is_not_taken_for_none(
    secret: Secret, keys: Keys, monkeypatch: pytest.MonkeyPatch
):
    """A link that it signed would be called forged, for good. As an error of the set-up it may be mended."""
    given = query(sign(keys_of(secret), STEP, EXPIRES, BOTH))
    secret.rotate("key-2")
    read = secret.get_secret_value

    def refuse(SecretId: str, VersionStage: str) -> dict[str, Any]:
        if VersionStage == "AWSPREVIOUS":
            raise client_error("AccessDeniedException")
        return read(SecretId, VersionStage)

    with monkeypatch.context() as patch:
        patch.setattr(secret, "get_secret_value", refuse)
        with pytest.raises(ClientError, match="AccessDeniedException"):
            verify(keys, STEP, given)
    verify(keys, STEP, given)


def test_an_empty_key_signs_for_nobody():
    """A previous version without content is no key."""
    forged = query(sign(keys_of(Secret("key-2")), STEP, EXPIRES, BOTH))
    empty = hmac.new(b"", f"{STEP}\n{forged['expires']}\n{forged['allow']}".encode(), "sha256").hexdigest()

    with pytest.raises(Forbidden):
        verify(keys_of(Secret("key-1", previous="")), STEP, forged | {"signature": empty})


@pytest.fixture
def secrets() -> Iterator[Any]:
    """Secrets Manager in moto."""
    with mock_aws():
        yield shared("secretsmanager")


def test_the_keys_come_from_secrets_manager(secrets: Any, clock: Clock):
    """Its stages AWSCURRENT and AWSPREVIOUS are the two keys; at first there is only one."""
    secrets.create_secret(Name="callback-key", SecretString="key-1")
    keys = Keys(secrets, "callback-key")
    assert ["key-1"] == keys.valid()

    secrets.put_secret_value(SecretId="callback-key", SecretString="key-2")
    clock.seconds += CACHED_SECONDS

    assert ["key-2", "key-1"] == keys.valid()


# -- Constant time -------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["key-2", "key-1", "none of them"])
def test_every_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, which: str):
    """Whichever key signed, all are compared, and only by compare_digest."""
    compared: list[tuple[Any, Any]] = []

    def compare(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return bool(one == other)

    given = query(sign(keys_of(Secret(which)), STEP, EXPIRES, BOTH))
    monkeypatch.setattr(hmac, "compare_digest", compare)

    if which == "none of them":
        with pytest.raises(Forbidden):
            verify(keys_of(Secret("key-2", "key-1")), STEP, given)
    else:
        verify(keys_of(Secret("key-2", "key-1")), STEP, given)

    signature = given["signature"].encode()
    assert [signature, signature] == [other for _, other in compared][:2]
    assert 2 == len({one for one, _ in compared})


# -- A rule that cannot fail is no rule ----------------------------------------------------------

PLANTED = [
    ('f"{step_id}\\n{expires}\\n{allow}".encode(', 'f"{expires}\\n{allow}".encode('),
    ('f"{step_id}\\n{expires}\\n{allow}".encode(', 'f"{step_id}\\n{allow}".encode('),
    ('f"{step_id}\\n{expires}\\n{allow}".encode(', 'f"{step_id}\\n{expires}".encode('),
    ("hmac.compare_digest(mac, given)", "mac.lower() == given.lower()"),
    ("hmac.compare_digest(mac, given)", "mac.startswith(given)"),
    ("hmac.compare_digest(mac, given)", "given.startswith(mac)"),
    ('.encode(errors="surrogatepass")', ".encode()"),
    ('query.get("signature", "").encode(errors="replace")', 'query.get("signature", "").encode()'),
    ('query.get("signature", "")', 'query["signature"]'),
    ("hmac.new(key.encode()", 'hmac.new(b""'),
]


@pytest.mark.parametrize(("right", "wrong"), PLANTED)
def test_a_planted_fault_is_caught(right: str, wrong: str):
    """One of the forged links above is taken, or crashes."""
    source = Path(str(links.__file__)).read_text()
    assert 1 == source.count(right)
    spoiled: dict[str, Any] = {"__name__": links.__name__}
    exec(compile(source.replace(right, wrong), "spoiled", "exec"), spoiled)  # noqa: S102 - our own text
    keys = spoiled["Keys"](Secret(), "callback-key")

    def caught(step_id: str, forged: dict[str, str]) -> bool:
        try:
            spoiled["verify"](keys, step_id, forged)
        except Forbidden:
            return False
        except (KeyError, ValueError):
            return True
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "_mac", spoiled["_mac"])
        assert [name for name, (step_id, forged) in forgeries(keys).items() if caught(step_id, forged)]
