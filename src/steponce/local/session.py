"""boto3 sessions that know nothing of the caller's AWS account: no profile, no real credentials."""

from __future__ import annotations

import functools
import os

import boto3
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

ACCESS_KEY = "local"
SECRET_KEY = "local"  # noqa: S105 - not a secret: the embedded servers take anything


def isolated_session(region: str) -> boto3.Session:
    """A session with dummy credentials that no environment variable or file of the caller's changes."""
    core = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": (None, None, os.devnull, None),
            "credentials_file": (None, None, os.devnull, None),
        }
    )
    core.register_component("data_loader", service_descriptions())
    # A proxy of the caller's would be asked for addresses on this machine.
    core.set_default_client_config(Config(proxies={}))
    return boto3.Session(
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=region,
        botocore_session=core,
    )


@functools.cache
def service_descriptions() -> Loader:
    """What botocore knows of services. Each session would read it anew, a tenth of a second for each."""
    return botocore.session.create_loader(None)


def without_account(environment: dict[str, str]) -> dict[str, str]:
    """The environment less what speaks of AWS or of proxies, so that no child process inherits an account."""
    return {
        key: value
        for key, value in environment.items()
        if not key.startswith("AWS_") and not key.lower().endswith("_proxy")
    }
