"""
The ExecutionType of a distributed Map.

moto knows STANDARD alone, and refuses the whole definition for EXPRESS. On this stack no item of a Map is an
execution, so both types run alike.
"""

from __future__ import annotations

from moto.stepfunctions.parser.asl.antlr.runtime.ASLParser import ASLParser


def install() -> None:
    """Put this module's patches in place."""
    ASLParser.execution_type = _execution_type


_original_execution_type = ASLParser.execution_type


def _execution_type(parser: ASLParser) -> ASLParser.Execution_typeContext:
    """Read EXPRESS as STANDARD. The parser is here only where the language has a type, never in data."""
    token = parser.getCurrentToken()
    if token.text == '"EXPRESS"':
        token.type = ASLParser.STANDARD
    return _original_execution_type(parser)
