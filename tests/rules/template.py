"""Rules for the template, as it is written and as the SAM transform leaves it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from steponce.lint.asl import reachable
from steponce.locks.record import LETTERS
from steponce.triggers.ended import SEARCHED_AFTER

from .asl import SHORTEST_REQUEST_TIMEOUT, action, tasks
from .documents import FUNCTIONS, MACHINES, ROOT, load_json, transform, walk
from .source import environment_read_by, whole_numbers_read_by

Template = dict[str, Any]

FUNCTION = "AWS::Serverless::Function"
MACHINE = "AWS::Serverless::StateMachine"
TABLE = "AWS::DynamoDB::Table"
BUCKET = "AWS::S3::Bucket"
RUNTIME = "python3.13"

REQUEST_TIMEOUT = {"Fn::Sub": '","TimeoutSeconds":${RequestTimeoutSeconds},"Version":"1.0'}
"""Stands at the end of the definition's comment, closes it, and leaves the quote to another text."""

CHOSEN = {
    "RefusedStatus": {"Fn::If": ["RefusesDuplicates", "COMPLETED", "NONE"]},
    "UnlimitedField": {"Fn::If": ["HasRateLimit", "none", "callId"]},
}
"""Words that turn a rule of a Choice on or off: no record has the status NONE, no envelope a field none."""

RESULTS = {
    "Fn::Sub": [
        "arn:${AWS::Partition}:s3:::${Bucket}/results/*",
        {"Bucket": {"Fn::If": ["HasOwnResultBucket", {"Ref": "ResultsBucket"}, {"Ref": "ResultBucket"}]}},
    ]
}
"""Where large results are."""

OWN_ACCOUNT = {"StringEquals": {"s3:ResourceAccount": {"Ref": "AWS::AccountId"}}}

MANAGED = ("/AWSLambdaBasicExecutionRole", "/AWSXrayWriteOnlyAccess", "/AWSXRayDaemonWriteAccess")
"""The policies of AWS's own that functions have: for their logs and their traces."""

ANY_RESOURCE = {
    "logs:CreateLogDelivery": "vended logs have no narrower resource",
    "logs:GetLogDelivery": "vended logs",
    "logs:UpdateLogDelivery": "vended logs",
    "logs:DeleteLogDelivery": "vended logs",
    "logs:ListLogDeliveries": "vended logs",
    "logs:PutResourcePolicy": "vended logs",
    "logs:DescribeResourcePolicies": "vended logs",
    "logs:DescribeLogGroups": "vended logs",
    "xray:PutTraceSegments": "traces have no resource",
    "xray:PutTelemetryRecords": "traces",
    "xray:GetSamplingRules": "traces",
    "xray:GetSamplingTargets": "traces",
}
"""Actions that may stand before `Resource: "*"`, and why."""

TABLE_ACTIONS = {f"dynamodb:{name}Item" for name in ("Get", "Put", "Update", "Delete")} | {"dynamodb:Query"}

SAMPLES = {"ChargesTable": "it goes when you put your own work in the sample's place"}
"""Tables whose loss would be none."""

WORKFLOW = {"RunOnceStateMachine", "RunOnceRole", "StateLogs", "ChargeCardFunction", "ChargesTable"}
"""The sample's workflow and work, with what belongs to them alone."""

CONFUSABLE = {"states.amazonaws.com", "scheduler.amazonaws.com", "pipes.amazonaws.com"}
"""Services that act for whoever configured them, so that a role has to say for whom."""


def resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """The properties of every resource of one type, by logical id."""
    return {
        name: item.get("Properties", {})
        for name, item in template["Resources"].items()
        if item["Type"] == kind
    }


def rule_nothing_waits_for_itself(template: Template) -> list[str]:
    """CloudFormation refuses a cycle of resources, and no linter sees one."""
    complaints = []
    for form, document in (("written", template), ("transformed", transform(template))):
        graph = _dependencies(document)
        for name, targets in graph.items():
            if any(name in reachable(graph, target) for target in targets):
                complaints.append(f"{name} waits for itself ({form})")
    return complaints


def rule_permissions_are_narrow(template: Template) -> list[str]:
    """No action by wildcard; no resource by wildcard but where AWS has nothing narrower."""
    complaints = []
    for name, statement in _statements(transform(template)):
        if statement["Effect"] == "Deny":
            continue
        actions = _list(statement.get("Action", "*"))
        complaints += [f"{name} may {item}" for item in actions if "*" in item]
        if "NotResource" in statement or any(map(_is_wide, _list(statement.get("Resource", [])))):
            complaints += [f"{name} may {item} anywhere" for item in actions if item not in ANY_RESOURCE]
    return complaints


