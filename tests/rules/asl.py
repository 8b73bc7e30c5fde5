"""Rules for one workflow's definition, state by state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.model import Shape, StructureShape
from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from steponce import errors
from steponce.limits.record import COUNTER
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
RESERVED = {  # the last one is Lambda's own; States.Runtime is missing on purpose: nothing catches it
    "States.ALL",
    "States.BranchFailed",
    "States.DataLimitExceeded",
    "States.ExceedToleratedFailureThreshold",
    "States.HeartbeatTimeout",
    "States.IntrinsicFailure",
    "States.ItemReaderFailed",
    "States.NoChoiceMatched",
    "States.ParameterPathFailure",
    "States.Permissions",
    "States.ResultPathMatchFailure",
    "States.ResultWriterFailed",
    "States.TaskFailed",
    "States.Timeout",
    "Function.ResponseSizeTooLarge",
}
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

ACQUIRE = (
    "attribute_not_exists(lockToken)"
    " OR (NOT callId = :callId"
    " AND (#status = :released"
    " OR (#status IN (:completed, :failed) AND attribute_exists(#ttl) AND expiresAt < :now)))"
)
TAKE_OVER = (
    "#status = :inprogress AND"
    " ((callId = :deadCallId AND lockedBy = :deadExecution AND attempt = :deadAttempt"
    " AND (attribute_not_exists(leaseUntil) OR leaseUntil < :now))"
    " OR (callId = :callId AND lockedBy = :execution AND attempt = :attempt))"
)
COUNT = (
    "contains(members, :member)"
    " OR (attribute_not_exists(#count)"
    " AND (attribute_not_exists(members) OR size(members) < :limit))"
    " OR size(members) < allowance"
)
NEXT_ATTEMPT = {"N.$": "States.Format('{}', States.MathAdd(States.StringToJson($.lock.Item.attempt.N), 1))"}
FENCE = "callId = :callId AND lockedBy = :execution AND "

SHORTEST_REQUEST_TIMEOUT = 2_592_000
"""The least value of the template's RequestTimeoutSeconds; a rule of the template sees to it."""

SILENT = {
    "FailedWithoutCause": "the work gave an error's name and no cause",
    "FailedWithoutReason": "the work gave neither; a Fail state cannot carry null",
}

_VARIABLE = re.compile(r"(?<![\w$])\$[A-Za-z]\w*")
_PLACEHOLDER = re.compile(r"[:#][A-Za-z]\w*")
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


def rule_callbacks_can_end(definition: Definition) -> list[str]:
    """A callback needs its token sent, a heartbeat, and a time-out beyond it."""
    complaints = []
    for name, task in tasks(definition):
        heartbeat = task.get("HeartbeatSeconds", task.get("HeartbeatSecondsPath"))
        timeout = task.get("TimeoutSeconds")
        if "waitForTaskToken" not in action(task):
            complaints += [f"{name} waits for no token, so nothing can send its heartbeat"] * bool(heartbeat)
            continue
        if heartbeat is None:
            complaints.append(f"{name} has no heartbeat")
        elif isinstance(heartbeat, int) and isinstance(timeout, int) and heartbeat >= timeout:
            complaints.append(f"{name}: the heartbeat ({heartbeat}) is not below the time-out ({timeout})")
        if "$$.Task.Token" not in dict(_leaves(task.get("Parameters", {}))).values():
            complaints.append(f"{name} passes its token to nobody")
    return complaints


def rule_counting_twice_does_no_harm(definition: Definition) -> list[str]:
    """A duplicate, or a try whose answer was lost, counts nothing and is not refused; and the limit holds."""
    complaints = []
    for name, task in _all_writes(definition):
        if not _counts(task):
            continue
        parameters = task["Parameters"]
        if parameters.get("ConditionExpression") != COUNT:
            complaints.append(f"{name} has another condition than the protocol")
        if not parameters["UpdateExpression"].startswith("ADD members :members SET "):
            complaints.append(f"{name} counts otherwise than by a set of members")
        values = parameters["ExpressionAttributeValues"]
        member, members = values[":member"].get("S.$"), values[":members"].get("SS.$")
        if members != f"States.Array({member})":
            complaints.append(f"{name} looks for another member than it adds")
        if parameters["Key"].get("member") != {"S": COUNTER}:
            complaints.append(f"{name} writes to another item than the package")
    return complaints


