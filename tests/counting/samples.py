"""The machines in the tests of other parts: what others write, and small ones of ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

from tests.counting.answers import Answer, Fails, Says
from tests.counting.drives import Drive, Subject

UNIT = Path(__file__).parents[1] / "unit"
VALUES = {"RetrySeconds": "60", "ChargeFunctionArn": "arn:aws:lambda:us-east-1:123456789012:function:Charge"}
PAST = "2020-01-01T00:00:00Z"


def subject(
    file: str,
    inputs: Sequence[Any] = ({},),
    **answers: Sequence[Answer],
) -> Subject:
    """A machine of a file below tests/unit."""
    drive = Drive((UNIT / file).read_text(), VALUES, inputs, answers)
    return Subject(file, [drive], usual=False)


def reminder() -> Subject:
    """A machine that is in its template."""
    file = "testing/project/template.yaml"
    resource = yaml_parse((UNIT / file).read_text())["Resources"]["Reminder"]
    return Subject(
        f"{file}, Reminder", [Drive(resource["Properties"]["DefinitionString"]["Fn::Sub"])], usual=False
    )


def map_s3_objects() -> Subject:
    """A distributed Map. Its ResultWriter is left out: the embedded engine has none, and it is not priced."""
    file = "lint/machines/right/map_s3_objects.asl.json"
    definition = json.loads((UNIT / file).read_text())
    del definition["States"]["ForEachObject"]["ResultWriter"]
    return Subject(file, [Drive(json.dumps(definition), inputs=[{"bucket": "images"}])], usual=False)


def job(status: str) -> Says:
    """What Transcribe says of a job."""
    return Says({"TranscriptionJob": {"TranscriptionJobStatus": status}})


def renewed(*, is_cancelled: bool) -> Says:
    """What the function says of a subscription."""
    return Says({"renewsAt": PAST, "isCancelled": is_cancelled, "subscription": "s"})


RIGHT = [
    subject(
        "lint/machines/right/choice_routing.asl.json",
        [{}, {"country": "DE"}, {"country": "FR", "weight": 5}, {"country": "FR", "weight": 50}],
    ),
    subject("lint/machines/right/ecs_task.asl.json", [{"day": "1"}]),
    subject(
        "lint/machines/right/glue_athena.asl.json",
        [{"day": "1"}],
        GetCount=[Says({"ResultSet": {"Rows": [{}, {"Data": [{"VarCharValue": "5"}]}]}})],
    ),
    subject(
        "lint/machines/right/human_approval.asl.json",
        [{"expense": 1}],
        AskForApproval=[Says({"decision": "approved"}), Says({"decision": "no"}), Fails("States.Timeout")],
    ),
    map_s3_objects(),
    subject("lint/machines/right/nested_execution.asl.json", [{"customers": "file"}]),
    subject(
        "lint/machines/right/order_saga.asl.json",
        [{"orderId": "o", "items": [], "amount": 5}],
        ReserveStock=[Says({"reservation": "r"})],
        ChargeCard=[Says({"payment": "p"})],
    ),
    subject(
        "lint/machines/right/parallel_enrichment.asl.json",
        [{"customerId": "c", "orderId": "o", "items": []}],
        GetCustomer=[Says({}), Says({"Item": {"name": {"S": "Ann"}}})],
        GetPrice=[Says({"price": 5})],
    ),
    subject(
        "lint/machines/right/polling_loop.asl.json",
        [{"name": "n", "uri": "s3://b/k"}],
        GetJob=[job("COMPLETED"), job("FAILED"), job("IN_PROGRESS")],
    ),
    subject("lint/machines/right/sqs_fan_out.asl.json", [{"orderId": "o", "lines": ["a"]}]),
]
PLANTED = [
    subject("lint/machines/planted/batch_import.asl.json", ReadRows=[Says({"rows": [1]})]),
    subject(
        "lint/machines/planted/customer_onboarding.asl.json",
        [{"customerId": "c", "customer": {}}],
        CreateAccount=[Says({"accountId": "a"})],
    ),
    subject(
        "lint/machines/planted/document_review.asl.json",
        [{"document": "d"}],
        ExtractText=[Says({"score": 0.95, "text": ""}), Says({"score": 0.1, "text": ""})],
    ),
    subject("lint/machines/planted/image_pipeline.asl.json", [{"key": "k"}], ReadImage=[Says({"key": "k"})]),
    subject("lint/machines/planted/order_events.asl.json", [{"orderId": "o", "day": "1"}]),
    subject(
        "lint/machines/planted/partner_report.asl.json",
        [{"reportId": "1", "report": {}}],
        SendReport=[Says({"ResponseBody": {"number": number}}) for number in (1, None)],
    ),
    subject("lint/machines/planted/payment_callback.asl.json", [{"payment": "p"}]),
    subject(
        "lint/machines/planted/quote_in_jsonata.asl.json",
        [{"suppliers": [{"queue": "https://sqs.us-east-1.amazonaws.com/123456789012/a", "item": "i"}]}],
        AskSupplier=[Says({"price": price}) for price in (50, 500)],
    ),
    subject(
        "lint/machines/planted/stock_update.asl.json",
        [{"sku": "s", "less": "1", "next": "2"}],
        ReadStock=[Says({}), Says({"Item": {"status": {"S": "ACTIVE"}, "version": {"N": "1"}}})],
    ),
    subject(
        "lint/machines/planted/subscription_renewal.asl.json",
        [{"renewsAt": PAST, "subscription": "s"}],
        RenewSubscription=[renewed(is_cancelled=True), renewed(is_cancelled=False)],
    ),
]
OURS = [
    subject("local/fixture/flow.asl.json"),
    subject("local/fixture/end_as_told.asl.json", [{"end": end} for end in ("good", "never", "bad")]),
    subject("testing/project/statemachine/book_delivery.asl.json", [{"id": "1", "waitSeconds": 1}]),
    reminder(),
]

SUBJECTS = [*RIGHT, *PLANTED, *OURS]
