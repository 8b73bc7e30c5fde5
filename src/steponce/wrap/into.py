"""
Wraps a state machine of a SAM template, and changes the template.

What the template gets is made of the template of new applications: parameters, conditions, the nested stack
of the installation, permissions and Outputs. A template that has an installation keeps it, and the machine
joins that one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar

from steponce.lint.asl import as_object
from steponce.scaffold import installation
from steponce.wrap import cycle, fragment, machine_names, source, template_file
from steponce.wrap.around import wrap_around
from steponce.wrap.errors import CannotWrap
from steponce.wrap.inline import wrap_inline
from steponce.wrap.join import REQUESTS, arn_of, join
from steponce.wrap.parts import LOGS, ROLE, STACK, WORKFLOW, Parts
from steponce.wrap.refusals import expect_taken
from steponce.wrap.template_file import shown, tag_of, tagged
from steponce.wrap.wrapped import Form, Wrapped

_MACHINE = "AWS::Serverless::StateMachine"
_ACTIVITY = "AWS::StepFunctions::Activity"
_NESTED = {"AWS::CloudFormation::Stack": "TemplateURL", "AWS::Serverless::Application": "Location"}
_SAM = "AWS::Serverless-2016-10-31"


@dataclass(frozen=True)
class Into:
    """
    What is to be written.

    Args:
        wrapped: The definition.
        definition: Where the file of the wrapped one goes.
        before: The text of the template.
        template: The text of the changed template.
        installation: Where the installation's folder goes. None if it is there.
        decisions: What remains for a person to decide.
    """

    wrapped: Wrapped
    definition: Path
    before: str
    template: str
    installation: Path | None
    decisions: list[str]


def wrap_into(path: Path, machine: str, *, form: Form, may_retry_later: Sequence[str] | None = None) -> Into:
    """
    Wrap a machine of a template. Nothing is written.

    Args:
        path: The template.
        machine: The machine's logical id.
        form: `inline` or `around`.
        may_retry_later: See `wrap_inline`.

    Raises:
        CannotWrap: the machine cannot be wrapped, or the template cannot be changed so.
        OSError: a file cannot be read.
    """
    text = source.text_of(path)
    template = template_file.read(text)
    resource = _machine_in(template, machine)
    joins = _joins(template, path)
    if form == "around" or not joins:  # otherwise the installation knows the machine by its name
        _expect_always_there(resource, machine)
    uri = str(resource["Properties"]["DefinitionUri"])
    definition = source.text_of(path.parent / uri)
    expect_taken("The definition", definition)
    if form == "around":
        wrapped = wrap_around(definition)
    else:
        wrapped = wrap_inline(
            definition, may_retry_later=may_retry_later, activities=_activities(template, resource)
        )
    target = f"{uri.removesuffix('.json').removesuffix('.asl')}_once.asl.json"
    if (path.parent / target).exists():
        raise CannotWrap([f"{path.parent / target} is there already. Rename it, or delete it."])
    part = fragment.template(wrapped, target)
    if form == "around":
        endings = [f"{ending}-once" for ending in machine_names.of(machine)]
        endings = endings if joins else ["run-once", *endings]
        workflow = machine_names.free(template, *endings)
        part = part.replace(fragment.NAME, workflow)
    ours = Parts.beside(template, part, machine if joins else None)
    if form == "around":
        decisions = [f"The workflow is {workflow}. {machine_names.room(workflow)}"]
        _start(template, ours, machine)
    else:
        decisions = _replace(template, ours, machine, target)
    if joins:
        decisions += join(template, ours, machine)
    else:
        _add_installation(template, ours)
        decisions.append(fragment.CAPABILITIES)
    cycle.expect_none(template)
    return Into(
        wrapped,
        path.parent / target,
        text,
        template_file.write(template, text),
        None if joins else path.parent / installation.FOLDER,
        [*wrapped.decisions, *decisions],
    )


def _machine_in(template: CommentedMap, machine: str) -> CommentedMap:
    """The resource, if it can be wrapped."""
    if _SAM not in str(template.get("Transform")):
        raise CannotWrap([f"The template has no Transform {_SAM}, so it is no SAM template."])
    resources = template["Resources"]
    every = template_file.resources_of(template, _MACHINE)
    if machine not in every:
        known = ", ".join(every) or "none"
        raise CannotWrap([f"{machine} is no {_MACHINE} of the template. There are: {known}."])
    resource: CommentedMap = resources[machine]
    properties = template_file.expect_map(resource.get("Properties"), f"{machine}: Properties")
    for empty in [name for name, value in properties.items() if value is None]:
        del properties[empty]  # in YAML, a name without a value
    kind = properties.get("Type", "STANDARD")
    if kind == "EXPRESS":
        raise CannotWrap([f"{machine} is an Express workflow, which cannot run a request once."])
    if kind != "STANDARD":
        raise CannotWrap([f"The Type of {machine} is not written out. Write STANDARD, or leave it out."])
    uri = properties.get("DefinitionUri")
    if not isinstance(uri, str) or uri.startswith("s3:") or "\0" in uri:
        raise CannotWrap([f"{machine} has no local file for its DefinitionUri. Put its definition into one."])
    machine_names.expect_known(properties.get("Name", ""), machine)
    return resource


def _expect_always_there(resource: CommentedMap, machine: str) -> None:
    """Refuse a machine under a Condition, to which resources and Outputs without one would refer."""
    condition = resource.get("Condition")
    if condition is not None:
        raise CannotWrap(
            [
                f"{machine} is there under the Condition {shown(condition)} only, and CloudFormation refuses "
                "references to it where that is false. Remove the Condition, or move the machine into a "
                "nested stack that has it, and wrap it there."
            ]
        )


_INTEGRATION = re.compile(r"\barn:(?:\$\{[^}]*\}|[^:$])*:states:(?!::lambda:invoke(?![.\w$]))")
"""The ARN of an activity or an integration that is no function's."""