def rule_writes_are_fenced(definition: Definition) -> list[str]:
    """A writer that lost its lock changes nothing."""
    complaints = []
    for name, task in writes(definition):
        condition = " ".join(task["Parameters"].get("ConditionExpression", "").split())
        values = task["Parameters"].get("ExpressionAttributeValues", {})
        right = {"AcquireLock": ACQUIRE, "TakeOverLock": TAKE_OVER}.get(name)
        if right is None and (not condition.startswith(FENCE) or " OR " in _outside_parentheses(condition)):
            complaints.append(f"{name} is not fenced: {condition!r}")
        if right is not None and condition != right:
            complaints.append(f"{name} has another condition than the protocol: {condition!r}")
        if values.get(":callId") != {"S.$": "$.callId"}:
            complaints.append(f"{name}: :callId is not this call's")
        if values.get(":execution") != {"S.$": "$$.Execution.Id"}:
            complaints.append(f"{name}: :execution is not this execution")
        if name == "TakeOverLock" and (
            values.get(":deadCallId") != {"S.$": "$.lock.Item.callId.S"}
            or values.get(":deadExecution") != {"S.$": "$.lock.Item.lockedBy.S"}
        ):
            complaints.append(f"{name} takes the lock from another owner than the one that was looked at")
        if name == "TakeOverLock" and values.get(":attempt") != NEXT_ATTEMPT:
            complaints.append(f"{name} does not have the attempt after the one that was looked at")
    return complaints


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


def rule_outcomes_can_be_repeated(definition: Definition) -> list[str]:
    """A write whose answer was lost is made again by its author, and must succeed again."""
    complaints = []
    for name, task in writes(definition):
        if name in ("AcquireLock", "TakeOverLock"):
            continue
        parameters = task["Parameters"]
        brought = "#result = :result" if name == "CompleteRequest" else "failure = :failure"
        repeated = f"(#status = :inprogress OR (#status = :new AND {brought}))"
        if not parameters["ConditionExpression"].endswith(repeated):
            complaints.append(f"{name}: the condition does not allow for its own earlier write, and no other")
        if "SET #status = :new," not in parameters["UpdateExpression"]:
            complaints.append(f"{name} does not set the status that its condition allows for")
    return complaints


def rule_open_records_never_expire(definition: Definition) -> list[str]:
    """DynamoDB deletes what has a ttl; what has an openStatus waits to be settled."""
    complaints = []
    for name, task in writes(definition):
        update = task["Parameters"]["UpdateExpression"]
        sets, _, removes = update.partition(" REMOVE ")
        is_open, expires = "openStatus =" in sets, "#ttl =" in sets
        if is_open == expires:
            complaints.append(f"{name}: a record is open or has a ttl, and this one is both or neither")
        if expires and "openStatus" not in removes:
            complaints.append(f"{name} leaves a finished record on the open index")
        values = task["Parameters"]["ExpressionAttributeValues"]
        status = values.get(":new", values.get(":inprogress", {})).get("S")
        if is_open and f"'{status}#{{}}'" not in values.get(":open", {}).get("S.$", ""):
            complaints.append(f"{name}: openStatus does not say {status}")
    return complaints


def rule_completing_has_no_catch(definition: Definition) -> list[str]:
    """The work is done; a lost write must not look like a failed request."""
    return ["CompleteRequest has a Catch"] * ("Catch" in definition["States"].get("CompleteRequest", {}))


def rule_states_all_stands_alone_and_last(definition: Definition) -> list[str]:
    """Step Functions refuses it elsewhere, or never gets to what follows."""
    complaints = []
    for name, state in states(definition):
        for key in ("Retry", "Catch"):
            lists = [part["ErrorEquals"] for part in state.get(key, [])]
            for place, names in enumerate(lists):
                if "States.ALL" in names and (len(names) > 1 or place < len(lists) - 1):
                    complaints.append(f"{name}: States.ALL is not alone and last in {key}")
    return complaints


