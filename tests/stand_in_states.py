"""
Stands in for Step Functions Local, whose jar no package registry has: the same command line, one port.

Behind it is the embedded engine. It proves that a stack starts, wires and ends such a server, and that the
workflow tests can share one; it proves nothing about what Step Functions Local does with a workflow.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
from pathlib import Path

from steponce.local.engine import moto_server
from steponce.local.servers.aws import STATES_PORT
from tests.workflow.relay import Answer, Relay, serve


def main() -> None:
    """Serve until killed."""
    arguments = argparse.ArgumentParser()
    for option in ("-jar", "--aws-account", "--aws-region", "--lambda-endpoint", "--dynamodb-endpoint"):
        arguments.add_argument(option, required=True)
    options = arguments.parse_args([part for part in sys.argv[1:] if not part.startswith("-X")])
    engine = moto_server.start()

    class Forward(Relay):
        def answer(self, body: bytes) -> Answer:
            return self.forward(engine, body)

    url = serve(Forward, port=int(os.environ.get("STAND_IN_PORT", STATES_PORT)))
    called = {"lambda": options.lambda_endpoint, "dynamodb": options.dynamodb_endpoint, "states": url}
    moto_server.route(called | {"aws": engine}, options.aws_region)
    threading.Event().wait()


def install(folder: Path) -> Path:
    """Make a `java` in a folder that starts this for Step Functions Local's jar; that jar, which is empty."""
    root = Path(__file__).parents[1]
    start = f"cd '{root}' && PYTHONPATH='{root}' exec '{sys.executable}' -m tests.stand_in_states"
    other = shutil.which("java") or "/no/java"
    java = folder / "java"
    java.write_text(f"""#!/bin/sh
case "$*" in
    *StepFunctionsLocal.jar*) {start} "$@" ;;
    *) exec '{other}' "$@" ;;
esac
""")
    java.chmod(0o755)
    jar = folder / "StepFunctionsLocal.jar"
    jar.touch()
    return jar


if __name__ == "__main__":
    main()
