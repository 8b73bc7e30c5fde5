"""Settings: texts by name become one typed object, or an error that says what to set."""

from dataclasses import dataclass
from typing import Literal

import pytest

from steponce import environment
from steponce.errors import InvalidSetting
from steponce.request.settings import RequestRules
from tests.unit.triggers.world import SETTINGS, World, function

GIVEN = {"TableName": "locks", "WhenUnknown": "hold", "Tries": "3", "MaxSeconds": "2.5", "Kept": "never"}


@dataclass(frozen=True)
class Retries:
    """Settings that several classes share."""

    tries: int
    max_seconds: float


@dataclass(frozen=True)
class Settings:
    """One field of each type."""

    table_name: str
    when_unknown: Literal["hold", "take-over"]
    retries: Retries
    kept: float | None = 60
    path: str | None = None
    shards: int = 10


def test_each_field_is_read_as_its_type():
    """Empty counts as missing, and what is missing has its default."""
    read = Settings("locks", "hold", Retries(3, 2.5), None)
    assert read == environment.read(Settings, GIVEN)
    assert read == environment.read(Settings, GIVEN | {"Path": "", "Shards": "", "Other": "x"})
    assert 0 == environment.read(Settings, GIVEN | {"Shards": "0"}).shards
    assert 60 == environment.read(Settings, GIVEN | {"Kept": ""}).kept
    assert 9.5 == environment.read(Settings, GIVEN | {"Kept": "9.5"}).kept


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("TableName", "", "TableName is missing .* Set it to text"),
        ("Tries", "", "Tries is missing .* Set it to a whole number"),
        ("Tries", "3.0", "Tries is '3.0'. Set it to a whole number"),
        ("Tries", "-1", "Tries is '-1'"),
        ("Tries", "²", "Tries is '²'"),
        ("MaxSeconds", "soon", "MaxSeconds is 'soon'. Set it to a number"),
        ("MaxSeconds", "nan", "MaxSeconds is 'nan'"),
        ("MaxSeconds", "inf", "MaxSeconds is 'inf'"),
        ("MaxSeconds", "never", "MaxSeconds is 'never'"),
        ("Kept", "always", "Kept is 'always'. Set it to a number, or never"),
        ("WhenUnknown", "take", "WhenUnknown is 'take'. Set it to hold or take-over"),
    ],
)
def test_a_setting_that_is_missing_or_malformed_is_named(name: str, text: str, message: str):
    """With what to set."""
    with pytest.raises(InvalidSetting, match=message):
        environment.read(Settings, GIVEN | {name: text})


def test_who_shares_a_table_has_to_say_its_times():
    """Though the rules have defaults, for a client that is made by hand."""
    given = {"KeyPrefix": "shop", "ExpectedSeconds": "60", "RetentionSeconds": "never"}
    assert RequestRules("shop", 60, None) == RequestRules.from_settings(given)
    for name in given:
        with pytest.raises(InvalidSetting, match=f"{name} is missing"):
            RequestRules.from_settings(given | {name: ""})


def test_a_function_with_a_wrong_setting_does_not_load():
    """Lambda logs the message, and nothing was done."""
    for name in ("start_from_queue", "start_from_event", "resend_request"):
        with (
            pytest.raises(InvalidSetting, match="The setting ResendTries is 'many'"),
            function(name, World(), **SETTINGS | {"ResendTries": "many"}),
        ):
            pass
