"""A forked process does not use its parent's connections, nor wait for locks of its parent's threads."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from botocore.hooks import HierarchicalEmitter

from steponce import Client, Guard, results
from steponce.aws.forks import OwnLock, own_connections
from steponce.aws.pace import Pace
from steponce.callbacks.answer import Answer
from steponce.guards.final_records import FinalRecords
from steponce.guards.renewer import Renewer
from steponce.locks.results import Results
from steponce.powertools import LocksPersistence
from steponce.request.canonical import canonical_json
from steponce.request.envelope import Envelope
from steponce.request.settings import RequestRules
from steponce.workflow import COMPLETED
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # that is what is tested

ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:shop"


class Connections:
    """How many connections a stand-in for DynamoDB has got; it accepts every write."""

    def __init__(self) -> None:
        self.count = 0
        connections = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                connections.count += 1

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def connections() -> Iterator[Connections]:
    made = Connections()
    serving = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    serving.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    serving.join()


def guard(url: str) -> Callable[[], Any]:
    one = Guard(
        "locks", session=boto3.Session("a", "b", region_name="us-east-1"), endpoints={"dynamodb": url}
    )

    def call() -> None:
        with one.begin("key", {}) as run:
            run.complete(None)

    return call


def client(url: str) -> Callable[[], Any]:
    session = boto3.Session("a", "b", region_name="us-east-1")
    one = Client(ARN, "locks", session=session, endpoints={"dynamodb": url, "states": url})
    return lambda: one.machine.locks.get("key")


def persistence(url: str) -> Callable[[], Any]:
    session = boto3.Session("a", "b", region_name="us-east-1")
    os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = url
    store = LocksPersistence("locks", boto3_session=session, lease_seconds=9)
    work = idempotent_function(
        lambda data: data, data_keyword_argument="data", persistence_store=store, config=IdempotencyConfig()
    )
    return lambda: work(data=1)


@pytest.mark.parametrize("make", [guard, client, persistence])
def test_a_child_opens_connections_of_its_own(
    connections: Connections, monkeypatch: pytest.MonkeyPatch, make: Callable[[str], Callable[[], Any]]
):
    """And keeps them, as the parent did."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
    call = make(connections.url)
    call()
    call()
    assert 1 == connections.count
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    call()
    call()
    assert 2 == connections.count


def test_threads_of_a_child_close_the_parent_s_connections_once(monkeypatch: pytest.MonkeyPatch):
    """A second close would take away the connections that the first thread has just opened."""
    events, second_waits, closed = HierarchicalEmitter(), threading.Event(), list[str]()

    class Lock:
        def __init__(self) -> None:
            self._lock = threading.RLock()

        def __enter__(self) -> None:
            if closed:
                second_waits.set()
            self._lock.acquire()

        def __exit__(self, *_: object) -> None:
            self._lock.release()

    def close() -> None:
        closed.append(threading.current_thread().name)
        if len(closed) == 1:
            second.start()
            assert second_waits.wait(PATIENCE_SECONDS)
        second_waits.set()

    second = threading.Thread(target=events.emit, args=("before-send.dynamodb",))
    monkeypatch.setattr(threading, "Lock", Lock)
    own_connections(SimpleNamespace(meta=SimpleNamespace(events=events), close=close))
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    events.emit("before-send.dynamodb")
    second.join()
    assert [threading.current_thread().name] == closed


def test_functions_keep_large_results_by_connections_of_their_own(monkeypatch: pytest.MonkeyPatch):
    """One child would record the version of another's object."""
    made = list[Any]()
    monkeypatch.setattr(boto3, "client", lambda *_, **__: "s3")
    monkeypatch.setattr(results, "own_connections", lambda client: made.append(client) or client)
    assert "s3" == results._s3()
    assert ["s3"] == made


def exit_code_of_child(use: Callable[[], object]) -> int:
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE_SECONDS)
        try:
            use()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def pace(pause: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    one = Pace(1)
    monkeypatch.setattr(
        "steponce.aws.pace.time", SimpleNamespace(monotonic=lambda: pause() or time.monotonic())
    )
    return lambda: one.turn(0)


def large_results(pause: Callable[[], None], _: pytest.MonkeyPatch) -> Callable[[], object]:
    made = SimpleNamespace(delete_objects=lambda **_: {})
    one = Results("bucket", lambda: pause() or made)
    return lambda: one.delete([("key", "version")])


def final_records(pause: Callable[[], None], _: pytest.MonkeyPatch) -> Callable[[], object]:
    class Record:
        status, open_status, is_of_powertools = COMPLETED, None, False

        @property
        def lock_token(self) -> str:
            pause()
            return "key"

    one, record = FinalRecords(1), Record()
    keep: Callable[[Any], None] = one.keep
    return lambda: keep(record)


def closed_connections(pause: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    events, process = HierarchicalEmitter(), os.getpid
    own_connections(SimpleNamespace(meta=SimpleNamespace(events=events), close=pause))
    monkeypatch.setattr(os, "getpid", lambda: process() + 1)  # a child is here that forks, too
    return lambda: events.emit("before-send.dynamodb")


def envelope(pause: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    def canonical(value: Any, where: str, **limits: int) -> str:
        if where == "input":
            pause()  # in Python 3.11 a `cached_property` holds a lock here
        return canonical_json(value, where, **limits)

    monkeypatch.setattr("steponce.request.envelope.canonical_json", canonical)
    return lambda: Envelope.make("order-1", {}, RequestRules("shop"))


def answer(pause: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    monkeypatch.setattr("steponce.callbacks.answer.canonical_json", lambda *_: pause() or "null")
    return lambda: Answer("success").to_json()


@pytest.mark.parametrize("make", [pace, large_results, final_records, closed_connections, envelope, answer])
def test_a_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_holds(
    monkeypatch: pytest.MonkeyPatch, make: Callable[..., Callable[[], object]]
):
    """That thread does not run in the child, so it never gives the lock back there."""
    is_held, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        if threading.current_thread() is holder:
            is_held.set()
            go_on.wait(PATIENCE_SECONDS)

    use = make(pause, monkeypatch)
    holder = threading.Thread(target=use)
    holder.start()
    assert is_held.wait(PATIENCE_SECONDS)
    code = exit_code_of_child(use)
    go_on.set()
    holder.join()
    assert 0 == code


def test_a_child_does_not_wait_for_the_thread_that_renews_its_parent_s_lease():
    """If it works on in the place of its parent, it completes, and has nothing to stop."""
    renewer = Renewer(threading.current_thread(), SimpleNamespace(), 9e9)
    with vars(renewer._stopped)["_cond"]:  # as that thread holds it when it begins to wait
        code = exit_code_of_child(renewer.stop)
    renewer.stop()
    assert 0 == code


def test_the_lock_of_a_block_is_python_s_own():
    """One that Python code takes stays held if an exception of a signal comes there, and is kept."""
    assert isinstance(OwnLock().here, type(threading.Lock()))