def rule_data_limit_is_named(definition: Definition) -> list[str]:
    """States.ALL misses it, and it strikes work that is done."""
    complaints = []
    for name, state in states(definition):
        lists = [catcher["ErrorEquals"] for catcher in state.get("Catch", [])]
        if ["States.ALL"] in lists and not any("States.DataLimitExceeded" in names for names in lists):
            complaints.append(f"{name} catches States.ALL, which misses States.DataLimitExceeded")
    return complaints


def rule_error_names_are_known(definition: Definition) -> list[str]:
    """A misspelt name catches nothing, and no linter says so."""
    failing = {state["Error"] for _, state in states(definition) if "Error" in state}
    known = RESERVED | LAMBDA_PASSES | CONDITION_FAILED | OUR_ERRORS | failing | {"${FinalErrors}"}
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
    """The defaults are three tries and an unbounded delay; we say what we mean."""
    complaints = []
    for name, state in states(definition):
        for retrier in state.get("Retry", []):
            tries = retrier.get("MaxAttempts")
            if tries is None or tries > 10:
                complaints.append(f"{name}: MaxAttempts is {tries}")
            elif tries > 0 and not 1 <= retrier.get("MaxDelaySeconds", 0) <= 300:
                complaints.append(f"{name}: MaxDelaySeconds is {retrier.get('MaxDelaySeconds')}")
    return complaints


def rule_refused_writes_are_not_retried(definition: Definition) -> list[str]:
    """A condition that failed fails again; States.TaskFailed would retry it."""
    complaints = []
    for name, task in tasks(definition):
        if "ConditionExpression" not in task.get("Parameters", {}):
            continue
        for retrier in task.get("Retry", []):
            names = set(retrier["ErrorEquals"])
            if names >= CONDITION_FAILED and retrier.get("MaxAttempts") == 0:
                break
            if names & ({"States.TaskFailed", "States.ALL"} | CONDITION_FAILED):
                complaints.append(f"{name} retries a write whose condition failed")
    return complaints


def rule_what_is_too_large_is_not_retried(definition: Definition) -> list[str]:
    """It stays too large, and States.TaskFailed, like States.ALL, would try it again for minutes."""
    complaints = []
    for name, state in states(definition):
        for retrier in state.get("Retry", []):
            names = set(retrier["ErrorEquals"])
            if "States.DataLimitExceeded" in names:
                complaints += [f"{name} tries again what is too large"] * (retrier.get("MaxAttempts") != 0)
                break
            if names & {"States.TaskFailed", "States.ALL"}:
                complaints.append(f"{name}: {sorted(names)} matches States.DataLimitExceeded as well")
    return complaints


def rule_transient_errors_are_retried(definition: Definition) -> list[str]:
    """One hiccup of AWS is no failure of a request."""
    complaints = []
    for name, task in tasks(definition):
        retried = {
            error for part in task.get("Retry", []) if part["MaxAttempts"] for error in part["ErrorEquals"]
        }
        wanted = (
            LAMBDA_PASSES if action(task).startswith("lambda:") else {"States.TaskFailed", "States.Timeout"}
        )
        if name == "DoWork":
            continue
        complaints += [f"{name} does not retry {sorted(wanted - retried)}"] * (not wanted <= retried)
    return complaints


def rule_work_is_retried_only_if_it_has_not_run(definition: Definition) -> list[str]:
    """After any other error of Lambda its code may have run: a second try would be a second charge."""
    retriers = definition["States"].get("DoWork", {}).get("Retry", [])
    retried = {error for retrier in retriers for error in retrier["ErrorEquals"]}
    safe = {"Lambda.TooManyRequestsException", "RetryLater"}
    released = {
        error
        for catcher in definition["States"].get("DoWork", {}).get("Catch", [])
        for error in catcher["ErrorEquals"]
        if catcher["Next"] == "ReleaseLock"
    }
    return (
        [f"DoWork is tried again after {error}" for error in sorted(retried - safe)]
        + [f"DoWork gives up at {error}" for error in sorted(safe - retried)]
        + [f"DoWork does not release the lock after {error}" for error in sorted(safe - released)]
    )


