"""The HTTP API's OpenAPI document is valid, up to date, and about the routes that the template makes."""

import re

from openapi_spec_validator import validate

from . import openapi
from .documents import ROOT, load_json, whole_template


def test_the_document_is_up_to_date() -> None:
    """`make openapi` would change nothing."""
    assert openapi.text() == openapi.PLACE.read_text(encoding="utf-8")


def test_the_document_is_one() -> None:
    """OpenAPI 3.1, references and schemas included."""
    assert validate(load_json(openapi.PLACE)) is None


def test_the_document_is_about_the_template_s_routes() -> None:
    """The gateway lets in what the document names, and nothing else."""
    routes = {
        resource["Properties"]["RouteKey"]
        for resource in whole_template()["Resources"].values()
        if resource["Type"] == "AWS::ApiGatewayV2::Route"
    }
    documented = {
        f"{method.upper()} {path}"
        for path, item in load_json(openapi.PLACE)["paths"].items()
        for method in item
    }
    assert routes == documented


def test_every_answer_says_whether_it_is_a_replay() -> None:
    """In a header and in the body, whatever the status."""
    document = load_json(openapi.PLACE)
    for item in document["paths"].values():
        for operation in item.values():
            for response in operation["responses"].values():
                (content,) = response["content"].values()
                schema = document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                assert response["headers"]["Idempotent-Replayed"]["required"]
                assert "replayed" in schema["required"]


def test_every_key_that_the_document_allows_is_taken() -> None:
    """Its example is, at least, and a missing key is not."""
    key = load_json(openapi.PLACE)["components"]["parameters"]["IdempotencyKey"]
    assert key["required"]
    assert re.search(key["schema"]["pattern"], key["example"])
    assert not re.search(key["schema"]["pattern"], "")


def test_the_page_on_triggers_lists_every_status() -> None:
    """Of both methods, as the document has them."""
    page = (ROOT / "docs" / "triggers.md").read_text(encoding="utf-8")
    methods = {"`POST`": ["post"], "`GET`": ["get"], "both": ["get", "post"]}
    rows = re.findall(r"^\| (\d+) \| (`POST`|`GET`|both) \|", page, re.MULTILINE)
    listed = {(method, status) for status, of in rows for method in methods[of]}
    documented = {
        (method, status)
        for item in load_json(openapi.PLACE)["paths"].values()
        for method, operation in item.items()
        for status in operation["responses"]
    }
    assert documented == listed
