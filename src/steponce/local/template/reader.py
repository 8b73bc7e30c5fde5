"""From a SAM template to a plan: what one stack creates, and its outputs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from steponce.local.errors import TemplateError, not_supported
from steponce.local.session import isolated_session
from steponce.local.template.assertions import expect_rules_hold
from steponce.local.template.intrinsics import Resolver
from steponce.local.template.machines import Machines
from steponce.local.template.mappings import read_mappings
from steponce.local.template.messaging import read_queues, read_subscriptions, read_topics
from steponce.local.template.nested import NestedStacks
from steponce.local.template.parameters import parameter_values
from steponce.local.template.physical_names import (
    BUCKET,
    FUNCTION,
    NESTED_STACK,
    SECRET,
    STATE_MACHINE,
    TABLE,
    PhysicalNames,
)
from steponce.local.template.plan import BucketPlan, Deliveries, FunctionPlan, MachinePlan, Plan, TablePlan
from steponce.local.template.renderings import (
    MOST,
    Rendering,
    choices,
    combinations,
    stand_ins,
    that_matter,
)
from steponce.local.template.resources import Resources
from steponce.local.template.routes import read_apis
from steponce.local.template.rules import read_destinations, read_rules
from steponce.local.template.scalars import as_text, whole_number
from steponce.local.template.source import read_source, well_formed
from steponce.local.template.support import REMOTE, function_problem, left_out, macros

# Stands for files on this machine while the transform, which insists on S3, does its work.
_PLACEHOLDER_URI = "s3://local/file"

_BESIDE = "."
"""Where `sam build` and `sam deploy` look for the code of a function that does not say it."""

_OTHER_CODE = {"InlineCode", "ImageUri"}

_OF_AN_INDEX = ("IndexName", "KeySchema", "Projection", "ProvisionedThroughput")
_OF_A_TABLE = (
    "AttributeDefinitions",
    "KeySchema",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
    "BillingMode",
    "ProvisionedThroughput",
)


def read_plan(
    path: str | Path, *, parameters: Mapping[str, str] | None = None, stack_name: str, region: str
) -> Plan:
    """
    Read a template and everything that it names, nested stacks too.

    Raises:
        TemplateError: the template, one of its files or one of `parameters` is not what it must be.
    """
    with well_formed(Path(path)):
        return _read_plan(Path(path).resolve(), parameters or {}, stack_name, region)


def _read_plan(path: Path, parameters: Mapping[str, str], stack_name: str, region: str) -> Plan:
    names = PhysicalNames(stack_name, region)
    opened = _open(path, parameters, names, region)
    template, nested, planner = opened.template, opened.nested, opened.planner
    resolver = Resolver(template, opened.values, names, nested)
    expect_rules_hold(template, resolver)
    resources = Resources(template, resolver, names)
    machine_plans = opened.machines.with_values(opened.values)
    opened.machines.expect_other_choices(opened.values)
    outputs = {key: item for key, item in template.get("Outputs", {}).items() if resolver.exists(item)}
    queues = read_queues(resources)
    plan = Plan(
        functions=[planner.function(*resource) for resource in resources.of_kind(FUNCTION)],
        tables=[planner.table(*resource) for resource in resources.of_kind(TABLE)],
        buckets=[_bucket(name, properties) for _, name, properties in resources.of_kind(BUCKET)],
        machines=machine_plans,
        secrets=[name for _, name, _ in resources.of_kind(SECRET)],
        queues=queues,
        topics=read_topics(resources),
        subscriptions=read_subscriptions(resources),
        apis=read_apis(resources),
        deliveries=Deliveries(
            read_mappings(resources, queues), read_rules(resources), read_destinations(resources)
        ),
        outputs={key: as_text(resolver.resolve(item["Value"])) for key, item in outputs.items()},
    )
    plan.left_out.extend(opened.macros)
    plan.left_out.extend(left_out(template, resources, plan, nested.__contains__, resolver.imported))
    return plan.with_nested(nested.plans(resources))


def read_machines(
    path: str | Path, *, parameters: Mapping[str, str] | None = None, stack_name: str, region: str
) -> dict[str, MachinePlan]:
    """
    Read only the state machines of a template, by logical id. The functions' code need not be there.

    Raises:
        TemplateError: as `read_plan` does, for the machines with these parameters.
    """
    with well_formed(Path(path)):
        opened = _open(Path(path).resolve(), parameters or {}, PhysicalNames(stack_name, region), region)
        return opened.machines.by_logical_id(opened.values)


def read_renderings(
    path: str | Path, *, parameters: Mapping[str, str] | None = None, stack_name: str, region: str
) -> list[Rendering]:
    """
    Read every definition that a template can give its state machines, in whatever state they are.

    Args:
        path: The template.
        parameters: Values that stay as they are. Other parameters with AllowedValues have each of them, and
            those without a default have a value that is made up.
        stack_name: What the template gets as AWS::StackName.
        region: What the template gets as AWS::Region.

    Raises:
        TemplateError: the template, one of its files or one of `parameters` is not what it must be.
    """
    with well_formed(Path(path)):
        return _read_renderings(Path(path), dict(parameters or {}), stack_name, region)


def _read_renderings(path: Path, given: dict[str, str], stack_name: str, region: str) -> list[Rendering]:
    declared = read_source(path).get("Parameters", {})
    usual = stand_ins(declared) | given
    opened = _open(path.resolve(), usual, PhysicalNames(stack_name, region), region, checked=given)

    def render(values: Mapping[str, str]) -> dict[str, MachinePlan]:
        return opened.machines.renderings({**opened.values, **values})

    tried = {name: values for name, values in choices(declared).items() if name not in given}
    found: dict[tuple[str, str, str], Rendering] = {}
    for values in ({}, *combinations(that_matter(render, tried), MOST)):
        changed = {name: value for name, value in values.items() if value != opened.values[name]}
        for machine, plan in render(values).items():
            file = opened.planner.definition_file(machine)
            key = (machine, plan.definition, plan.kind)
            found.setdefault(key, Rendering(machine, file, plan.definition, plan.kind, changed))
    return list(found.values())


class _Opened(NamedTuple):
    """A template after the SAM transform, and who reads its parts."""

    template: dict[str, Any]
    values: dict[str, str]
    nested: NestedStacks
    planner: _Planner
    machines: Machines
    macros: list[str]


def _open(
    path: Path,
    parameters: Mapping[str, str],
    names: PhysicalNames,
    region: str,
    checked: Mapping[str, str] | None = None,
) -> _Opened:
    source = read_source(path)
    values = parameter_values(source, parameters, checked)
    files = _local_files(source)
    template = _transform(source, values, region)

    def read_nested(file: Path, handed: Mapping[str, str], name: str) -> Plan:
        return read_plan(file, parameters=handed, stack_name=name, region=region)

    nested = NestedStacks(path.parent, _of_nested_stacks(template, files), names, read_nested)
    planner = _Planner(names, path.parent, files)
    machines = Machines(template, names, planner.definition_file, nested)
    return _Opened(template, values, nested, planner, machines, list(macros(source)))


class _Planner:
    """Turns resolved resources into plans that name files of this machine."""

    def __init__(self, names: PhysicalNames, root: Path, files: dict[str, str]) -> None:
        self._names = names
        self._root = root
        self._files = files

    def function(self, logical_id: str, name: str, properties: dict[str, Any]) -> FunctionPlan:
        problem = function_problem(properties, self._files.get(logical_id))
        environment = properties.get("Environment", {}).get("Variables", {})
        reserved = "ReservedConcurrentExecutions"
        is_shared = properties.get(reserved) is None
        return FunctionPlan(
            name=name,
            arn=self._names.arn(FUNCTION, name),
            folder="" if problem else str(self._folder(logical_id)),
            handler=str(properties.get("Handler", "")),
            environment={key: as_text(value) for key, value in environment.items()},
            timeout_seconds=whole_number(logical_id, properties, "Timeout", 3),
            memory_mb=whole_number(logical_id, properties, "MemorySize", 128),
            concurrency=None if is_shared else whole_number(logical_id, properties, reserved, 0),
            problem=problem,
        )

    def _folder(self, logical_id: str) -> Path:
        folder = self._file(logical_id, "CodeUri")
        if not folder.is_dir():
            raise TemplateError(f"{logical_id}: CodeUri {folder} is not a folder.")
        return folder

    def table(self, logical_id: str, name: str, properties: dict[str, Any]) -> TablePlan:
        arguments = _known(logical_id, properties, _OF_A_TABLE)
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            if kind in arguments:
                arguments[kind] = [_known(logical_id, index, _OF_AN_INDEX) for index in arguments[kind]]
        stream = properties.get("StreamSpecification")
        if stream:
            arguments["StreamSpecification"] = {
                "StreamEnabled": True,
                **_known(logical_id, stream, ["StreamViewType"]),
            }
        ttl = properties.get("TimeToLiveSpecification", {})
        return TablePlan(name, {"TableName": name, **arguments}, ttl.get("AttributeName"))

    def definition_file(self, logical_id: str) -> Path | None:
        if self._files.get(logical_id, "").startswith(REMOTE):
            raise TemplateError(not_supported(f"a definition on S3 ({logical_id}). Name a local file."))
        if logical_id not in self._files:
            return None
        file = self._file(logical_id, "DefinitionUri")
        if not file.is_file():
            raise TemplateError(f"{logical_id}: DefinitionUri {file} is not a file.")
        return file

    def _file(self, logical_id: str, key: str) -> Path:
        path = self._root / self._files[logical_id]
        if not path.exists():
            raise TemplateError(f"{logical_id}: {key} {path} does not exist.")
        return path


def _known(logical_id: str, properties: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, Any]:
    """The properties that DynamoDB's API has as well. A parameter gives a throughput as text."""
    found = {key: properties[key] for key in wanted if key in properties}
    if "ProvisionedThroughput" in found:
        given = found["ProvisionedThroughput"]
        found["ProvisionedThroughput"] = {key: whole_number(logical_id, given, key, 0) for key in given}
    return found