def rule_paths_are_marked(definition: Definition) -> list[str]:
    """`"S": "$.callId"` writes the text `$.callId`; only `"S.$"` reads it."""
    complaints = []
    for name, state in states(definition):
        for key in ("Parameters", "ResultSelector", "ItemSelector"):
            for field, value in _leaves(state.get(key, {})):
                reads = isinstance(value, str) and re.match(r"\$(?!\{)|States\.\w+\(", value) is not None
                if field.endswith(".$") != reads:
                    complaints.append(f"{name}: {key} has {field!r}: {value!r}")
    return complaints


_PATTERN = re.compile(r"\.(waitForTaskToken|sync|sync:2)$")
"""How a task waits, at the end of its action."""


def rule_parameters_are_the_api_s(definition: Definition) -> list[str]:
    """A misspelt parameter is dropped or fails at run time; the API's model knows the names."""
    complaints = []
    for name, task in tasks(definition):
        service, _, operation = _PATTERN.sub("", action(task)).rpartition(":")
        operation = operation[:1].upper() + operation[1:]
        model = _service(service.removeprefix("aws-sdk:"))
        if model is None or operation not in model.operation_names:
            complaints.append(f"{name}: unknown action {action(task)}")
        else:
            shape = model.operation_model(operation).input_shape
            complaints += [
                f"{name}: {text}" for text in _misfits(task.get("Parameters", {}), shape, "Parameters")
            ]
    return complaints


def rule_placeholders_are_defined_and_used(definition: Definition) -> list[str]:
    """DynamoDB refuses an expression that lacks one, and one that has one too many."""
    complaints = []
    for name, task in tasks(definition):
        parameters = task.get("Parameters", {})
        used = set(_PLACEHOLDER.findall(_expressions(parameters)))
        defined = set(parameters.get("ExpressionAttributeNames", {}))
        defined |= set(parameters.get("ExpressionAttributeValues", {}))
        complaints += [f"{name}: {item} is used and not defined" for item in used - defined]
        complaints += [f"{name}: {item} is defined and not used" for item in defined - used]
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
        for field, value in _leaves(state):
            if field.endswith(".$"):
                called = set(re.findall(r"States\.\w+", re.sub(r"'[^']*'", "", value)))
                complaints += [f"{name}: unknown function {item}" for item in called - INTRINSICS]
            text = value if isinstance(value, str) else ""
            complaints += [f"{name}: JSONata in {field}"] * ("{%" in text)
            complaints += [f"{name}: a variable in {field}"] * bool(_VARIABLE.search(text))
    return complaints


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


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _leaves(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, key)
    else:
        yield key, value


def _expressions(parameters: dict[str, Any]) -> str:
    return " ".join(text for key, text in parameters.items() if key.endswith("Expression"))


def _outside_parentheses(text: str) -> str:
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return text


@cache
def _service(name: str) -> Any:
    name = {"states": "stepfunctions", "sfn": "stepfunctions"}.get(name, name)
    session = botocore.session.get_session()
    return session.get_service_model(name) if name in session.get_available_services() else None


def _misfits(value: Any, shape: Shape, where: str) -> list[str]:
    """What in a literal the API would not take; values that are read at run time pass."""
    if isinstance(shape, StructureShape):
        members = {name[:1].upper() + name[1:]: member for name, member in shape.members.items()}
        given = {key.removesuffix(".$"): (key, part) for key, part in value.items()}
        required = {name[:1].upper() + name[1:] for name in shape.required_members}
        found = [f"{where} has no {name}" for name in required - set(given)]
        found += [f"{where} has an unknown {name}" for name in set(given) - set(members)]
        for name in set(given) & set(members):
            key, part = given[name]
            if not key.endswith(".$"):
                found += _misfits(part, members[name], f"{where}.{name}")
        return found
    if shape.type_name == "map":
        return [text for key, part in value.items() for text in _misfits(part, shape.value, f"{where}.{key}")]
    if shape.type_name == "list":
        return [text for part in value for text in _misfits(part, shape.member, where)]
    kinds = {"string": str, "boolean": bool, "integer": int, "long": int}
    if not isinstance(value, kinds.get(shape.type_name, object)):
        return [f"{where} is {value!r}, not {shape.type_name}"]
    allowed = getattr(shape, "enum", [])
    return [f"{where} is {value!r}, not one of {allowed}"] * bool(allowed and value not in allowed)
