"""The template's HTTP APIs and their routes: those that SAM writes into OpenAPI, and native ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from steponce.local.errors import TemplateError
from steponce.local.template.physical_names import HTTP_API, HTTP_INTEGRATION, HTTP_ROUTE
from steponce.local.template.plan import DEFAULT_ROUTE, ApiPlan, RoutePlan
from steponce.local.template.resources import Resources

_INVOCATION = re.compile(r"/functions/([^/]+)/invocations")
_NOBODY = "NONE"
_ANY = "x-amazon-apigateway-any-method"
_OPERATIONS = {"delete", "get", "head", "options", "patch", "post", "put", "trace", _ANY}
"""The keys of a path item that are methods. Source: OpenAPI 3.0, "Path Item Object"."""


def read_apis(resources: Resources) -> list[ApiPlan]:
    """
    All HTTP APIs, with the routes that end in a function.

    Raises:
        TemplateError: a native route has no integration that the template makes.
    """
    routes = {
        name: _openapi(properties.get("Body", {}).get("paths", {}))
        for _, name, properties in resources.of_kind(HTTP_API)
    }
    for api, route in _native(resources):
        routes.setdefault(api, []).append(route)
    return [ApiPlan(name, found) for name, found in routes.items()]


def _openapi(paths: Mapping[str, Any]) -> list[RoutePlan]:
    found = []
    for path, item in paths.items():
        for method in (key for key in item if key.lower() in _OPERATIONS):
            operation = item[method]
            uri = operation.get("x-amazon-apigateway-integration", {}).get("uri", "")
            if function := _INVOCATION.search(str(uri)):
                schemes = {scheme for choice in operation.get("security", []) for scheme in choice}
                authorization = ", ".join(sorted(schemes - {_NOBODY})) or _NOBODY
                verb = "ANY" if method == _ANY else method.upper()
                place = DEFAULT_ROUTE if operation.get("isDefaultRoute") else path
                found.append(RoutePlan(verb, place, function.group(1), authorization))
    return found


def _native(resources: Resources) -> Iterator[tuple[str, RoutePlan]]:
    """Each native route, after the name of its API."""
    functions = {
        resources.names.ref(HTTP_INTEGRATION, name): _function(str(properties.get("IntegrationUri", "")))
        for _, name, properties in resources.of_kind(HTTP_INTEGRATION)
    }
    for logical_id, _, properties in resources.of_kind(HTTP_ROUTE):
        integration = str(properties.get("Target", "")).removeprefix("integrations/")
        if integration not in functions:
            raise TemplateError(f"{logical_id}: Target names no integration that this template makes.")
        method, _, path = str(properties["RouteKey"]).partition(" ")
        if not path:
            method, path = "ANY", DEFAULT_ROUTE
        authorization = str(properties.get("AuthorizationType", _NOBODY))
        yield str(properties.get("ApiId", "")), RoutePlan(method, path, functions[integration], authorization)


def _function(uri: str) -> str:
    """The function in its own ARN, or in the path form that API Gateway knows too."""
    path_form = _INVOCATION.search(uri)
    return path_form.group(1) if path_form else uri
