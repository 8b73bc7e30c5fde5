"""Clients of boto3, each made once: that takes a tenth of a second, and hundreds of tests want one."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
import moto  # noqa: F401 - answers only for clients that were made after its import
from botocore import UNSIGNED
from botocore.config import Config

_UNSIGNED = Config(signature_version=UNSIGNED, user_agent="tests")
"""Without what takes a fifth of a call's time and moto never reads, but for S3."""


@cache
def shared(service: str, region: str = "us-east-1") -> Any:
    """A client whose calls moto answers inside of `mock_aws`."""
    session = boto3.Session("test", "test", region_name=region)
    return session.client(service, config=None if service == "s3" else _UNSIGNED)


class SharedClients:
    """A session that makes nothing anew."""

    def __init__(self, region: str) -> None:
        self.region_name = region

    def client(self, service: str, **_options: Any) -> Any:
        return shared(service, self.region_name)
