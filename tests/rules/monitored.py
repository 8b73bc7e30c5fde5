"""The nested stack with the alarms and the dashboard, and what the template hands to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from steponce.local.template.intrinsics import Resolver
from steponce.local.template.physical_names import PhysicalNames

from .documents import transformed_template
from .renderings import defaults

Document = dict[str, Any]

STACK = "steponce"
EVERYTHING = {
    "Alarms": "yes",
    "Dashboard": "yes",
    "FifoQueue": "yes",
    "StreamArn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
}
"""The values of the template's parameters with which the nested stack has all that it can have."""

ALARM, DASHBOARD, TOPIC = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::SNS::Topic"


class Nested:
    """
    The nested stack as CloudFormation makes it.

    Args:
        document: monitoring.yaml, or a spoilt copy of it.
        values: Of the template's parameters; the others have their defaults.
    """

    def __init__(self, document: Document, **values: str) -> None:
        parent = transformed_template()
        names = PhysicalNames(STACK, "us-east-1")
        self.parent = Resolver(parent, defaults() | values, names, _Outputs(self))
        stack = parent["Resources"]["Monitoring"]
        self._outside = parent["Resources"]
        self.is_made = self.parent.exists(stack)
        self.handed: dict[str, str] = self.parent.resolve(stack["Properties"]["Parameters"])
        self._document = document
        self._resolver = Resolver(document, self.handed, PhysicalNames(f"{STACK}-Monitoring", "us-east-1"))

    def of_kind(self, kind: str) -> dict[str, Document]:
        """The resolved properties of each resource of a kind that is made, by logical id."""
        return {
            name: self._resolver.resolve(item.get("Properties", {}))
            for name, item in self._document["Resources"].items()
            if item["Type"] == kind and self._resolver.exists(item)
        }

    def outputs(self) -> dict[str, str]:
        """What the template can read of it."""
        return {
            name: self._resolver.resolve(item["Value"])
            for name, item in self._document["Outputs"].items()
            if self._resolver.exists(item)
        }

    def alarms(self) -> dict[str, Document]:
        """Each by its name without the word alarm, those of the workflow's own stack too."""
        outside = {
            name: self.parent.resolve(item["Properties"])
            for name, item in self._outside.items()
            if item["Type"] == ALARM and self.parent.exists(item)
        }
        return {name.removesuffix("Alarm"): alarm for name, alarm in (self.of_kind(ALARM) | outside).items()}

    def metrics(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Namespace, name and dimensions of each metric of an alarm or a dashboard."""
        for alarm in self.alarms().values():
            queries = [query for query in alarm.get("Metrics", []) if "MetricStat" in query]
            for metric in [query["MetricStat"]["Metric"] for query in queries] or [alarm]:
                dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
                yield metric["Namespace"], metric["MetricName"], dimensions
        for dashboard in self.of_kind(DASHBOARD).values():
            for widget in json.loads(dashboard["DashboardBody"])["widgets"]:
                yield from _unfolded(widget["properties"]["metrics"])


class _Outputs:
    """What the template reads of the nested stack, as its resolver asks for it."""

    def __init__(self, nested: Nested) -> None:
        self._nested = nested

    def __contains__(self, logical_id: str) -> bool:
        return logical_id == "Monitoring"

    def output(self, _logical_id: str, _properties: Document, name: str) -> str:
        return self._nested.outputs()[name]


def _unfolded(rows: list[list[str]]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """A dashboard's metrics; a dot stands for what the row above has there."""
    above: list[str] = []
    for row in rows:
        above = [before if text == "." else text for before, text in zip(above or row, row, strict=True)]
        namespace, name, *dimensions = above
        yield namespace, name, dict(zip(dimensions[::2], dimensions[1::2], strict=True))
