"""What all unit tests have in common."""

from __future__ import annotations

from steponce.local.moto_patches import pace

pace.install()  # tests that speak to moto itself are quicker by it too