def rule_exceptions_are_used(template: Template) -> list[str]:
    """An action that may stand before any resource, and stands nowhere, is one for the next mistake."""
    used = {item for _, statement in _statements(template) for item in _list(statement.get("Action", []))}
    return [f"nothing may {item}: take it off the list" for item in ANY_RESOURCE if item not in used]


def rule_nobody_is_everyone(template: Template) -> list[str]:
    """A policy of a queue or topic names who may; where it says anyone, a condition says from where."""
    return [
        f"{name} lets anyone {statement['Action']}"
        for name, statement in _statements(transform(template))
        if statement["Effect"] == "Allow"
        and statement.get("Principal") in ("*", {"AWS": "*"}, {"AWS": ["*"]})
        and not statement.get("Condition")
    ]


def rule_managed_policies_are_few(template: Template) -> list[str]:
    """SAM adds them by itself; those for queues and streams reach every queue and stream of the account."""
    return [
        f"{name} has {policy}"
        for name, properties in resources(transform(template), "AWS::IAM::Role").items()
        for policy in properties.get("ManagedPolicyArns", [])
        if not str(policy).endswith(MANAGED) and not _is_ours(template, policy)
    ]


def rule_only_the_resolver_answers(template: Template) -> list[str]:
    """Nothing else may send the result of a task, but what finishes an answer that was left half sent."""
    return [
        f"{name} may answer for tasks"
        for name, statement in _statements(template)
        for action in _list(statement["Action"])
        if action.startswith("states:SendTask")
        and name not in ("ResolveAwaitingStepFunction", "FindOverdueFunction")
    ]


def rule_tables_are_granted_by_the_action(template: Template) -> list[str]:
    """SAM's policy templates are too wide for a lock table; so is a table's name made of text."""
    complaints = []
    for name, properties in resources(template, FUNCTION).items():
        policies = _list(properties.get("Policies", []))
        complaints += [
            f"{name} has the policy {policy}"
            for policy in policies
            if not _is_inline(policy) and not _is_ours(template, policy)
        ]
    tables = resources(template, TABLE)
    for name, statement in _statements(template):
        actions = [item for item in _list(statement["Action"]) if item.startswith("dynamodb:")]
        complaints += [f"{name} may {item}" for item in actions if item not in TABLE_ACTIONS]
        for resource in _list(statement.get("Resource", [])) * bool(actions):
            complaints += [f"{name} may reach {resource}"] * (_arn_of(resource) not in tables)
    return complaints


def rule_marks_of_letters_are_no_locks(template: Template) -> list[str]:
    """Who notes that an end has got its dead letter may put no lock record."""
    narrow = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{LETTERS}*"]}}
    return [
        f"{name} may put a lock record"
        for name, statement in _statements(template)
        if name in ("ResendRequestFunction", "FindMissedEndsFunction")
        and "dynamodb:PutItem" in _list(statement["Action"])
        and statement.get("Condition") != narrow
    ]


def rule_machines_may_do_what_they_do(template: Template) -> list[str]:
    """A workflow's role allows what its states call, and nothing else."""
    complaints = []
    for name, properties in resources(template, MACHINE).items():
        role = properties["Role"]["Fn::GetAtt"][0]
        granted = {
            (item, _arn_of(resource))
            for _, statement in _statements({"Resources": {role: template["Resources"][role]}})
            for item in _list(statement["Action"])
            for resource in _list(statement.get("Resource", "*"))
            if resource != "*" and item != "sts:AssumeRole"
        }
        needed = set(_calls(_definition(properties), properties["DefinitionSubstitutions"]))
        complaints += [f"{name} may not {item} on {resource}" for item, resource in needed - granted]
        complaints += [f"{name} need not {item} on {resource}" for item, resource in granted - needed]
    return complaints


def rule_trust_is_narrow(template: Template) -> list[str]:
    """A service may take a role only for this account and this machine."""
    complaints = []
    for name, properties in resources(transform(template), "AWS::IAM::Role").items():
        for statement in properties["AssumeRolePolicyDocument"]["Statement"]:
            if not CONFUSABLE & set(_list(statement["Principal"].get("Service", []))):
                continue
            keys = {key for test in statement.get("Condition", {}).values() for key in test}
            for key in {"aws:SourceAccount", "aws:SourceArn"} - keys:
                complaints.append(f"{name} does not look at {key}")
    return complaints