def _local_files(source: dict[str, Any]) -> dict[str, str]:
    """Note each resource's local file by logical id, and put a placeholder in its place."""
    keys = {
        "AWS::Serverless::Function": "CodeUri",
        FUNCTION: "Code",
        STATE_MACHINE: "DefinitionS3Location",
        "AWS::Serverless::LayerVersion": "ContentUri",
        "AWS::Serverless::StateMachine": "DefinitionUri",
        "AWS::Serverless::Api": "DefinitionUri",
        "AWS::Serverless::HttpApi": "DefinitionUri",
        "AWS::Serverless::Application": "Location",
        NESTED_STACK: "TemplateURL",
    }
    files: dict[str, str] = {}
    shared = source.get("Globals", {}).get("Function") or {}
    common = shared.pop("CodeUri", None)
    for logical_id, resource in source["Resources"].items():
        key = keys.get(resource.get("Type"))
        properties = resource.setdefault("Properties", {})
        if properties.get("PackageType") == "Image":  # which `sam build` would make
            properties.setdefault("ImageUri", _PLACEHOLDER_URI)
        default = common or _BESIDE if key == "CodeUri" and not properties.keys() & _OTHER_CODE else None
        uri = properties.get(key, default) if key else None
        if key and isinstance(uri, str):
            files[logical_id] = uri
            properties[key] = _PLACEHOLDER_URI
    return files


