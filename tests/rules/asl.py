"""Rules for one workflow's definition, state by state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from steponce import errors
from steponce.lint.error_names import RESERVED
from steponce.lint.machine import leaves
from steponce.updates.order import IS_NEWER

Definition = dict[str, Any]
State = dict[str, Any]

CONDITION_FAILED = {
    "DynamoDB.ConditionalCheckFailedException",  # the optimized integration
    "DynamoDb.ConditionalCheckFailedException",  # the SDK integration
    "Dynamodb.ConditionalCheckFailedException",  # Step Functions Local
}
LAMBDA_PASSES = {
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
}
FUNCTION_DIED = {"Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory", "Lambda.Unknown"}
"""A function ran out of time or memory. Our own functions may run again without harm; the work may not."""
OUR_ERRORS = {name for name, item in vars(errors).items() if isinstance(item, type)}

INTRINSICS = {
    "States.Array",
    "States.ArrayContains",
    "States.ArrayGetItem",
    "States.ArrayLength",
    "States.ArrayPartition",
    "States.ArrayRange",
    "States.ArrayUnique",
    "States.Base64Decode",
    "States.Base64Encode",
    "States.Format",
    "States.Hash",
    "States.JsonMerge",
    "States.JsonToString",
    "States.MathAdd",
    "States.MathRandom",
    "States.StringSplit",
    "States.StringToJson",
    "States.UUID",
}
TOO_NEW = {"QueryLanguage", "Assign", "Output", "Arguments", "Items", "ItemProcessor", "Condition", "Version"}
"""What Step Functions Local 2.0 does not know, JSONata's fields among them."""

FIELDS = {
    "Task": "Resource Parameters Credentials ResultSelector Retry Catch TimeoutSeconds TimeoutSecondsPath "
    "HeartbeatSeconds HeartbeatSecondsPath",
    "Choice": "Choices Default",
    "Pass": "Parameters Result",
    "Wait": "Seconds SecondsPath Timestamp TimestampPath",
    "Succeed": "",
    "Fail": "Error ErrorPath Cause CausePath",
    "Parallel": "Branches Parameters ResultSelector Retry Catch",
    "Map": "Iterator ItemsPath Parameters MaxConcurrency ResultSelector Retry Catch",
}
HANDLER_FIELDS = {
    "Retry": "ErrorEquals IntervalSeconds BackoffRate MaxAttempts MaxDelaySeconds JitterStrategy Comment",
    "Catch": "ErrorEquals Next ResultPath Comment",
}
COMMON_FIELDS = {"Type", "Comment", "Next", "End", "InputPath", "OutputPath", "ResultPath"}


SHORTEST_REQUEST_TIMEOUT = 2_592_000
"""The least value of the template's RequestTimeoutSeconds; a rule of the template sees to it."""

SILENT = {
    "FailedWithoutCause": "the work gave an error's name and no cause",
    "FailedWithoutReason": "the work gave neither; a Fail state cannot carry null",
}

_VARIABLE = re.compile(r"(?<![\w$])\$[A-Za-z]\w*")
_ATTRIBUTE = re.compile(r"(?<![:#\w])[A-Za-z_]\w*(?!\w*\()")
_EXPRESSION_WORDS = {"AND", "OR", "NOT", "IN", "SET", "REMOVE", "ADD", "DELETE", "BETWEEN"}


def states(definition: Definition) -> Iterator[tuple[str, State]]:
    """Every state with its name, those inside of Parallel and Map too."""
    for name, state in definition["States"].items():
        yield name, state
        for inner in inner_machines(state):
            yield from states(inner)


def inner_machines(state: State) -> list[Definition]:
    """The machines inside of a Parallel or Map."""
    return state.get("Branches", []) + [state[key] for key in ("Iterator", "ItemProcessor") if key in state]


def tasks(definition: Definition) -> Iterator[tuple[str, State]]:
    """Every Task with its name."""
    return ((name, state) for name, state in states(definition) if state["Type"] == "Task")


def action(task: State) -> str:
    """What a Task does: `dynamodb:updateItem`, `lambda:invoke.waitForTaskToken`."""
    return task["Resource"].partition(":states:::")[2] or task["Resource"]


def writes(definition: Definition) -> Iterator[tuple[str, State]]:
    """Every Task that writes to DynamoDB, as far as we can tell, but for those that count requests."""
    return ((name, task) for name, task in _all_writes(definition) if not _counts(task))


