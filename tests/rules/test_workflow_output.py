"""The Output `Workflow` is JSON that has everything a client needs, whatever its settings are."""

from __future__ import annotations

import json

import pytest

from steponce.local.errors import TemplateError
from steponce.local.template.parameters import parameter_values
from steponce.local.template.reader import read_plan
from steponce.locks.record import LETTERS
from steponce.request.settings import RequestRules

from .documents import ROOT, requests, template

NASTY = r"""a."b\"c\\" || 'd ${x} é'"""
PATHS = ("KeyPrefix", "LockTokenPath", "PayloadHashPath", "RateLimitPath")


def outputs(**parameters: str) -> dict[str, str]:
    """The Outputs of the template with these values."""
    plan = read_plan(ROOT / "template.yaml", parameters=parameters, stack_name="s", region="us-east-1")
    return plan.outputs


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        dict.fromkeys(PATHS, NASTY)
        | {"RateLimit": "3", "FifoQueue": "yes", "HttpAccess": "iam", "RetentionSeconds": "never"},
    ],
    ids=["defaults", "everything"],
)
def test_it_says_what_the_other_outputs_say(parameters: dict[str, str]):
    """Each setting by its own name, as text; empty where the other Output is not there."""
    other = outputs(**parameters)
    found = json.loads(other.pop("Workflow"))
    by_name = {name[0].upper() + name[1:]: text for name, text in found.items()}

    assert by_name.pop("StateMachineArn") == other["RunOnceStateMachineArn"]
    assert {name: other.get(name, "") for name in by_name} == by_name
    assert RequestRules.from_settings(other) == RequestRules.from_settings(by_name)
    queues = {name for name in other if name.endswith(("QueueUrl", "TopicArn", "RequestsUrl"))}
    assert queues - {"AnswersQueueUrl", "AlarmsTopicArn"} <= by_name.keys()


@pytest.mark.parametrize("name", PATHS)
def test_what_json_would_not_take_is_refused(name: str):
    """Before anything is made; CloudFormation could not escape it."""
    for text in ("a\nb", "a\tb", "\x00"):
        with pytest.raises(TemplateError, match=f"Parameter {name} is"):
            parameter_values(template(), {name: text})


def test_a_key_prefix_of_dead_letters_marks_is_refused():
    """CloudFormation says so before it makes a stack; else each function would, when it starts."""
    for one in (template(), requests()):
        required = {name: "x" for name, of in one["Parameters"].items() if "Default" not in of}
        with pytest.raises(TemplateError, match="Parameter KeyPrefix is"):
            parameter_values(one, required | {"KeyPrefix": f"{LETTERS}mine"})
