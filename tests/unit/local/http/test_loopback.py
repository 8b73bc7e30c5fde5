"""Web pages may not drive the local stack."""

import json
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from steponce.local import LocalStack
from steponce.local.http.loopback import OnlyThisMachine
from tests.patience import PATIENCE_SECONDS

TEMPLATE = Path(__file__).parents[1] / "fixture" / "template.yaml"
PORT = 4000
SERVERS = ["states", "dynamodb", "aws", "lambda", "http"]


def status(headers, *, method="POST", is_for_people=False):
    """What the wrapper says to these headers."""
    said = []

    def behind(_environ, start_response):
        start_response("200 OK", [("Access-Control-Allow-Origin", "*"), ("X-Kept", "yes")])
        return [b"done"]

    environ = {"REQUEST_METHOD": method}
    environ |= {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    wrapper = OnlyThisMachine(behind, PORT, is_for_people=is_for_people)
    list(wrapper(environ, lambda *answer: said.extend(answer)))
    assert not [name for name, _ in said[1] if name.startswith("Access-Control")]
    return int(said[0].split()[0])


@pytest.mark.parametrize("host", ["127.0.0.1:4000", "localhost:4000", "LOCALHOST:4000"])
def test_its_own_names_are_let_in(host):
    """With the port, as every client writes it."""
    assert 200 == status({"host": host})
    assert 200 == status({"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"})


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:4000", "127.0.0.1", "localhost:80", "127.0.0.1.evil.example:4000"],
)
def test_another_name_is_refused(host):
    """A name that somebody has resolved to 127.0.0.1 (DNS rebinding) stands in Host."""
    assert 403 == status({"host": host})


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "http://localhost:3000",
        "https://127.0.0.1:4000",
        "http://127.0.0.1:4000.evil.example",
    ],
)
def test_another_origin_is_refused(origin):
    """Another port of this machine is another origin."""
    assert 403 == status({"host": "127.0.0.1:4000", "origin": origin})


@pytest.mark.parametrize(("expected", "site"), [(200, "same-origin"), (403, "cross-site"), (403, "none")])
def test_a_form_that_tells_no_origin_is_let_in_by_its_own_site_only(expected, site):
    """The callback page sends no referrer, so its form's Origin is null; a sandboxed page's is null too."""
    assert expected == status({"host": "127.0.0.1:4000", "origin": "null", "sec-fetch-site": site})


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_a_page_fetches_without_an_origin_is_refused(site):
    """An image or a form's GET carries no Origin."""
    fetched = {"host": "127.0.0.1:4000", "sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    assert 403 == status(fetched, method="GET")
    assert 403 == status(fetched, method="GET", is_for_people=True)


@pytest.mark.parametrize(
    ("expected", "method", "is_for_people", "goes_to"),
    [
        (200, "GET", True, "document"),
        (403, "GET", False, "document"),
        (403, "POST", True, "document"),
        (403, "GET", True, "iframe"),
    ],
)
def test_a_link_in_a_mail_may_be_followed(expected, method, is_for_people, goes_to):
    """To the pages for people, to look; not in a frame of another page."""
    followed = {"host": "127.0.0.1:4000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    found = status({**followed, "sec-fetch-dest": goes_to}, method=method, is_for_people=is_for_people)
    assert expected == found


@pytest.fixture(scope="module")
def stack():
    with LocalStack.from_template(TEMPLATE, name="loopback", deliveries=False) as running:
        yield running


def asked(url, headers, method="POST", path="/"):
    """Status and headers of one answer."""
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname, address.port, timeout=PATIENCE_SECONDS)
    connection.request(method, path, b"{}", headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders())


@pytest.mark.parametrize("server", SERVERS)
def test_every_server_refuses_other_names_and_other_origins(stack, server):
    """Also a preflight, to which moto by itself says yes."""
    url = stack.endpoints[server]
    foreign = {"Origin": "https://evil.example"}
    preflight = foreign | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x"}
    assert 403 == asked(url, {"Host": "evil.example"})[0]
    assert 403 == asked(url, foreign)[0]
    refused, headers = asked(url, preflight, "OPTIONS")
    assert 403 == refused
    assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("server", SERVERS)
def test_no_server_says_that_others_may_read_its_answers(stack, server):
    """Its own origin is let in, and no header lets in another."""
    url = stack.endpoints[server]
    found, headers = asked(url, {"Origin": url}, "GET", "/moto-api/data.json")
    assert 403 != found
    assert not [name for name in headers if name.lower().startswith("access-control")]


def test_a_foreign_page_runs_no_function(stack):
    """A plain text POST needs no preflight; the function has not run."""
    path = "/2015-03-31/functions/loopback-MisbehaveFunction/invocations"
    headers = {"Content-Type": "text/plain", "Origin": "https://evil.example"}
    assert 403 == asked(stack.endpoints["lambda"], headers, path=path)[0]
    assert "saw" not in stack.logs("loopback-MisbehaveFunction")


def test_a_workers_own_server_refuses_a_page_as_well(stack):
    """Its port is one that a page could find, and whoever speaks to it answers for the function."""
    address = urlsplit(f"http://{invoked(stack)['environment']['AWS_LAMBDA_RUNTIME_API']}")
    connection = HTTPConnection(address.hostname, address.port, timeout=PATIENCE_SECONDS)
    connection.request("GET", "/2018-06-01/runtime/invocation/next", headers={"Host": "evil.example"})
    # One at a time: the worker itself is waiting for an event.
    invoked(stack)
    assert 403 == connection.getresponse().status
    connection.close()
    assert invoked(stack)


def invoked(stack):
    """What the fixture's function answers."""
    answer = stack.boto3("lambda").invoke(FunctionName="loopback-MisbehaveFunction", Payload=b"{}")
    return json.loads(answer["Payload"].read())
