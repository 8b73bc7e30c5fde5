"""A further state machine on an installation that a template has: it gets triggers of its own."""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from steponce.scaffold import installation
from steponce.wrap import template_file
from steponce.wrap.errors import CannotWrap
from steponce.wrap.parts import STACK, Parts, requests_of
from steponce.wrap.template_file import shown, tag_of, tagged

REQUESTS = "requests.yaml"
"""The installation's template of the triggers of one workflow."""

_OTHERS = "OtherStateMachines"
_ARCHITECTURE = "Architecture"
_LIMITS = "Limits"
_OF_THE_INSTALLATION = (_ARCHITECTURE, "LogRetentionDays", _LIMITS, _OTHERS)
_ARN = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:"
_SHARED = ("LocksTableArn", "ResultBucket", "OpenShards", "SteponceLayer", "FunctionLogs", "ServiceName")
"""What all workflows of an installation share: Outputs of the one, and parameters of the others."""
_OUTPUT_OF_ITS_OWN = (
    f" Give it under Parameters of {STACK}, and delete the Condition of the Output LimitsTable: without the "
    "Output, the commands for limits do not find the table."
)


def join(template: CommentedMap, ours: Parts, machine: str) -> list[str]:
    """
    Let the installation of a template know a machine, and give the machine its triggers and its Output.

    Returns:
        What remains for a person to decide.
    """
    given = ours.resource(STACK)["Properties"]["Parameters"]
    arns = [arn_of(given["StateMachineName"], machine), *([given[_OTHERS]] if _OTHERS in given else [])]
    _know(template, arns, machine)
    requests = requests_of(machine)
    limit = ours.name("HasRateLimit")
    own = {name: value for name, value in given.items() if name not in _OF_THE_INSTALLATION}
    shared = {name: tagged("!GetAtt", f"{STACK}.Outputs.{name}") for name in _SHARED}
    table = template_file.function("!If", [limit, tagged("!GetAtt", f"{STACK}.Outputs.LimitsTableArn"), ""])
    more: dict[str, Any] = {"LimitsTableArn": table}
    there = template["Resources"][STACK]["Properties"].get("Parameters", {})
    if _ARCHITECTURE in there:
        more[_ARCHITECTURE] = template_file.copied(there[_ARCHITECTURE])
    if "AlarmsTopicArn" in template.get("Outputs", {}):
        more["AlarmsTopicArn"] = tagged("!GetAtt", f"{STACK}.Outputs.AlarmsTopicArn")
    properties = {
        "TemplateURL": f"{installation.FOLDER}/{REQUESTS}",
        "Parameters": CommentedMap({**own, **shared, **more}),
    }
    name = f"{machine}Workflow"
    for section, one in (("Resources", requests), ("Outputs", name)):
        if one in template.get(section, {}):
            raise CannotWrap([f"The template has {one} already. Rename it first."])
    resource = CommentedMap({"Type": "AWS::CloudFormation::Stack", "Properties": CommentedMap(properties)})
    template["Resources"][requests] = resource
    output = {
        "Value": tagged("!GetAtt", f"{requests}.Outputs.Workflow"),
        "Description": "Everything that a client or a command needs to know of this workflow.",
    }
    template_file.add(template, "Outputs", {name: CommentedMap(output)})
    template_file.add(template, "Conditions", {limit: ours.template["Conditions"][limit]})
    used = set(re.findall(r"\w+", template_file.write(template, "")))
    read = {name: part for name, part in ours.template["Parameters"].items() if name in used}
    template_file.add(template, "Parameters", read)
    return [
        f"The parameters of this workflow begin with {machine}. If {ours.name('RateLimit')} is not 0, the "
        f"installation needs {_parameter_of(there.get(_LIMITS))}=yes."
        f"{'' if _LIMITS in there and not _hides_limits(template) else _OUTPUT_OF_ITS_OWN}"
    ]


def _hides_limits(template: CommentedMap) -> bool:
    """Whether the Output of the limits is there only with a limit of the first workflow's own."""
    output = template.get("Outputs", {}).get("LimitsTable", {})
    return str(output.get("Condition")).endswith("HasRateLimit")


def _parameter_of(given: Any) -> str:
    """The template's own parameter that turns the limits on, where the installation refers to one."""
    return str(given.value) if template_file.tag_of(given) == "!Ref" else _LIMITS


def arn_of(name: Any, machine: str) -> Any:
    """
    The ARN of a state machine by its name. A reference to the machine may be a cycle.

    Raises:
        CannotWrap: the name is neither text nor `!Sub` nor `!Ref`.
    """
    if isinstance(name, str) or tag_of(name) == "!Sub":
        return tagged("!Sub", _ARN + shown(name))
    if tag_of(name) == "!Ref":
        return tagged("!Sub", f"{_ARN}${{{shown(name)}}}")
    raise CannotWrap(
        [f"The Name of {machine} is neither text nor !Sub nor !Ref. Write it as one of these first."]
    )


def _know(template: CommentedMap, arns: list[Any], machine: str) -> None:
    """Add ARNs to those that the installation knows. An empty one among them would be refused by IAM."""
    parameters = template["Resources"][STACK]["Properties"].setdefault("Parameters", CommentedMap())
    known = parameters.get(_OTHERS)
    if known is not None and _parameter_in(known) in template.get("Parameters", {}):
        condition = f"{machine}HasOthers"
        if condition in template.get("Conditions", {}):
            raise CannotWrap([f"The template has {condition} already. Rename it first."])
        is_empty = template_file.function("!Equals", [template_file.copied(known), ""])
        template_file.add(template, "Conditions", {condition: template_file.function("!Not", [is_empty])})
        known = template_file.function("!If", [condition, known, tagged("!Ref", "AWS::NoValue")])
    every = [*([] if known in (None, "") else [known]), *arns]
    if len(every) == 1:
        parameters[_OTHERS] = every[0]
        return
    joined = template_file.function("!Join", [",", CommentedSeq(every)])
    parameters[_OTHERS] = joined


def _parameter_in(value: Any) -> str | None:
    """What a value is, or is joined of: `!Ref Others` or `!Join [",", !Ref Others]`, in any form."""
    if isinstance(value, CommentedMap):
        if "Ref" in value:
            return str(value["Ref"])
        value = value.get("Fn::Join")
    elif tag_of(value) == "!Ref":
        return shown(value)
    elif tag_of(value) != "!Join":
        return None
    return _parameter_in(value[1]) if isinstance(value, CommentedSeq) and len(value) == 2 else None