def rule_tables_are_safe(template: Template) -> list[str]:
    """A lost lock table is a lost guarantee."""
    wanted = {
        "DeletionProtectionEnabled": True,
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "SSESpecification": {"SSEEnabled": True},
        "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
        "BillingMode": "PAY_PER_REQUEST",
    }
    complaints = []
    for name, properties in resources(template, TABLE).items():
        if name in SAMPLES:
            continue
        complaints += [f"{name}: {key}" for key, value in wanted.items() if properties.get(key) != value]
        for key in ("DeletionPolicy", "UpdateReplacePolicy"):
            complaints += [f"{name}: {key}"] * (template["Resources"][name].get(key) != "Retain")
    return complaints


def rule_buckets_are_safe(template: Template) -> list[str]:
    """Large results are as private and as lasting as the records that lead to them."""
    wanted = {
        "VersioningConfiguration": {"Status": "Enabled"},
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
        "PublicAccessBlockConfiguration": dict.fromkeys(
            ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
        ),
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [
                {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
            ]
        },
    }
    complaints = []
    for name, properties in resources(template, BUCKET).items():
        complaints += [f"{name}: {key}" for key, value in wanted.items() if properties.get(key) != value]
        for key in ("DeletionPolicy", "UpdateReplacePolicy"):
            complaints += [f"{name}: {key}"] * (template["Resources"][name].get(key) != "Retain")
        denied = [
            statement
            for policy in resources(template, "AWS::S3::BucketPolicy").values()
            for statement in policy["PolicyDocument"]["Statement"]
            if policy["Bucket"] == {"Ref": name}
        ]
        everything = [{"Fn::GetAtt": [name, "Arn"]}, {"Fn::Sub": f"${{{name}.Arn}}/*"}]
        only_tls = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": everything} | {
            "Condition": {"Bool": {"aws:SecureTransport": "false"}}
        }
        complaints += [f"{name} takes calls without TLS"] * (only_tls not in denied)
    return complaints


def rule_large_results_are_granted_by_the_action(template: Template) -> list[str]:
    """Whoever works writes, whoever answers reads one version; nobody lists, and none in another account."""
    may = {
        "ReadResultsPolicy": {"s3:GetObjectVersion"},
        "HttpApiFunction": {"s3:GetObjectVersion"},
        "ChargeCardFunction": {"s3:PutObject", "s3:PutObjectTagging"},
    }
    complaints = []
    for name, statement in _statements(template):
        actions = {item for item in _list(statement["Action"]) if item.startswith("s3:")}
        if statement["Effect"] == "Deny" or not actions:
            continue
        complaints += [f"{name} may {item}" for item in actions - may.get(name, set())]
        complaints += [f"{name} may reach {statement['Resource']}"] * (statement["Resource"] != RESULTS)
        complaints += [f"{name} may reach other accounts"] * (statement.get("Condition") != OWN_ACCOUNT)
    return complaints


def rule_machines_are_standard_and_watched(template: Template) -> list[str]:
    """EXPRESS knows no names and no callbacks; payloads stay out of the logs."""
    complaints = []
    for name, properties in resources(template, MACHINE).items():
        logging = properties.get("Logging", {})
        complaints += [f"{name} is not STANDARD"] * (properties.get("Type") != "STANDARD")
        complaints += [f"{name} is not traced"] * (properties.get("Tracing") != {"Enabled": True})
        complaints += [f"{name} logs too little"] * (logging.get("Level") != "ALL")
        complaints += [f"{name} logs payloads"] * (logging.get("IncludeExecutionData") is not False)
        complaints += [f"{name} logs nowhere"] * (not logging.get("Destinations"))
    return complaints


def rule_logs_are_forgotten(template: Template) -> list[str]:
    """A log group without a retention keeps everything for ever."""
    groups = resources(template, "AWS::Logs::LogGroup")
    return [f"{name} keeps for ever" for name, group in groups.items() if "RetentionInDays" not in group]


