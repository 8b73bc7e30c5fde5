"""
Where moto's Step Functions interpreter, DynamoDB, SQS, SNS and EventBridge differ from AWS in ways that this
project can feel.

One module a subject, one patch a difference, each with its reason. They are made for moto 5.2; an
upgrade of moto begins with the tests of this package.
"""

from __future__ import annotations

import enum
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steponce.local.moto_patches import bus, status


def install() -> None:
    """Put every patch in place; once, before anything is served."""
    from steponce.local.moto_patches import (
        admission,
        api,
        callbacks,
        choices,
        definitions,
        escapes,
        execution_types,
        expressions,
        integrations,
        intrinsic_values,
        intrinsics,
        item_sizes,
        language,
        lifecycle,
        nested_executions,
        pace,
        paths,
        queues,
        reserved_errors,
        services,
        timeouts,
        transactions,
        waits,
    )

    pace.install()
    expressions.install()
    services.install()
    integrations.install()
    lifecycle.install()
    waits.install()
    admission.install()
    timeouts.install()
    language.install()
    paths.install()
    choices.install()
    escapes.install()
    execution_types.install()
    reserved_errors.install()
    intrinsics.install()
    intrinsic_values.install()
    callbacks.install()
    nested_executions.install()
    api.install()
    queues.install()
    transactions.install()
    item_sizes.install()
    definitions.install()


def patch_notifications() -> None:
    """Put the patch of SNS in place, once it is used."""
    from steponce.local.moto_patches import notifications

    notifications.install()


def route(endpoints: dict[str, str], region: str) -> None:
    """Set the addresses of `states`, `dynamodb`, `lambda` and `aws` as the interpreter sees them."""
    from steponce.local.moto_patches import services

    services.route(endpoints, region)


def listen(status_changed: status.Listener, was_put: bus.Listener) -> None:
    """Call these for each change of an execution's status, and for the events that PutEvents accepts."""
    from steponce.local.moto_patches import bus, status

    status.listen(status_changed)
    bus.listen(was_put)


class _BatchJobStatus(enum.StrEnum):
    """The enumeration that the interpreter wants of `moto.batch.utils`."""

    SUBMITTED = "SUBMITTED"
    PENDING = "PENDING"
    RUNNABLE = "RUNNABLE"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _BatchUtils(types.ModuleType):
    """Stands in for `moto.batch.utils`."""

    JobStatus = _BatchJobStatus


# Before any module of this package: for the one enumeration the interpreter imports all of moto's Batch and
# EC2, which takes 0.75 s and 40 MB.
sys.modules.setdefault("moto.batch.utils", _BatchUtils("moto.batch.utils"))
