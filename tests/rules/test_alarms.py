"""Every alarm hears a metric that somebody counts, and docs/operations.md says what it means."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .documents import FUNCTIONS, ROOT, spoilt, template

COUNTS = "steponce"
"""The namespace of our own functions' metrics."""


def alarms(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The properties of each, by its name without the word alarm."""
    return {
        name.removesuffix("Alarm"): item["Properties"]
        for name, item in document["Resources"].items()
        if item["Type"] == "AWS::CloudWatch::Alarm"
    }


def silent(document: dict[str, Any]) -> list[str]:
    """Alarms of ours whose metric no function counts."""
    counted = set(
        re.findall(r'add_metric\("(\w+)"', "".join((path / "app.py").read_text() for path in FUNCTIONS))
    )
    found = alarms(document).items()
    return [name for name, it in found if it.get("Namespace") == COUNTS and it["MetricName"] not in counted]


def test_every_alarm_hears_something() -> None:
    """A metric that nobody counts is never above its threshold."""
    assert [] == silent(template())


def test_a_misspelt_metric_is_found() -> None:
    """A rule that cannot fail is no rule."""
    wrong = spoilt(template(), {"Resources/SkippedAlarm/Properties/MetricName": "Skiped"})
    assert ["Skipped"] == silent(wrong)


@pytest.mark.parametrize("name", alarms(template()))
def test_the_operations_page_says_what_an_alarm_means(name: str) -> None:
    """In the table of the alarms, with what to run."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*) \|.*\|.*\|$", page.partition("\n## The alarms\n")[2], re.MULTILINE)
    assert name in [word for row in rows for word in re.findall(r"`(\w+)`", row)]


@pytest.mark.parametrize("metric", ["Skipped", "Unreadable", "MissingTasks", "OpenFailures"])
def test_what_the_monitor_cannot_settle_has_an_alarm(metric: str) -> None:
    """Somebody hears of it within two rounds, long before a lock is overdue by default."""
    document = template()
    (alarm,) = [
        it for it in alarms(document).values() if it.get("MetricName") == metric and "Maximum" in it.values()
    ]
    assert alarm["Period"] * alarm["EvaluationPeriods"] <= 600
    assert document["Parameters"]["ExpectedSeconds"]["Default"] > 600