def rule_log_groups_are_in_no_new_stack_s_way(template: Template) -> list[str]:
    """
    A function whose lines come late makes its group again, so that has no name. Step Functions makes none.

    It had a name once. The update to this template must not delete those logs.
    """
    complaints = []
    for name, group in resources(template, "AWS::Logs::LogGroup").items():
        given, kept = (
            str(group.get("LogGroupName", "")),
            template["Resources"][name].get("UpdateReplacePolicy"),
        )
        complaints += [f"{name} is called {given}"] * bool(given and "/aws/vendedlogs/" not in given)
        complaints += [f"{name} is not kept"] * (not given and kept != "Retain")
    return complaints


def rule_functions_are_alike(template: Template) -> list[str]:
    """One runtime for functions and layer, one handler's name, traces from all."""
    complaints = []
    for name, properties in resources(transform(template), "AWS::Lambda::Function").items():
        right = {"Runtime": RUNTIME, "Handler": "app.handler", "TracingConfig": {"Mode": "Active"}}
        complaints += [f"{name}: {key}" for key, value in right.items() if properties.get(key) != value]
        complaints += [f"{name} has no layer"] * (not properties.get("Layers"))
    for name, properties in resources(template, "AWS::Serverless::LayerVersion").items():
        recipe = template["Resources"][name]["Metadata"]["BuildMethod"]
        complaints += [f"{name} is not for {RUNTIME} alone"] * (properties["CompatibleRuntimes"] != [RUNTIME])
        complaints += [f"{name} is not built by src/Makefile"] * (recipe != "makefile")
    return complaints


def rule_names_correspond(template: Template) -> list[str]:
    """functions/check_owner is CheckOwnerFunction is ${CheckOwnerFunctionArn}; so with workflows."""
    complaints = []
    for paths, kind, suffix, key in (
        (FUNCTIONS, FUNCTION, "Function", "CodeUri"),
        (MACHINES, MACHINE, "StateMachine", "DefinitionUri"),
    ):
        wanted = {_pascal(path.name) + suffix: str(path.relative_to(ROOT)) for path in paths}
        found = {name: properties[key] for name, properties in resources(template, kind).items()}
        complaints += [f"{item} belongs together" for item in sorted(wanted.items() ^ found.items())]
    for machine, properties in resources(template, MACHINE).items():
        for name, value in properties["DefinitionSubstitutions"].items():
            if name.endswith("Arn") and value != {"Fn::GetAtt": [name.removesuffix("Arn"), "Arn"]}:
                complaints.append(f"{machine}: {name} is {value}")
            if name.endswith("Table") and _used(value) != {"Ref": name}:
                complaints.append(f"{machine}: {name} is {value}")
    return complaints


def rule_substitutions_are_defined_and_used(template: Template) -> list[str]:
    """A placeholder that nobody fills stays in the definition, and fails when it is reached."""
    complaints = []
    for name, properties in resources(template, MACHINE).items():
        used = set(re.findall(r"\$\{([^}]*)\}", json.dumps(_definition(properties))))
        defined = properties.get("DefinitionSubstitutions", {})
        complaints += [f"{name}: ${{{item}}} is not defined" for item in used - set(defined)]
        complaints += [f"{name}: ${{{item}}} is not used" for item in set(defined) - used]
        complaints += [
            f"{name}: {item} is {defined[item]}"
            for item, right in CHOSEN.items()
            if defined.get(item, right) != right
        ]
    return complaints


def rule_errors_are_joined_as_json(template: Template) -> list[str]:
    """The list stands between two quotes in the definition; what joins it closes and opens them."""
    return [
        f"{name}: FinalErrors"
        for name, properties in resources(template, MACHINE).items()
        if properties["DefinitionSubstitutions"].get("FinalErrors")
        not in (None, {"Fn::Join": ['","', {"Ref": "FinalErrors"}]})
    ]


def rule_defaults_are_sane(template: Template) -> list[str]:
    """A stack that nobody configured is a safe one."""
    parameters = template["Parameters"]
    default = {name: parameter.get("Default") for name, parameter in parameters.items()}
    work = default["WorkTimeoutSeconds"]
    tests = {
        "every parameter has a default": None not in default.values(),
        "Lambda allows 900 seconds": parameters["WorkTimeoutSeconds"]["MaxValue"] <= 900,
        "the work has time": 1 <= work <= parameters["WorkTimeoutSeconds"]["MaxValue"],
        "three tries of the work are not overdue": default["ExpectedSeconds"] >= 3 * work,
        "a waiting order is not overdue": default["ExpectedSeconds"]
        >= default["ConfirmationHeartbeatSeconds"] + default["ConfirmationExtensionSeconds"] + 3 * work,
        "a record outlives its execution's name": int(default["RetentionSeconds"]) >= 90 * 86_400,
        "a record outlives the search for lost messages": not re.fullmatch(
            parameters["RetentionSeconds"]["AllowedPattern"], str(int(2 * SEARCHED_AFTER.total_seconds()))
        ),
        "an unknown outcome is for a person": default["WhenOutcomeUnknown"] == "hold",
        "everyone gets the same answer": default["WhenCompleted"] == "replay",
        "error names have no blanks": not re.search(r"\s", default["FinalErrors"]),
        "lock tokens have a prefix": parameters["KeyPrefix"]["MaxLength"] + 81 <= 2_048,
    }
    return [text for text, holds in tests.items() if not holds]