def _activities(template: CommentedMap, resource: CommentedMap) -> set[str]:
    """The placeholders of a machine that stand for activities of the template, or for other integrations."""
    every = template_file.resources_of(template, _ACTIVITY).keys()
    given = resource["Properties"].get("DefinitionSubstitutions", CommentedMap())
    template_file.expect_map(given, "DefinitionSubstitutions")
    parameters = as_object(template.get("Parameters"))
    defaults = {name: str(as_object(one).get("Default", "")) for name, one in parameters.items()}
    found = set()
    for name, value in given.items():
        words = set(re.findall(r"\w+", shown(value)))
        texts = [shown(value), *(defaults[word] for word in words & defaults.keys())]
        if every & words or any(map(_INTEGRATION.search, texts)):
            found.add(name)
    return found


def _joins(template: CommentedMap, path: Path) -> bool:
    """Whether the template has an installation, which the machine joins; otherwise it gets one."""
    folder, whole = path.parent / installation.FOLDER, f"{installation.FOLDER}/template.yaml"
    nested = _nested(template)
    if nested.get(STACK) == whole:
        if not (folder / REQUESTS).is_file():
            raise CannotWrap(
                [f"The installation in {folder} takes no further state machine. Upgrade it first."]
            )
        return True
    others = [name for name, url in nested.items() if url.startswith(f"{installation.FOLDER}/")]
    if others:
        raise CannotWrap(
            [
                f"{path} has an installation as {', '.join(others)}, and this command knows only one that is "
                f"called {STACK} and is all of {whole}. Do not rename it: it would begin with empty tables. "
                "Wrap the definition alone, and add the machine by hand."
            ]
        )
    if STACK in template["Resources"]:
        raise CannotWrap(
            [
                f"{path} has a resource {STACK} whose TemplateURL is not {whole}. If it is an installation, "
                "leave it, and wrap the definition alone. Otherwise rename it first."
            ]
        )
    for section in ("Parameters", "Conditions"):
        if STACK in template.get(section, {}):
            raise CannotWrap(
                [f"{path} has {STACK} under {section}, as the nested stack is called. Rename it first."]
            )
    if folder.exists():
        raise CannotWrap(
            [f"{folder} is there already, and {path} does not use it. If nothing else does, delete it first."]
        )
    return False


def _nested(template: CommentedMap) -> dict[str, str]:
    """The paths of the templates that a template nests, by logical id."""
    return {
        name: posixpath.normpath(url)
        for kind, attribute in _NESTED.items()
        for name, resource in template_file.resources_of(template, kind).items()
        if isinstance(url := (resource.get("Properties") or {}).get(attribute), str)
    }


def _replace(template: CommentedMap, ours: Parts, machine: str, uri: str) -> list[str]:
    """The machine gets the wrapped definition, the workflow's values, and its permissions."""
    decisions = []
    resource = template["Resources"][machine]
    properties = resource["Properties"]
    changing = [properties.get(name) for name in ("DefinitionSubstitutions", "Policies")]
    template_file.expect_own(template, [resource, properties, *changing], machine)
    if "Name" not in properties:
        properties.insert(0, "Name", tagged("!Sub", machine_names.free(template, *machine_names.of(machine))))
        decisions.append(
            f"{machine} now has a Name, by which the installation knows it. So CloudFormation replaces the "
            f"machine: let its executions end before you deploy. {machine_names.room(properties['Name'])}"
        )
    if "Events" in properties:
        decisions.append(
            f"{', '.join(properties['Events'])}: these Events of {machine} start executions, not requests. "
            "Delete them, and use the triggers of the installation."
        )
    properties["DefinitionUri"] = uri
    values = ours.resource(WORKFLOW)["Properties"]["DefinitionSubstitutions"]
    given = properties.setdefault("DefinitionSubstitutions", CommentedMap())
    for name, value in values.items():
        if shown(value) != fragment.TO_FILL_IN:
            given[name] = value
        elif name not in given:
            decisions.append(f"The placeholder {name} of the definition has no value in the template.")
    _allow(template, machine, [one for one in ours.statements() if "logs:" not in str(one)])
    ours.template["Outputs"]["RunOnceStateMachineArn"]["Value"] = tagged("!Ref", machine)
    parameters = ours.resource(STACK)["Properties"]["Parameters"]
    parameters["StateMachineName"] = template_file.copied(properties["Name"])
    return decisions


