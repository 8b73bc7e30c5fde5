"""Makes links to an execution and its functions' log lines on AWS's console."""

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
    Make the links of an execution.

    Args:
        execution_arn: The execution's ARN, or the owner's name of a guard's lock.
        outputs: The stack's Outputs; `FunctionLogs` is the functions' log group.

    Returns:
        `execution`, and `log`, which searches the log group for the execution's ARN. A guard's lock has no
        links.
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
    """Encode text twice, with $ for %, as the CloudWatch console does after the # of its addresses."""
    return quote(quote(text, safe=""), safe="").replace("%", "$")