def rule_tasks_outlast_their_functions(template: Template) -> list[str]:
    """A task that gives up first, or at the same time, does not learn that its function has ended."""
    complaints = []
    common = template["Globals"]["Function"]["Timeout"]
    functions = resources(template, FUNCTION)
    for properties in resources(template, MACHINE).values():
        for name, task in tasks(_definition(properties)):
            function = functions.get(task["Parameters"].get("FunctionName", "")[2:-4])
            if function is None or task["Resource"].endswith(".waitForTaskToken"):
                continue  # the time of a waiting task is the outside's, not its function's
            timeout = function.get("Timeout", common)
            if "TimeoutSecondsPath" in task:
                right = timeout == {"Ref": "WorkTimeoutSeconds"}
            else:
                right = isinstance(timeout, int) and task["TimeoutSeconds"] > timeout
            complaints += [f"{name} gives up before its function, which has {timeout} s"] * (not right)
    return complaints


def rule_the_machine_outlasts_its_work(template: Template) -> list[str]:
    """Every try of the work at its longest, and every pause between, fit into the machine's time."""
    limits = template["Parameters"]
    longest = limits["WorkTimeoutSeconds"]["MaxValue"]
    waiting = sum(limits[f"Confirmation{part}Seconds"]["MaxValue"] for part in ("Heartbeat", "Extension"))
    shortest = limits["RequestTimeoutSeconds"]["MinValue"]
    complaints = []
    for name, properties in resources(template, MACHINE).items():
        definition = _definition(properties)
        retriers = definition["States"].get("DoWork", {}).get("Retry", [])
        tries = 1 + sum(retrier["MaxAttempts"] for retrier in retriers)
        pauses = sum(retrier["MaxAttempts"] * retrier["MaxDelaySeconds"] for retrier in retriers)
        needed = tries * longest + pauses + waiting
        complaints += [f"{name} needs {needed} s"] * (needed >= definition.get("TimeoutSeconds", shortest))
        comes_in = properties["DefinitionSubstitutions"].get("RequestTimeout")
        complaints += [f"{name}: RequestTimeout is {comes_in}"] * (comes_in not in (None, REQUEST_TIMEOUT))
    complaints += ["the rules of asl.py think of another time"] * (shortest != SHORTEST_REQUEST_TIMEOUT)
    return complaints


def rule_environments_are_complete(template: Template) -> list[str]:
    """What a function reads from its environment, the template puts there; nothing else."""
    common = template["Globals"]["Function"]["Environment"]["Variables"]
    complaints = []
    everything = set()
    functions = resources(template, FUNCTION)
    for path in FUNCTIONS:
        name = f"{_pascal(path.name)}Function"
        if name not in functions:
            continue  # of the other file
        own = functions[name].get("Environment", {}).get("Variables", {})
        read = environment_read_by(path / "app.py")
        everything |= read
        complaints += [f"{name} has no {item}" for item in read - set(own) - set(common)]
        complaints += [f"{name} does not read {item}" for item in set(own) - read]
    unread = {item for item in common if not item.startswith("POWERTOOLS_")} - everything
    return complaints + [f"no function reads {item}" for item in unread]


def rule_whole_numbers_are_no_fractions(template: Template) -> list[str]:
    """The type Number takes 2.5, and a function that wants a whole number does not start with that."""
    read = {name for folder in FUNCTIONS for name in whole_numbers_read_by(folder / "app.py")}
    found = {name: item for name, item in template["Parameters"].items() if name in read}
    return [
        f"the parameter {name} may be a fraction"
        for name, item in found.items()
        if item["Type"] != "String" or re.fullmatch(item.get("AllowedPattern", ".*"), "2.5")
    ]


