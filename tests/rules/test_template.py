"""The template keeps every rule of template.py, and every rule catches what was planted for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import documents, template
from .documents import GONE, ROOT, TEMPLATES, lint_template, rules_of, spoilt

RULES = rules_of(template)

LOCKS = "Resources/LocksTable"
MACHINE = "Resources/RunOnceStateMachine/Properties"
SUBSTITUTIONS = f"{MACHINE}/DefinitionSubstitutions"
ROLE = "Resources/RunOnceRole/Properties"
GRANTS = f"{ROLE}/Policies/0/PolicyDocument/Statement"
TRUST = f"{ROLE}/AssumeRolePolicyDocument/Statement/0/Condition"
CHECK_OWNER = "Resources/CheckOwnerFunction/Properties"
SETTLES = "Resources/SettleLocksPolicy/Properties/PolicyDocument/Statement"
MARKS = "Resources/ResendRequestFunction/Properties/Policies/0/Statement/1"
COMMON = "Globals/Function/Environment/Variables"

RESULTS = "Resources/ResultsBucket"
TLS = "Resources/ResultsBucketPolicy/Properties/PolicyDocument/Statement/0"
READS = "Resources/ReadResultsPolicy/Properties/PolicyDocument/Statement/0"
WORK = "Resources/ChargeCardFunction/Properties/Policies/0/Statement/2/Fn::If/1"

SQS_EVENT = {"Type": "SQS", "Properties": {"Queue": {"Fn::GetAtt": ["AnswersQueue", "Arn"]}}}

ANYONE = "Properties/PolicyDocument/Statement/0"
OPEN_QUEUE = {
    "Type": "AWS::SQS::QueuePolicy",
    "Properties": {
        "Queues": [{"Ref": "AnswersQueue"}],
        "PolicyDocument": {
            "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "x"}]
        },
    },
}

FAULTS: list[tuple[Callable[..., list[str]], dict[str, Any]]] = [
    (
        template.rule_nothing_waits_for_itself,
        {f"{SETTLES}/1/Resource": {"Ref": "RunOnceStateMachine"}},
    ),
    (
        template.rule_nothing_waits_for_itself,
        {f"{CHECK_OWNER}/Environment/Variables/MACHINE": {"Fn::Sub": "${RunOnceStateMachine.Arn}/x"}},
    ),
    (
        template.rule_nothing_waits_for_itself,
        {
            "Globals/Function/Environment/Variables/MACHINE": {
                "Fn::Sub": ["${RunOnceStateMachine}${x}", {"x": "y"}]
            }
        },
    ),
    (template.rule_nothing_waits_for_itself, {f"{LOCKS}/DependsOn": "ChargeCardFunction"}),
    (template.rule_permissions_are_narrow, {f"{GRANTS}/1/Action": "lambda:*"}),
    (template.rule_permissions_are_narrow, {f"{GRANTS}/1/Resource": "*"}),
    (template.rule_permissions_are_narrow, {f"{SETTLES}/0/Action": "*"}),
    (template.rule_permissions_are_narrow, {f"{SETTLES}/1/Resource": ["*"]}),
    (template.rule_permissions_are_narrow, {f"{GRANTS}/2/Action/0": "logs:CreateLogGroup"}),
    (
        template.rule_permissions_are_narrow,
        {f"{GRANTS}/1/Resource": GONE, f"{GRANTS}/1/NotResource": {"Ref": "X"}},
    ),
    (template.rule_permissions_are_narrow, {f"{GRANTS}/1/Action": GONE, f"{GRANTS}/1/NotAction": "iam:*"}),
    (template.rule_permissions_are_narrow, {f"{GRANTS}/1/Resource": "arn:aws:lambda:*:*:function:*"}),
    (
        template.rule_permissions_are_narrow,
        {f"{GRANTS}/1/Resource": {"Fn::Sub": "arn:aws:lambda:${AWS::Region}:${AWS::AccountId}:*"}},
    ),
    (
        template.rule_permissions_are_narrow,
        {f"{SETTLES}/1/Resource": {"Fn::Split": [",", {"Fn::Sub": "arn:aws:states:*:*:execution:*"}]}},
    ),
    (template.rule_exceptions_are_used, {f"{GRANTS}/2/Action/0": "logs:CreateLogGroup"}),
    (template.rule_nobody_is_everyone, {"Resources/Open": OPEN_QUEUE}),
    (
        template.rule_nobody_is_everyone,
        {"Resources/Open": spoilt(OPEN_QUEUE, {f"{ANYONE}/Principal": {"AWS": "*"}})},
    ),
    (
        template.rule_tables_are_granted_by_the_action,
        {f"{CHECK_OWNER}/Policies/0": {"DynamoDBCrudPolicy": {"TableName": {"Ref": "LocksTable"}}}},
    ),
    (template.rule_tables_are_granted_by_the_action, {f"{CHECK_OWNER}/Policies": "AmazonDynamoDBFullAccess"}),
    (template.rule_tables_are_granted_by_the_action, {f"{GRANTS}/0/Action": ["dynamodb:Scan"]}),
    (
        template.rule_tables_are_granted_by_the_action,
        {f"{GRANTS}/0/Resource": {"Fn::Sub": "arn:aws:dynamodb:us-east-1:1:table/*"}},
    ),
    (template.rule_marks_of_letters_are_no_locks, {f"{MARKS}/Condition": GONE}),
    (template.rule_machines_may_do_what_they_do, {f"{GRANTS}/0/Action": "dynamodb:UpdateItem"}),
    (template.rule_machines_may_do_what_they_do, {f"{GRANTS}/0/Action/0": "dynamodb:DeleteItem"}),
    (template.rule_machines_may_do_what_they_do, {f"{GRANTS}/1/Resource/1": GONE}),
    (template.rule_machines_may_do_what_they_do, {f"{GRANTS}/3": GONE}),
    (template.rule_machines_may_do_what_they_do, {f"{GRANTS}/3/Fn::If/1/Action": "dynamodb:PutItem"}),
    (
        template.rule_machines_may_do_what_they_do,
        {f"{GRANTS}/0/Resource": {"Fn::GetAtt": ["ChargesTable", "Arn"]}},
    ),
    (template.rule_trust_is_narrow, {f"{TRUST}/StringEquals": GONE}),
    (template.rule_trust_is_narrow, {f"{TRUST}/ArnLike": GONE}),
    (template.rule_trust_is_narrow, {f"{MACHINE}/Role": GONE}),
    (template.rule_tables_are_safe, {f"{LOCKS}/DeletionPolicy": GONE}),
    (template.rule_tables_are_safe, {f"{LOCKS}/UpdateReplacePolicy": "Delete"}),
    (template.rule_tables_are_safe, {f"{LOCKS}/Properties/DeletionProtectionEnabled": False}),
    (template.rule_tables_are_safe, {f"{LOCKS}/Properties/PointInTimeRecoverySpecification": GONE}),
    (template.rule_tables_are_safe, {f"{LOCKS}/Properties/SSESpecification/SSEEnabled": False}),
    (
        template.rule_tables_are_safe,
        {f"{LOCKS}/Properties/TimeToLiveSpecification/AttributeName": "expiresAt"},
    ),
    (template.rule_buckets_are_safe, {f"{RESULTS}/Properties/VersioningConfiguration/Status": "Suspended"}),
    (
        template.rule_buckets_are_safe,
        {f"{RESULTS}/Properties/PublicAccessBlockConfiguration/BlockPublicAcls": False},
    ),
    (template.rule_buckets_are_safe, {f"{RESULTS}/Properties/BucketEncryption": GONE}),
    (template.rule_buckets_are_safe, {f"{RESULTS}/Properties/OwnershipControls": GONE}),
    (template.rule_buckets_are_safe, {f"{RESULTS}/DeletionPolicy": GONE}),
    (template.rule_buckets_are_safe, {"Resources/ResultsBucketPolicy": GONE}),
    (template.rule_buckets_are_safe, {f"{TLS}/Resource/1": GONE}),
    (template.rule_buckets_are_safe, {f"{TLS}/Condition": GONE}),
    (template.rule_large_results_are_granted_by_the_action, {f"{READS}/Action": "s3:GetObject"}),
    (template.rule_large_results_are_granted_by_the_action, {f"{READS}/Condition": GONE}),
    (
        template.rule_large_results_are_granted_by_the_action,
        {f"{READS}/Resource": {"Fn::Sub": "${ResultsBucket.Arn}/*"}},
    ),
    (template.rule_large_results_are_granted_by_the_action, {f"{WORK}/Action/1": "s3:GetObjectVersion"}),
    (
        template.rule_large_results_are_granted_by_the_action,
        {"Resources/RecordAwaitingStepFunction/Properties/Policies/0/Statement/0/Action": "s3:ListBucket"},
    ),
    (
        template.rule_tables_are_granted_by_the_action,
        {"Resources/HttpApiFunction/Properties/Policies/1/Fn::If/1": "AmazonS3FullAccess"},
    ),
    (template.rule_machines_are_standard_and_watched, {f"{MACHINE}/Type": "EXPRESS"}),
    (template.rule_machines_are_standard_and_watched, {f"{MACHINE}/Tracing/Enabled": False}),
    (template.rule_machines_are_standard_and_watched, {f"{MACHINE}/Logging/Level": "ERROR"}),
    (template.rule_machines_are_standard_and_watched, {f"{MACHINE}/Logging/IncludeExecutionData": True}),
    (template.rule_machines_are_standard_and_watched, {f"{MACHINE}/Logging/Destinations": GONE}),
    (template.rule_logs_are_forgotten, {"Resources/StateLogs/Properties/RetentionInDays": GONE}),
    (
        template.rule_log_groups_are_in_no_new_stack_s_way,
        {"Resources/FunctionLogs/UpdateReplacePolicy": GONE},
    ),
    (
        template.rule_log_groups_are_in_no_new_stack_s_way,
        {"Resources/FunctionLogs/Properties/LogGroupName": {"Fn::Sub": "/aws/lambda/${AWS::StackName}"}},
    ),
    (template.rule_functions_are_alike, {f"{CHECK_OWNER}/Runtime": "python3.12"}),
    (template.rule_functions_are_alike, {f"{CHECK_OWNER}/Handler": "app.main"}),
    (template.rule_functions_are_alike, {"Globals/Function/Tracing": GONE}),
    (template.rule_functions_are_alike, {"Globals/Function/Layers": GONE}),
    (
        template.rule_functions_are_alike,
        {"Resources/SteponceLayer/Properties/CompatibleRuntimes": ["python3.12"]},
    ),
    (template.rule_functions_are_alike, {"Resources/SteponceLayer/Metadata/BuildMethod": "python3.12"}),
    (template.rule_names_correspond, {f"{CHECK_OWNER}/CodeUri": "functions/charge_card"}),
    (template.rule_names_correspond, {"Resources/CheckOwnerFunction": GONE}),
    (template.rule_names_correspond, {f"{MACHINE}/DefinitionUri": "statemachines/run.asl.json"}),
    (
        template.rule_names_correspond,
        {f"{SUBSTITUTIONS}/CheckOwnerFunctionArn": {"Fn::GetAtt": ["ChargeCardFunction", "Arn"]}},
    ),
    (template.rule_names_correspond, {f"{SUBSTITUTIONS}/LocksTable": {"Ref": "ChargesTable"}}),
    (template.rule_substitutions_are_defined_and_used, {f"{SUBSTITUTIONS}/LocksTable": GONE}),
    (
        template.rule_substitutions_are_defined_and_used,
        {f"{SUBSTITUTIONS}/ChargesTable": {"Ref": "ChargesTable"}},
    ),
    (
        template.rule_substitutions_are_defined_and_used,
        {f"{SUBSTITUTIONS}/RefusedStatus/Fn::If/2": "FAILED"},
    ),
    (
        template.rule_substitutions_are_defined_and_used,
        {f"{SUBSTITUTIONS}/UnlimitedField/Fn::If/1": "callId"},
    ),
    (
        template.rule_errors_are_joined_as_json,
        {f"{SUBSTITUTIONS}/FinalErrors": {"Fn::Join": [",", {"Ref": "FinalErrors"}]}},
    ),
    (template.rule_defaults_are_sane, {"Parameters/FinalErrors/Default": "CardDeclined, OutOfStock"}),
    (template.rule_defaults_are_sane, {"Parameters/WorkTimeoutSeconds/MaxValue": 901}),
    (template.rule_defaults_are_sane, {"Parameters/WorkTimeoutSeconds/Default": 900}),
    (template.rule_defaults_are_sane, {"Parameters/ExpectedSeconds/Default": 60}),
    (template.rule_defaults_are_sane, {"Parameters/RetentionSeconds/Default": "86400"}),
    (template.rule_defaults_are_sane, {"Parameters/RetentionSeconds/AllowedPattern": "[0-9]+"}),
    (template.rule_defaults_are_sane, {"Parameters/WhenOutcomeUnknown/Default": "take-over"}),
    (template.rule_defaults_are_sane, {"Parameters/WhenCompleted/Default": "refuse"}),
    (template.rule_defaults_are_sane, {"Parameters/LockTokenPath/Default": GONE}),
    (template.rule_defaults_are_sane, {"Parameters/KeyPrefix/MaxLength": 2_048}),
    (template.rule_tasks_outlast_their_functions, {f"{CHECK_OWNER}/Timeout": 60}),
    (template.rule_tasks_outlast_their_functions, {"Globals/Function/Timeout": 60}),
    (
        template.rule_tasks_outlast_their_functions,
        {"Resources/ChargeCardFunction/Properties/Timeout": GONE},
    ),
    (template.rule_the_machine_outlasts_its_work, {"Parameters/WorkTimeoutSeconds/MaxValue": 43_200}),
    (
        template.rule_the_machine_outlasts_its_work,
        {"Parameters/ConfirmationHeartbeatSeconds/MaxValue": 1_400_000},
    ),
    (template.rule_the_machine_outlasts_its_work, {"Parameters/RequestTimeoutSeconds/MinValue": 2_600_000}),
    (
        template.rule_the_machine_outlasts_its_work,
        {f"{SUBSTITUTIONS}/RequestTimeout": {"Ref": "RequestTimeoutSeconds"}},
    ),
    (
        template.rule_managed_policies_are_few,
        {"Resources/ResolveAwaitingStepFunction/Properties/Events/Queue": SQS_EVENT},
    ),
    (
        template.rule_only_the_resolver_answers,
        {f"{SETTLES}/0/Action": "states:SendTaskSuccess"},
    ),
    (template.rule_environments_are_complete, {f"{CHECK_OWNER}/Environment": GONE}),
    (template.rule_environments_are_complete, {f"{COMMON}/KeyPrefix": GONE}),
    (template.rule_environments_are_complete, {f"{COMMON}/LockTokenPath": GONE}),
    (template.rule_environments_are_complete, {f"{CHECK_OWNER}/Environment/Variables/Retention": "1"}),
    (
        template.rule_environments_are_complete,
        {f"{COMMON}/LocksTable": GONE},
    ),
    (template.rule_environments_are_complete, {f"{COMMON}/STAGE": "dev"}),
    (template.rule_whole_numbers_are_no_fractions, {"Parameters/OpenShards/Type": "Number"}),
    (template.rule_whole_numbers_are_no_fractions, {"Parameters/ResendTries/AllowedPattern": GONE}),
    (template.rule_whole_numbers_are_no_fractions, {"Parameters/RateLimit/AllowedPattern": "[0-9.]+"}),
    (template.rule_parameters_are_used, {"Parameters/Stage": {"Type": "String", "Default": "dev"}}),
    (template.rule_parameters_are_used, {"Conditions/IsSmall": {"Fn::Equals": ["a", "b"]}}),
    (template.rule_outputs_tell_the_client, {"Outputs/LocksTable": GONE}),
    (template.rule_outputs_tell_the_client, {"Outputs/ExpectedSeconds/Value": 300}),
    (template.rule_a_guided_deployment_goes_through, {"Resources/CallbacksApi/Properties/Auth": GONE}),
    (template.rule_a_guided_deployment_goes_through, {"Parameters/KeyPrefix/Default": GONE}),
    (template.rule_no_rule_asks_what_it_cannot_know, {"Parameters/JwtAudience/Type": "CommaDelimitedList"}),
    (
        template.rule_templates_of_events_hold_no_foreign_placeholder,
        {"Parameters/SchedulePayload/AllowedPattern": GONE},
    ),
    (template.rule_a_request_starts_no_other, {"Parameters/EventSources/AllowedPattern": GONE}),
    (
        template.rule_the_workflow_can_be_another,
        {f"{CHECK_OWNER}/Environment/Variables/Charges": {"Ref": "ChargesTable"}},
    ),
    (template.rule_the_workflow_can_be_another, {"Resources/ChargesTable": GONE}),
    (template.rule_made_arns_name_our_machines, {f"{MACHINE}/Name": {"Fn::Sub": "${AWS::StackName}-once"}}),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_template_keeps_the_rule(rule: Callable[..., list[str]]) -> None:
    """No complaints about the template."""
    assert [] == rule(documents.whole_template())


@pytest.mark.full
@pytest.mark.parametrize(("rule", "faults"), FAULTS, ids=lambda part: getattr(part, "__name__", None))
def test_the_rule_catches_its_planted_fault(rule: Callable[..., list[str]], faults: dict[str, Any]) -> None:
    """A rule that cannot fail is no rule."""
    assert [] != rule(documents.spoilt_template(faults))


def test_every_rule_has_a_planted_fault() -> None:
    """No rule goes without proof that it can fail."""
    assert set(RULES) == {rule for rule, _ in FAULTS}


FILES = pytest.mark.parametrize("file", ["template", "requests"])
OF_EACH_FILE = [
    template.rule_environments_are_complete,
    template.rule_functions_are_alike,
    template.rule_parameters_are_used,
    template.rule_whole_numbers_are_no_fractions,
]


@FILES
@pytest.mark.parametrize("rule", OF_EACH_FILE, ids=lambda rule: rule.__name__)
def test_each_file_is_complete_by_itself(file: str, rule: Callable[..., list[str]]) -> None:
    """CloudFormation hands nothing of one template to another that is not written down."""
    assert [] == rule(getattr(documents, file)())


@pytest.mark.parametrize(("file", "name"), [("template", "OpenShards"), ("requests", "KeyPrefix")])
def test_what_one_file_lacks_the_other_does_not_make_up_for(file: str, name: str) -> None:
    """Each has Globals of its own."""
    document = spoilt(getattr(documents, file)(), {f"{COMMON}/{name}": GONE})
    assert [] != template.rule_environments_are_complete(document)


def test_nothing_is_called_after_a_nested_stack() -> None:
    """Its name has up to 128 characters, as many as an API's; a machine's has up to 80."""
    named = documents.requests()["Resources"].values()
    names = [str(one.get("Properties", {}).get("Name")) for one in named]
    assert [] == [name for name in names if "AWS::StackName" in name]


def test_what_both_files_have_is_alike() -> None:
    """Parameters, rules, and what the functions have in common, apart from their environment."""
    main, nested = documents.template(), documents.requests()
    for part in ("Parameters", "Rules"):
        shared = (main[part].keys() & nested[part].keys()) - {"OpenShards", "ResultBucket"}
        assert {name: main[part][name] for name in shared} == {name: nested[part][name] for name in shared}
    assert main["Rules"].keys() <= nested["Rules"].keys()
    common = [dict(document["Globals"]["Function"], Environment=None) for document in (main, nested)]
    assert common[0] == common[1]


def test_the_template_hands_everything_to_its_workflow_s_stack() -> None:
    """Each parameter, and by its own name where there is one."""
    stack = documents.template()["Resources"][documents.REQUESTS]["Properties"]
    assert "requests.yaml" == stack["TemplateURL"]
    assert documents.requests()["Parameters"].keys() == stack["Parameters"].keys()
    for name, value in stack["Parameters"].items():
        if name in documents.template()["Parameters"] and name != "ResultBucket":
            assert value in ({"Ref": name}, {"Fn::Join": [",", {"Ref": name}]})


def test_an_answer_from_the_queue_is_alone_in_its_invocation() -> None:
    """The verdict on one may take a long history, and the function's time-out brings all of a batch back."""
    assert 1 == documents.template()["Resources"]["AnswersMapping"]["Properties"]["BatchSize"]


def test_a_placeholder_that_nobody_defines_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not only is the template read for it, but the workflow as well."""
    wrong = spoilt(documents.machine("run_once"), {"States/ReadLock/Parameters/TableName": "${LockTable}"})
    monkeypatch.setattr(template, "load_json", lambda _: wrong)
    assert ["RunOnceStateMachine: ${LockTable} is not defined"] == (
        template.rule_substitutions_are_defined_and_used(documents.whole_template())
    )


@pytest.mark.full
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_linter_has_nothing_to_say_of_a_template(path: Path) -> None:
    """Those of the examples as well. tests/real asks the SAM CLI; this needs none."""
    lint_template(path)
