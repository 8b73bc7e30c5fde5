"""Where an execution and what the functions said of it are on AWS's console."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

_CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}


def links(execution_arn: str, outputs: Mapping[str, str]) -> dict[str, str]:
    """
    Addresses on the console.

    Args:
        execution_arn: Of the execution.
        outputs: The stack's Outputs; `FunctionLogs` is the functions' log group.

    Returns:
        `execution`, and `log`: a search in the log group for the lines that name the execution. Of plain
        Python, which is no execution, none.
    """
    if not execution_arn.startswith("arn:"):
        return {}
    _, partition, _, region, *_ = execution_arn.split(":")
    if partition not in _CONSOLES:
        return {}
    console = f"https://{region}.{_CONSOLES[partition]}"
    found = {"execution": f"{console}/states/home?region={region}#/v2/executions/details/{execution_arn}"}
    if "FunctionLogs" in outputs:
        group, pattern = _twice(outputs["FunctionLogs"]), _twice(f'"{execution_arn}"')
        found["log"] = (
            f"{console}/cloudwatch/home?region={region}#logsV2:log-groups/log-group/{group}"
            f"/log-events$3FfilterPattern$3D{pattern}"
        )
    return found


def _twice(text: str) -> str:
    """As the CloudWatch console writes what comes after its #: encoded twice, with $ for %."""
    return quote(quote(text, safe=""), safe="").replace("%", "$")
