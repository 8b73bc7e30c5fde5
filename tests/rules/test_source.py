"""Every module keeps every rule of source.py, and every rule catches what was planted for it."""

from collections.abc import Callable

import pytest

from . import source
from .documents import FUNCTIONS, MODULES, ROOT, rules_of

RULES = rules_of(source)
FILES = [*MODULES, *(path for folder in FUNCTIONS for path in sorted(folder.glob("*.py")))]

FAULTS: list[tuple[Callable[..., list[str]], str, str]] = [
    (source.rule_modules_have_subjects, "src/steponce/utils.py", '"""What is left."""'),
    (source.rule_modules_have_subjects, "src/steponce/local/utils.py", ""),
    (source.rule_imports_point_down, "src/steponce/errors.py", "from steponce.aws.times import now"),
    (source.rule_imports_point_down, "src/steponce/recovery/owner.py", "import steponce.callbacks.answer"),
    (source.rule_imports_point_down, "src/steponce/aws/times.py", "import steponce.locks.record"),
    (source.rule_imports_point_down, "src/steponce/locks/record.py", "from steponce import recovery"),
    (source.rule_imports_point_down, "src/steponce/request/envelope.py", "from steponce import Client"),
    (
        source.rule_imports_point_down,
        "src/steponce/recovery/owner.py",
        "def f():\n    import steponce.client",
    ),
    (source.rule_imports_point_down, "src/steponce/recovery/owner.py", "from .client import Client"),
    (source.rule_imports_point_down, "src/steponce/client.py", "from steponce.cli import main"),
    (
        source.rule_imports_point_down,
        "src/steponce/local/stack.py",
        "from steponce.cli_locks import x",
    ),
    (source.rule_imports_point_down, "src/steponce/charges.py", ""),
    (
        source.rule_imports_point_down_within_local,
        "src/steponce/local/template/plan.py",
        "from steponce.local.runtime.workers import Worker",
    ),
    (
        source.rule_imports_point_down_within_local,
        "src/steponce/local/runtime/workers.py",
        "from steponce.local import moto_patches",
    ),
    (
        source.rule_imports_point_down_within_local,
        "src/steponce/local/servers/aws.py",
        "def f():\n    from steponce.local.deploy import Deployment",
    ),
    (
        source.rule_imports_point_down_within_local,
        "src/steponce/local/engine/process.py",
        "from steponce.local import LocalStack",
    ),
    (source.rule_imports_point_down_within_local, "src/steponce/local/tables.py", ""),
    (source.rule_no_import_leads_back, "src/steponce/aws/times.py", "from steponce.locks.record import Lock"),
    (
        source.rule_no_import_leads_back,
        "src/steponce/triggers/start_request.py",
        "from steponce.triggers import events",
    ),
    (
        source.rule_no_import_leads_back,
        "src/steponce/triggers/start_request.py",
        "from steponce.triggers.start_request import RequestPaths",
    ),
    (source.rule_local_is_for_cli_only, "src/steponce/client.py", "from steponce.local import LocalStack"),
    (source.rule_local_is_for_cli_only, "src/steponce/__init__.py", "import steponce.local.engine"),
    (source.rule_errors_need_nothing, "src/steponce/errors.py", "import boto3"),
    (source.rule_errors_need_nothing, "src/steponce/errors.py", "from steponce.aws.times import now"),
    (source.rule_errors_need_nothing, "src/steponce/next_step.py", "import boto3"),
    (source.rule_only_the_cli_writes_commands, "src/steponce/errors.py", 'HINT = "Try: steponce locks list"'),
    (
        source.rule_only_the_cli_writes_commands,
        "src/steponce/client.py",
        'f"steponce show {key}"',
    ),
    (source.rule_only_the_cli_writes_commands, "functions/check_owner/app.py", 'X = ["aws lambda invoke"]'),
    (
        source.rule_texts_of_others_are_no_markup,
        "src/steponce/cli/locks.py",
        "from rich.console import Console",
    ),
    (source.rule_texts_of_others_are_no_markup, "src/steponce/cli/locks.py", "Text.from_markup(name)"),
    (
        source.rule_type_checkers_know_every_name,
        "src/steponce/__init__.py",
        "def __getattr__(name: str) -> object: ...",
    ),
    (source.rule_functions_stand_alone, "functions/check_owner/app.py", "from steponce.cli import main"),
    (source.rule_functions_stand_alone, "functions/check_owner/app.py", "from steponce import local"),
    (source.rule_functions_stand_alone, "functions/check_owner/app.py", "from steponce import scaffold"),
    (source.rule_functions_stand_alone, "functions/check_owner/app.py", "import charge_card.app"),
    (
        source.rule_functions_stand_alone,
        "functions/check_owner/app.py",
        "from functions.charge_card import app",
    ),
    (source.rule_functions_are_thin, "functions/check_owner/owners.py", '"""Owners."""'),
    (source.rule_functions_read_their_settings_once, "functions/check_owner/app.py", ""),
    (
        source.rule_functions_read_their_settings_once,
        "functions/check_owner/app.py",
        'settings = environment.read(Settings, os.environ)\nlocks = os.environ["LocksTable"]',
    ),
    (source.rule_functions_have_a_handler, "functions/check_owner/app.py", "def main(event, context): ..."),
    (source.rule_public_names_are_explained, "src/steponce/aws/times.py", "def now(): ..."),
    (source.rule_public_names_are_explained, "src/steponce/aws/times.py", '"""Times."""\nclass Clock: ...'),
    (source.rule_public_names_are_explained, "functions/check_owner/app.py", '"""X."""\ndef handler(): ...'),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule: Callable[..., list[str]]) -> None:
    """No complaints about any module of the package or any function."""
    assert [] == [complaint for path in FILES for complaint in rule(path, path.read_text())]


@pytest.mark.parametrize(("rule", "path", "text"), FAULTS)
def test_the_rule_catches_its_planted_fault(rule: Callable[..., list[str]], path: str, text: str) -> None:
    """A rule that cannot fail is no rule."""
    assert [] != rule(ROOT / path, text)


def test_every_rule_has_a_planted_fault() -> None:
    """No rule goes without proof that it can fail."""
    assert set(RULES) == {rule for rule, _, _ in FAULTS}


def test_what_a_function_reads_through_the_package_is_seen() -> None:
    """By its fence and its large results, which look there; and by settings that several functions share."""
    path = ROOT / "functions" / "charge_card" / "app.py"
    assert {"ChargesTable", "LocksTable", "ResultBucket", "RetentionSeconds"} == source.environment_read_by(
        path
    )
    path = ROOT / "functions" / "resend_request" / "app.py"
    resend = {"RequestsQueueUrl", "RequestsDeadLetterQueueUrl"}
    resend |= {"ResendTries", "ResendBaseSeconds", "ResendMaxSeconds"}
    assert {"LocksTable"} | resend == source.environment_read_by(path)
