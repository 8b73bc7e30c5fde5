"""The owner's side of the engine."""

from pathlib import Path

import pytest

from steponce.local.engine.instructions import Instructions
from steponce.local.engine.process import EngineProcess
from steponce.local.errors import LocalStackError
from steponce.local.template.plan import Deliveries
from tests import covering


@covering.first(1, "keep_logs", [False, True])
def test_an_engine_that_fails_says_why(tmp_path: Path, keep_logs: bool):
    """Whether it removes its logs at its end or not."""
    logs = tmp_path / "logs"
    logs.mkdir()
    engine = EngineProcess({"http"}, logs, keep_logs=keep_logs)
    try:
        engine.addresses()
        incomplete = Instructions([], [], Deliveries(), "us-east-1", {}, {})
        with pytest.raises(LocalStackError, match="KeyError: 'AWS_ENDPOINT_URL_LAMBDA'"):
            engine.instruct(incomplete)
    finally:
        engine.stop()
    assert keep_logs == logs.exists()