def rule_parameters_are_used(template: Template) -> list[str]:
    """A parameter or condition that nothing reads is a promise that nothing keeps."""
    parts = ("Rules", "Conditions", "Globals", "Resources", "Outputs")
    rest = {key: template.get(key, {}) for key in parts}
    read = set(_references(rest))
    conditions = {part["Fn::If"][0] for part in walk(rest) if isinstance(part, dict) and "Fn::If" in part}
    conditions |= {
        item.get("Condition") for part in ("Resources", "Outputs") for item in template[part].values()
    }
    complaints = [f"nothing reads the parameter {name}" for name in set(template["Parameters"]) - read]
    return complaints + [f"nothing asks {name}" for name in set(template["Conditions"]) - conditions]


def rule_outputs_tell_the_client(template: Template) -> list[str]:
    """Client.from_stack reads the same settings as the functions that start and prepare requests."""
    settings = template["Globals"]["Function"]["Environment"]["Variables"]
    outputs = template["Outputs"]
    complaints = [
        f"the Output {name} is not what the functions read"
        for name, value in settings.items()
        if not name.startswith("POWERTOOLS_")
        and name != "RunOnceStateMachineArn"  # made of text, to avoid a cycle; another rule reads it
        and outputs.get(name, {}).get("Value") != value
    ]
    needed = {"RunOnceStateMachineArn", "LocksTable"} - set(outputs)
    return complaints + [f"there is no Output {name}" for name in needed]


def rule_a_guided_deployment_goes_through(template: Template) -> list[str]:
    """For an API that says nothing of authorization, `sam deploy --guided` asks, and Enter aborts."""
    complaints = []
    for name, properties in resources(template, FUNCTION).items():
        for event in properties.get("Events", {}).values():
            api = event["Properties"].get("ApiId", {}).get("Ref")
            if event["Type"] in ("Api", "HttpApi") and not (
                api in template["Resources"] and template["Resources"][api]["Properties"].get("Auth")
            ):
                complaints.append(f"{name}: its API does not say who may call it")
    return complaints + [
        f"the parameter {name} has no default"
        for name, item in template["Parameters"].items()
        if "Default" not in item
    ]


def rule_no_rule_asks_what_it_cannot_know(template: Template) -> list[str]:
    """Whether an empty list is one empty text is nowhere said, so a rule looks at texts only."""
    kinds = {name: item["Type"] for name, item in template["Parameters"].items()}
    return [
        f"the rule {name} looks at the list {part['Ref']}"
        for name, rule in template.get("Rules", {}).items()
        for part in walk(rule)
        if isinstance(part, dict) and kinds.get(part.get("Ref"), "String") != "String"
    ]


def rule_templates_of_events_hold_no_foreign_placeholder(template: Template) -> list[str]:
    """EventBridge takes what stands between < and > for its own; a parameter's value must not have them."""
    complaints = []
    for part in walk(template["Resources"]):
        text = part.get("InputTemplate", {}) if isinstance(part, dict) else {}
        for name in re.findall(r"\$\{(\w+)\}", text.get("Fn::Sub", "") if isinstance(text, dict) else ""):
            pattern = template["Parameters"][name].get("AllowedPattern", ".*")
            if re.fullmatch(pattern, '{"a": "<id>"}') or not re.fullmatch(pattern, '{"a": [1]}'):
                complaints.append(f"{name} may bring in a placeholder of EventBridge")
    return complaints


def rule_a_request_starts_no_other(template: Template) -> list[str]:
    """Each execution sends events of aws.states, so a rule for all of them would start requests for ever."""
    return [
        f"{name} may name aws.states for {rule}"
        for rule, properties in resources(template, "AWS::Events::Rule").items()
        for name in _references(properties.get("EventPattern", {}).get("source", []))
        if re.fullmatch(template["Parameters"][name].get("AllowedPattern", ".*"), "aws.states")
    ]


def rule_the_workflow_can_be_another(template: Template) -> list[str]:
    """Every other resource serves any workflow, and knows the state machine and nothing of what it needs."""
    graph = _dependencies(template)
    own = WORKFLOW - {"RunOnceStateMachine"}
    complaints = [f"there is no {name}" for name in WORKFLOW - set(graph)]
    return complaints + [
        f"{name} knows {target}"
        for name in sorted(set(graph) - WORKFLOW)
        for target in sorted(own & set(graph[name]))
    ]