def _all_writes(definition: Definition) -> Iterator[tuple[str, State]]:
    for name, task in tasks(definition):
        if "dynamodb:" in action(task) and not action(task).endswith((":getItem", ":query")):
            yield name, task


def _counts(task: State) -> bool:
    return bool(task["Parameters"].get("TableName") == "${LimitsTable}")


def rule_the_machine_ends(definition: Definition) -> list[str]:
    """A machine without TimeoutSeconds may wait for ever. A parameter comes in at the comment's end."""
    if definition.get("Comment", "").endswith("${RequestTimeout}"):
        return []
    limit = definition.get("TimeoutSeconds")
    return [] if isinstance(limit, int) and 60 <= limit <= 31_536_000 else [f"TimeoutSeconds is {limit}"]


def rule_tasks_have_timeouts(definition: Definition) -> list[str]:
    """A task without one waits for three years; one that outlasts its machine is none."""
    complaints = []
    for name, task in tasks(definition):
        longest = SHORTEST_REQUEST_TIMEOUT if "waitForTaskToken" in action(task) else 900
        given = [task[key] for key in ("TimeoutSeconds", "TimeoutSecondsPath") if key in task]
        if len(given) != 1:
            complaints.append(f"{name} has {len(given)} timeouts")
        elif isinstance(given[0], str):
            complaints += [f"{name}: {given[0]} is no path"] * (not given[0].startswith("$."))
        elif not 1 <= given[0] <= longest:
            complaints.append(f"{name}: {given[0]} s is not between 1 and {longest}")
    return complaints


def rule_callbacks_have_heartbeats(definition: Definition) -> list[str]:
    """A callback whose answer is lost is noticed before its time-out."""
    return [
        f"{name} has no heartbeat"
        for name, task in tasks(definition)
        if "waitForTaskToken" in action(task) and not {"HeartbeatSeconds", "HeartbeatSecondsPath"} & set(task)
    ]


def rule_ordered_writes_never_go_back(definition: Definition) -> list[str]:
    """A write that says when its record was true holds only for what is newer, as steponce.updates has it."""
    complaints = []
    for name, task in writes(definition):
        parameters = task["Parameters"]
        values = parameters.get("ExpressionAttributeValues", {})
        item, update = parameters.get("Item", {}), parameters.get("UpdateExpression", "")
        if "asOf" not in item and "asOf = " not in update:
            continue
        if parameters.get("ConditionExpression") != IS_NEWER:
            complaints.append(f"{name} may overwrite what is newer")
        if values.get(":kind") != {"S": "N"} or set(values.get(":at", {})) - {"N", "N.$"}:
            complaints.append(f"{name} is not ordered by a number")
        wanted = {"asOf": values.get(":at"), "writer": values.get(":me")}
        if item and {key: item.get(key) for key in wanted} != wanted:
            complaints.append(f"{name} is ordered by something else than what it writes")
        if item and "deleted" not in item:
            complaints.append(f"{name} replaces a record by what is no tombstone")
        sets, _, removes = update.partition(" REMOVE ")
        if update and not ("asOf = :at" in sets and "writer = :me" in sets and removes == "deleted, #ttl"):
            complaints.append(f"{name} does not write its order, or leaves a tombstone's marks")
    return complaints


def rule_error_names_are_known(definition: Definition) -> list[str]:
    """A misspelt name catches nothing, and no linter says so."""
    failing = {state["Error"] for _, state in states(definition) if "Error" in state}
    known = RESERVED | {"Function.ResponseSizeTooLarge", "${FinalErrors}"} | OUR_ERRORS | failing
    known |= LAMBDA_PASSES | FUNCTION_DIED | CONDITION_FAILED
    complaints = []
    for name, part in _handlers(definition):
        complaints += [f"{name}: unknown error {error}" for error in set(part["ErrorEquals"]) - known]
        for family in (CONDITION_FAILED, LAMBDA_PASSES):
            if name == "DoWork" and family == LAMBDA_PASSES:
                continue  # only one of them proves that the work has not run
            if family & set(part["ErrorEquals"]) and not family <= set(part["ErrorEquals"]):
                complaints.append(f"{name}: {sorted(family - set(part['ErrorEquals']))} belong there as well")
    return complaints


