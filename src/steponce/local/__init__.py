"""The stack for a laptop and for tests: the template's tables, functions, queues, rules and all the rest."""

from __future__ import annotations

from steponce.local.errors import LocalStackError, TemplateError
from steponce.local.facts import read_facts, write_facts
from steponce.local.stack import LocalStack, RunningStack

__all__ = ["LocalStack", "LocalStackError", "RunningStack", "TemplateError", "read_facts", "write_facts"]
