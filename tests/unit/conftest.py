"""What all unit tests have in common."""

from __future__ import annotations

from moto.core import models

from steponce.local.moto_patches import expressions, pace

expressions.install()
pace.install()  # tests that speak to moto itself are quicker by it too
models.RESPONSES_METHODS.clear()  # else each mock_aws prepares 1,300 answers for `requests`, unused here
