"""
The template's event source mappings: the queues whose messages a function gets.

Filters are refused. Mappings of streams, and of queues that the template does not make, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from steponce.local.errors import TemplateError, not_supported
from steponce.local.template.physical_names import EVENT_SOURCE, QUEUE
from steponce.local.template.plan import MappingPlan, QueuePlan
from steponce.local.template.resources import Resources
from steponce.local.template.scalars import whole_number

_DEFAULT_BATCH_SIZE = 10
# How many batches Lambda begins with; a worker pool has not many more workers.
_MOST_BATCHES = 5


def read_mappings(resources: Resources, queues: Iterable[QueuePlan]) -> list[MappingPlan]:
    """
    The mappings of these queues that are enabled.

    Raises:
        TemplateError: a mapping filters its messages.
    """
    by_arn = {resources.names.arn(QUEUE, queue.name): queue for queue in queues}
    found = []
    for logical_id, _, properties in resources.of_kind(EVENT_SOURCE):
        arn = properties.get("EventSourceArn")
        if arn not in by_arn or str(properties.get("Enabled", True)).lower() == "false":
            continue
        if "FilterCriteria" in properties:
            raise TemplateError(not_supported(f"FilterCriteria ({logical_id}). Filter in the function."))
        most = properties.get("ScalingConfig", {}).get("MaximumConcurrency", _MOST_BATCHES)
        found.append(
            MappingPlan(
                queue=by_arn[arn],
                queue_arn=arn,
                function=str(properties["FunctionName"]),
                batch_size=whole_number(logical_id, properties, "BatchSize", _DEFAULT_BATCH_SIZE),
                window_seconds=whole_number(logical_id, properties, "MaximumBatchingWindowInSeconds", 0),
                concurrency=min(int(most), _MOST_BATCHES),
                reports_failures="ReportBatchItemFailures" in properties.get("FunctionResponseTypes", []),
            )
        )
    return found
