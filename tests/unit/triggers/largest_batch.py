"""
Gives a function the batch that needs the most memory, and prints at last how many bytes it took.

A trigger gets the largest requests that it admits, too, and gets them again while they run.
The HTTP API gets a request whose result, kept in the bucket, is as large as an answer may be.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import json
import re
import resource
import sys
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

from steponce.http_api.responses import LONGEST_ANSWER
from steponce.locks.reference import Reference, new_key
from steponce.request.envelope import ENVELOPE_LIMIT
from steponce.triggers.sqs import MAX_REQUEST_BYTES
from steponce.triggers.start_request import MAX_READ_BYTES
from tests.unit.triggers.world import Context, World, function, sqs_record

PAYLOAD_BYTES = 6_000_000
"""What Lambda gives a function at once. Source: Lambda quotas."""

MESSAGE_BYTES = 1_048_576
"""The largest message of SQS. Source: SQS quotas. Each answer has an invocation of its own."""

OF_ANSWERS = {"AwaitingStepsTable": "steps", "CallbackKey": "key", "OpenShards": "10"}
"""Settings of `resolve_awaiting_step`."""

OF_TRIGGERS = {"LockTokenPath": "b", "PayloadHashPath": "[a, b]"}
"""Settings of a trigger, which looks at each payload by both paths."""

OF_HTTP = {"HttpAccess": "open", "ResultBucket": "results"}
"""Settings of `http_api`."""

READ = json.loads((Path(__file__).parents[3] / "events" / "read_request.json").read_text())

MESSAGES, RECORDS = 10, 100
"""The batch sizes of the mappings."""


def nested_lists(size: int, start: str = '{"a":[') -> str:
    """A JSON object of about this many bytes. No other JSON has more objects for its size."""
    deep = "[" * 250 + "]" * 250 + ","
    return start + deep * ((size - len(start)) // len(deep) - 1) + "0]}"


class WorldWithResult(World):
    """A completed request, and the bucket that has its result."""

    def __init__(self) -> None:
        super().__init__()
        self._body = nested_lists(LONGEST_ANSWER * 99 // 100).encode()  # the answer has blanks
        key, call = f"steponce-run-once/{READ['pathParameters']['requestId']}", "0" * 32
        digest = hashlib.sha256(self._body).hexdigest()
        reference = Reference("results", new_key(key, call), "version-1", digest, len(self._body))
        self.hold(key, READ["pathParameters"]["requestId"], "hash")
        self.locks[key] |= {"status": {"S": "COMPLETED"}, "result": {"S": reference.to_json()}}

    def get_object(self, **_which: str) -> dict[str, Any]:
        return {"ContentLength": len(self._body), "Body": BytesIO(self._body)}


def batch(name: str) -> dict[str, Any]:
    """As many of the largest bodies that are read as Lambda hands over at once."""
    if name == "start_from_queue":
        body = nested_lists(MAX_REQUEST_BYTES, '{"Type":"Notification","a":[')
        count = min(MESSAGES, PAYLOAD_BYTES // len(body))
        return {"Records": [sqs_record(body, str(number)) for number in range(count)]}
    if name == "resolve_awaiting_step":
        return {"Records": [sqs_record(nested_lists(MESSAGE_BYTES), "0")]}
    return of_stream(nested_lists(MAX_READ_BYTES))


def of_stream(text: str) -> dict[str, Any]:
    """As many records of this text as Lambda hands over at once."""
    data = base64.b64encode(text.encode()).decode()
    kinesis = {"data": data, "sequenceNumber": "1", "partitionKey": "p", "approximateArrivalTimestamp": 1.0}
    count = min(RECORDS, PAYLOAD_BYTES // len(data))
    return {
        "Records": [
            {"eventSource": "aws:kinesis", "eventID": f"shard:{number}", "kinesis": kinesis}
            for number in range(count)
        ]
    }


def admitted(name: str) -> dict[str, Any]:
    """As many of the largest requests that are started as Lambda hands over at once."""
    text = nested_lists(ENVELOPE_LIMIT - 1_000, '{"b":"\U0001f600","a":[')
    if name == "start_from_event":
        return of_stream(text)
    return {"Records": [sqs_record(text, str(number)) for number in range(MESSAGES)]}


def receive_twice(module: ModuleType, world: World, name: str) -> None:
    """Let a trigger start the largest requests, and receive them again while they run."""
    text = json.dumps(admitted(name), ensure_ascii=False)
    for _ in range(2):
        assert not module.handler(json.loads(text), Context())["batchItemFailures"]
    assert world.sfn.executions
    assert not world.dead()


def most_bytes() -> int:
    """
    The most memory that this process has had at once.

    Source: proc(5); getrusage(2) of macOS, which counts bytes. On Linux that begins with the parent's memory.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    assert found is not None
    return int(found[1]) * 1024


if __name__ == "__main__":
    gc.disable()  # it frees nothing here, as nothing is a cycle, and takes half of the time
    if sys.argv[1] == "http_api":
        with function("http_api", WorldWithResult(), **OF_HTTP) as module:
            answer = module.handler(READ, Context())
            json.dumps(answer)  # as the runtime sends it
            assert 200 == answer["statusCode"]
    else:
        world = World()
        with function(sys.argv[1], world, **OF_ANSWERS, **OF_TRIGGERS) as module:
            if sys.argv[1] != "resolve_awaiting_step":
                receive_twice(module, world, sys.argv[1])
            text = json.dumps(batch(sys.argv[1]))
            answer = module.handler(json.loads(text), Context())
            assert answer["batchItemFailures"] or world.dead()
    print(most_bytes())