def _allow(template: CommentedMap, machine: str, statements: list[CommentedMap]) -> None:
    """Add the statements to the machine's own role, or to the policies that SAM makes a role of."""
    properties = template["Resources"][machine]["Properties"]
    document = CommentedMap({"Version": "2012-10-17", "Statement": CommentedSeq(statements)})
    role = properties.get("Role")
    if role is None:
        policies = properties.get("Policies", CommentedSeq())
        if not isinstance(policies, CommentedSeq):
            policies = CommentedSeq([policies])
        _expect_list(policies, machine)
        policies.append(document)
        properties["Policies"] = policies
        return
    name = _attribute(role).removesuffix(".Arn")
    owner = template["Resources"].get(name, {})
    if owner.get("Type") != "AWS::IAM::Role":
        raise CannotWrap(
            [
                f"The Role of {machine} is not in the template, so it cannot get the permissions of the "
                "workflow. Wrap the definition alone, and take them from the answer's template."
            ]
        )
    given = owner.get("Properties") or CommentedMap()
    policies = given.get("Policies") or CommentedSeq()
    template_file.expect_own(template, [owner, given, policies], f"The Role of {machine}")
    _expect_list(policies, name)
    owner["Properties"], given["Policies"] = given, policies
    policy = f"{machine[:121]}RunOnce"  # a second policy of one name would replace the first
    if policy in [shown(one.get("PolicyName")) for one in policies if isinstance(one, CommentedMap)]:
        raise CannotWrap([f"{name} has a policy {policy} already. Rename that one first."])
    policies.append(CommentedMap({"PolicyName": policy, "PolicyDocument": document}))


def _attribute(value: Any) -> str:
    """`Role.Arn`, if the value is a GetAtt of it in any form; empty if it is another one."""
    if isinstance(value, CommentedMap):
        value = value.get("Fn::GetAtt", "")
    elif tag_of(value) != "!GetAtt":
        return ""
    return ".".join(map(shown, value)) if isinstance(value, CommentedSeq) else shown(value)


def _expect_list(policies: Any, whose: str) -> None:
    """Refuse policies to which none can be added, as `!If [IsProd, [...], [...]]`."""
    if not isinstance(policies, CommentedSeq) or tag_of(policies) is not None:
        raise CannotWrap(
            [f"The Policies of {whose} are no plain list. Write one, with the function as one of its parts."]
        )


def _start(template: CommentedMap, ours: Parts, machine: str) -> None:
    """The machine does not change; the workflow that starts it is another resource, with a role and logs."""
    workflow = ours.resource(WORKFLOW)["Properties"]
    workflow["DefinitionSubstitutions"]["WorkStateMachineArn"] = tagged("!Ref", machine)
    started, watched = ours.statements()[:2]
    started["Resource"] = tagged("!Ref", machine)
    watched["Resource"] = tagged(
        "!Sub", fragment.CHILD.replace(fragment.NAME_OF_CHILD, f"${{{machine}.Name}}")
    )
    for part in (WORKFLOW, ROLE, LOGS):
        template["Resources"][ours.name(part)] = ours.resource(part)
    parameters = ours.resource(STACK)["Properties"]["Parameters"]
    name = template["Resources"][machine]["Properties"].get("Name")
    foreseen = isinstance(name, str) or (isinstance(name, TaggedScalar) and tag_of(name) in ("!Sub", "!Ref"))
    parameters["OtherStateMachines"] = arn_of(name, machine) if foreseen else tagged("!Ref", machine)


def _add_installation(template: CommentedMap, ours: Parts) -> None:
    """The nested stack, what it is given, and the Outputs that the commands read."""
    taken = sorted(ours.template["Outputs"].keys() & template.get("Outputs", {}).keys())
    if taken:
        raise CannotWrap(
            [f"The template has the Outputs {', '.join(taken)}, which the commands need. Rename them first."]
        )
    template["Resources"][STACK] = ours.resource(STACK)
    for section in ("Parameters", "Conditions", "Outputs"):
        template_file.add(template, section, ours.template[section])