def _of_nested_stacks(template: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, str]:
    """The files of nested stacks; the transform has made those of SAM's applications, too."""
    stacks = {key for key, item in template["Resources"].items() if item["Type"] == NESTED_STACK}
    return {key: file for key, file in files.items() if key in stacks}


def _transform(source: Mapping[str, Any], values: Mapping[str, str], region: str) -> dict[str, Any]:
    kinds = (str(resource.get("Type")) for resource in source["Resources"].values())
    if not any(kind.startswith("AWS::Serverless::") for kind in kinds):
        return copy.deepcopy(dict(source))
    from samtranslator.public.exceptions import InvalidDocumentException
    from samtranslator.public.parser import Parser
    from samtranslator.public.translator import Translator

    # A session of its own, so that the transform asks neither AWS nor the environment for a region.
    translator = Translator({}, Parser(), boto_session=isolated_session(region))
    try:
        translated = translator.translate(copy.deepcopy(dict(source)), parameter_values=dict(values))
    except InvalidDocumentException as error:
        reasons = "; ".join(str(cause.message) for cause in error.causes)
        raise TemplateError(f"The SAM transform refuses the template: {reasons}") from error
    finally:
        translator.metrics.publish()  # to nobody; unpublished ones end as a warning in the caller's log
    result: dict[str, Any] = translated
    return result


def _bucket(name: str, properties: Mapping[str, Any]) -> BucketPlan:
    return BucketPlan(name, properties.get("VersioningConfiguration", {}).get("Status") == "Enabled")