def rule_retries_are_bounded(definition: Definition) -> list[str]:
    """The defaults are three tries, an unbounded delay and no jitter; we say what we mean."""
    complaints = []
    for name, state in states(definition):
        for retrier in state.get("Retry", []):
            tries = retrier.get("MaxAttempts")
            if tries is None or tries > 10:
                complaints.append(f"{name}: MaxAttempts is {tries}")
            elif tries > 0 and not 1 <= retrier.get("MaxDelaySeconds", 0) <= 300:
                complaints.append(f"{name}: MaxDelaySeconds is {retrier.get('MaxDelaySeconds')}")
            elif tries > 0 and retrier.get("JitterStrategy") != "FULL":
                complaints.append(f"{name}: JitterStrategy is {retrier.get('JitterStrategy')}")
    return complaints


def rule_transient_errors_are_retried(definition: Definition) -> list[str]:
    """Neither a hiccup of AWS nor the death of a function of ours is a failure of a request."""
    complaints = []
    for name, task in tasks(definition):
        retried = {
            error for part in task.get("Retry", []) if part["MaxAttempts"] for error in part["ErrorEquals"]
        }
        is_function = action(task).startswith("lambda:")
        wanted = LAMBDA_PASSES | FUNCTION_DIED if is_function else {"States.TaskFailed", "States.Timeout"}
        if name == "DoWork":
            continue
        complaints += [f"{name} does not retry {sorted(wanted - retried)}"] * (not wanted <= retried)
    return complaints


def rule_reserved_words_are_aliased(definition: Definition) -> list[str]:
    """DynamoDB refuses an expression that has one of its 573 words as an attribute."""
    reserved = set(ReservedKeywords.get_reserved_keywords())
    complaints = []
    for name, task in tasks(definition):
        words = set(_ATTRIBUTE.findall(_expressions(task.get("Parameters", {})))) - _EXPRESSION_WORDS
        complaints += [f"{name}: {word} is reserved" for word in words if word.upper() in reserved]
    return complaints


def rule_the_language_is_old_enough(definition: Definition) -> list[str]:
    """What runs on AWS runs on Step Functions Local 2.0 and on the embedded engine: JSONPath, no news."""
    complaints = [f"the machine has {key}" for key in TOO_NEW & set(definition)]
    for name, state in states(definition):
        allowed = COMMON_FIELDS | set(FIELDS[state["Type"]].split())
        complaints += [f"{name} has {key}" for key in set(state) - allowed]
        for key, fields in HANDLER_FIELDS.items():
            parts = state.get(key, [])
            complaints += [
                f"{name}: {key} has {field}" for part in parts for field in set(part) - set(fields.split())
            ]
        choices = state.get("Choices", [])
        complaints += [f"{name} has a rule with {key}" for rule in choices for key in TOO_NEW & set(rule)]
        for field, value in leaves(state):
            if field.endswith(".$"):
                called = set(re.findall(r"States\.\w+", re.sub(r"'[^']*'", "", value)))
                complaints += [f"{name}: unknown function {item}" for item in called - INTRINSICS]
            text = value if isinstance(value, str) else ""
            complaints += [f"{name}: JSONata in {field}"] * ("{%" in text)
            complaints += [f"{name}: a variable in {field}"] * bool(_VARIABLE.search(text))
    return complaints


def rule_flags_are_no_texts(definition: Definition) -> list[str]:
    """AWS takes "true" for true here and there, and nobody says where."""
    return [
        f"{name}: {field} is the text {value!r}"
        for name, task in tasks(definition)
        for field, value in leaves(task.get("Parameters", {}))
        if value in ("true", "false")
    ]


def rule_failures_say_why(definition: Definition) -> list[str]:
    """A Fail state names its error and its cause, unless it is silent for a reason."""
    complaints = []
    for name, state in states(definition):
        if state["Type"] == "Fail" and name not in SILENT:
            for key in ("Error", "Cause"):
                if not state.get(key, state.get(f"{key}Path")):
                    complaints.append(f"{name} has no {key}")
    return complaints


def rule_states_are_well_named(definition: Definition) -> list[str]:
    """PascalCase, at most three words; a Choice asks, and nothing else does."""
    complaints = []
    for name, state in states(definition):
        if not re.fullmatch(r"([A-Z][a-z]+){1,3}", name):
            complaints.append(f"{name} is not PascalCase of at most three words")
        if (state["Type"] == "Choice") != bool(re.match(r"(Is|Are|Has|Was|Does|May)[A-Z]", name)):
            complaints.append(f"{name} is a {state['Type']}")
    return complaints


def _handlers(definition: Definition) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, state in states(definition):
        for part in [*state.get("Retry", []), *state.get("Catch", [])]:
            yield name, part


def _expressions(parameters: dict[str, Any]) -> str:
    return " ".join(text for key, text in parameters.items() if key.endswith("Expression"))