def rule_made_arns_name_our_machines(template: Template) -> list[str]:
    """An ARN made of text, to avoid a cycle, must be the one that the machine will have."""
    names = [properties["Name"]["Fn::Sub"] for properties in resources(template, MACHINE).values()]
    complaints = []
    for part in walk(template):
        text = part.get("Fn::Sub") if isinstance(part, dict) else None
        if isinstance(text, str) and re.search(r":(execution|stateMachine):", text):
            name = re.sub(r".*:(execution|stateMachine):", "", text).removesuffix(":*")
            complaints += [f"{text} names no machine of ours"] * (name not in names)
    return complaints


def _dependencies(template: Template) -> dict[str, list[str]]:
    """Which resources each resource needs first."""
    found = template["Resources"]
    common = set(_references(template.get("Globals", {}).get("Function", {})))
    graph = {}
    for name, item in found.items():
        needed = set(_references(item)) | set(_list(item.get("DependsOn", [])))
        needed |= common if item["Type"] == FUNCTION else set()
        graph[name] = sorted(needed & set(found))
    return graph


def _references(value: Any) -> Iterator[str]:
    for part in walk(value):
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("Ref"), str):
            yield part["Ref"]
        if "Fn::GetAtt" in part:
            target = part["Fn::GetAtt"]
            yield target.partition(".")[0] if isinstance(target, str) else target[0]
        if "Fn::Sub" in part:
            text = part["Fn::Sub"] if isinstance(part["Fn::Sub"], str) else part["Fn::Sub"][0]
            yield from re.findall(r"\$\{([A-Za-z0-9:]+)", text)


def _statements(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every statement of every policy, with its resource's logical id."""
    for name, item in template["Resources"].items():
        for part in walk(item):
            if isinstance(part, dict) and "Effect" in part:
                yield name, part


def _is_ours(template: Template, policy: Any) -> bool:
    """Whether it is a managed policy that the template itself makes."""
    return isinstance(policy, dict) and policy.get("Ref") in resources(template, "AWS::IAM::ManagedPolicy")


def _is_inline(policy: Any) -> bool:
    """Whether a function's policy is told in so many words, also under a condition."""
    match policy:
        case {"Fn::If": [_, inner, {"Ref": "AWS::NoValue"}]}:
            return _is_inline(inner)
    return "Statement" in policy


def _is_wide(resource: Any) -> bool:
    """Whether a resource is a wildcard that begins before anything of this stack is named."""
    if not isinstance(resource, str):
        texts = [part["Fn::Sub"] for part in walk(resource) if isinstance(part, dict) and "Fn::Sub" in part]
        return any(_is_wide(text if isinstance(text, str) else text[0]) for text in texts)
    before, wildcard, _ = resource.partition("*")
    named = set(re.findall(r"\$\{([^}]+)\}", before)) - {"AWS::Partition", "AWS::Region", "AWS::AccountId"}
    return bool(wildcard) and not named


def _arn_of(resource: Any) -> str:
    """The logical id of a resource that is named by its Arn; empty if it is not."""
    match resource:
        case {"Fn::GetAtt": [name, "Arn"]}:
            return name
        case {"Fn::If": [_, used, ""]}:  # a table that is there for a parameter only
            return _arn_of(used)
        case {"Fn::Sub": str(text)} if found := re.fullmatch(r"\$\{(\w+)\.Arn\}(/index/\w+)?", text):
            return found[1]
    return ""


def _calls(definition: dict[str, Any], values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a workflow's states do, and to which resource."""
    for _, task in tasks(definition):
        service, operation = action(task).removesuffix(".waitForTaskToken").split(":")
        if service == "lambda":
            placeholder = task["Parameters"]["FunctionName"]
            yield "lambda:InvokeFunction", _arn_of(values.get(placeholder[2:-1]))
        else:
            placeholder = task["Parameters"].get("TableName", "")
            target = _used(values.get(placeholder[2:-1], {}))
            yield f"{service}:{operation[0].upper()}{operation[1:]}", target.get("Ref", "")


def _used(value: Any) -> Any:
    """What a substitution is where its state is used: a table may be there for a parameter only."""
    match value:
        case {"Fn::If": [_, used, "none"]}:
            return used
    return value


def _definition(properties: dict[str, Any]) -> dict[str, Any]:
    return load_json(ROOT / properties["DefinitionUri"])


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.partition(".")[0].split("_"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
