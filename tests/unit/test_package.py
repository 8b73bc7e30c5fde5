"""What a package exports is found without being imported first."""

import importlib

import pytest


@pytest.mark.parametrize("name", ["steponce", "steponce.lint"])
def test_all_that_can_be_imported_is_listed(name: str):
    """Also what is imported when it is wanted, so that a shell completes it."""
    package = importlib.import_module(name)

    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, exported) is not None for exported in package.__all__)
