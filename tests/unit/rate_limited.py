"""What the workflow says when the rate limit has refused a request."""

from __future__ import annotations

import json
import re
from pathlib import Path

_DEFINITION = Path(__file__).parents[2] / "statemachines" / "run_once.asl.json"


def cause_until(resets_at: str) -> str:
    """The cause of RateLimited, for a window that ends at this time (UTC text)."""
    state = json.loads(_DEFINITION.read_text(encoding="utf-8"))["States"]["RateLimited"]
    said = re.fullmatch(r"States\.Format\('(.*)', \$\.limit\.resetsAt\)", state["CausePath"])
    assert said is not None
    return said[1].replace("${RateLimit}", "8").replace("{}", resets_at)
