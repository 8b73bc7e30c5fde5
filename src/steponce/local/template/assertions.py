"""
The template's Rules, which refuse parameters that do not go together.

CloudFormation checks them before it makes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steponce.local.errors import TemplateError, not_supported
from steponce.local.template.intrinsics import Resolver
from steponce.local.template.scalars import as_text


def expect_rules_hold(template: Mapping[str, Any], resolver: Resolver) -> None:
    """
    Check every rule whose condition holds.

    Args:
        template: After the SAM transform.
        resolver: Its own, with the values of the parameters.

    Raises:
        TemplateError: an assertion does not hold. The message has the rule's name and its own words.
    """
    for name, rule in _object(template.get("Rules", {}), "Rules").items():
        given = _object(rule, name)
        if "RuleCondition" in given and not _holds(given["RuleCondition"], resolver, name):
            continue
        for each in _list_of(given.get("Assertions"), name):
            assertion = _object(each, name)
            if not _holds(assertion.get("Assert"), resolver, name):
                said = assertion.get("AssertDescription", "an assertion does not hold.")
                raise TemplateError(f"Rule {name}: {said}")


def _holds(expression: Any, resolver: Resolver, name: str) -> bool:
    """The functions that only rules have, around those that conditions have, too."""
    if str(expression).lower() in ("true", "false"):
        return str(expression).lower() == "true"
    found = _object(expression, name)
    ((function, given),) = found.items() if len(found) == 1 else (("more than one function", None),)
    if function in _COMBINED:
        return _COMBINED[function](_holds(part, resolver, name) for part in _list_of(given, name))
    if function not in (*_MEMBERS, "Fn::Equals"):
        known = ", ".join(sorted([*_COMBINED, *_MEMBERS, "Fn::Equals"]))
        raise TemplateError(not_supported(f"{function} in Rules. Known: {known}."))
    left, right = _list_of(given, name, 2)
    if function == "Fn::Equals":
        return bool(resolver.resolve({function: [left, right]}))
    return _MEMBERS[function](_texts(resolver.resolve(left)), _texts(resolver.resolve(right)))


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _malformed(name)
    return value


def _list_of(value: Any, name: str, size: int | None = None) -> list[Any]:
    if not isinstance(value, list) or size not in (None, len(value)):
        raise _malformed(name)
    return value


def _malformed(name: str) -> TemplateError:
    return TemplateError(
        f"Rule {name} is malformed. Write Assertions, a list of Assert, each a function such as Fn::Equals."
    )


_COMBINED: Mapping[str, Callable[[Any], bool]] = {
    "Fn::Not": lambda parts: not any(parts),
    "Fn::And": all,
    "Fn::Or": any,
}
_MEMBERS: Mapping[str, Callable[[list[str], list[str]], bool]] = {
    "Fn::Contains": lambda every, one: set(one) <= set(every),
    "Fn::EachMemberEquals": lambda every, one: set(every) <= set(one),
    "Fn::EachMemberIn": lambda every, allowed: set(every) <= set(allowed),
}


def _texts(value: Any) -> list[str]:
    return [as_text(part) for part in value] if isinstance(value, list) else [as_text(value)]
