"""What the examples of docs/testing.md do not show."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from steponce.testing.faults import FaultRefused

RUNS = []


def test_each_planned_try_fails_and_retries_follow_the_clock(bookings, clock, fail_state):
    """The configuration lets a retry wait 120 seconds, and the next one twice as long."""
    fail_state("Charge", "Lambda.TooManyRequestsException", times=2)
    arn = bookings.start("more-1")
    for number, wait_seconds in ((1, 120), (2, 240)):
        bookings.until(lambda number=number: kinds(bookings, arn).count("LambdaFunctionFailed") == number)
        clock.advance(seconds=wait_seconds)

    assert bookings.ended(arn)["status"] == "SUCCEEDED"


def test_a_lost_answer_leaves_the_effect(bookings, lose_answer, receipts):
    """Where Resource is the function's ARN as well."""
    lose_answer("Charge")

    assert bookings.run("more-2")["error"] == "Lambda.SdkClientException"
    assert receipts() == ["more-2"]


def test_an_execution_is_stopped_after_the_effect(bookings, stop_in, receipts):
    """The history ends in the state."""
    stop_in("Charge", after_effect=True)

    ended = bookings.run("more-3")

    assert ended["status"] == "ABORTED"
    assert kinds(bookings, ended["executionArn"])[-2:] == ["LambdaFunctionStarted", "ExecutionAborted"]
    assert receipts() == ["more-3"]


def test_a_failed_state_has_no_effect_and_the_cause_of_the_test(bookings, fail_state, receipts):
    """States.Timeout is a time-out in the history, too."""
    fail_state("Charge", "States.Timeout", cause="The bank is slow.")

    ended = bookings.run("more-4")

    assert (ended["error"], ended["cause"]) == ("States.Timeout", "The bank is slow.")
    assert "LambdaFunctionTimedOut" in kinds(bookings, ended["executionArn"])
    assert receipts() == []


def test_a_task_inside_a_parallel_state_fails(bookings, fail_state):
    """By its own name, and with the machine named by its logical id."""
    fail_state("TellDriver", "Sqs.SdkClientException", machine="BookDelivery")

    assert bookings.run("more-5")["error"] == "Sqs.SdkClientException"


def test_a_name_that_no_task_has_is_refused(fail_state):
    """The message lists those that there are; a Wait state is none."""
    with pytest.raises(FaultRefused, match=r"no task 'WaitForDay'.*Charge, ReleaseSlot, ReserveSlot"):
        fail_state("WaitForDay", "States.Timeout")


def test_functions_and_histories_tell_the_stacks_time(bookings, clock):
    """The process of the test tells its own."""
    clock.advance(days=3)

    ended = bookings.run("more-6")

    charged = datetime.fromisoformat(json.loads(ended["output"])["charge"]["at"])
    ahead = charged - datetime.now(UTC)
    assert ahead > timedelta(days=2, hours=23)
    assert abs(ended["stopDate"] - charged) < timedelta(minutes=1)
    assert abs(clock.now() - charged) < timedelta(minutes=1)
    told = datetime.fromisoformat(json.loads(ended["output"])["charge"]["told"])
    assert abs(charged - told) < timedelta(minutes=1)


def test_a_week_without_an_answer_is_a_time_out(steponce_stack, bookings, clock):
    """For a task that waits for its token; its machine is a plain one of CloudFormation."""
    arn = bookings.sfn.start_execution(
        stateMachineArn=steponce_stack.outputs["ReminderArn"], name="more-7", input="{}"
    )["executionArn"]
    bookings.until(lambda: kinds(bookings, arn)[-1] == "TaskSubmitted")

    clock.advance(days=8)

    assert bookings.ended(arn)["status"] == "SUCCEEDED"
    assert "TaskTimedOut" in kinds(bookings, arn)


def test_a_fault_stands_in_for_a_service_that_the_stack_does_not_have(steponce_stack, bookings, fail_state):
    """The state's Catch gets the error as from the service."""
    fail_state("CallPartner", "States.Http.StatusCode.404")

    arn = bookings.sfn.start_execution(
        stateMachineArn=steponce_stack.outputs["AskPartnerArn"], name="more-8", input="{}"
    )["executionArn"]

    assert bookings.ended(arn)["status"] == "SUCCEEDED"


def test_something_is_left_behind(steponce_stack, bookings):
    """A booking that waits, another that charges, an item, an object and a message."""
    arn = bookings.start("left-1", waitSeconds=86_400)
    bookings.until(lambda: bookings.is_in("WaitForDay", arn))
    bookings.start("left-2", chargeSeconds=1, waitSeconds=86_400)
    bookings.until(lambda: bookings.item("left-2"))
    steponce_stack.boto3("sqs").send_message(QueueUrl=steponce_stack.outputs["Answers"], MessageBody="left")


def test_nothing_is_left_of_the_test_before(steponce_stack, bookings, receipts):
    """steponce_clean has stopped, emptied and waited."""
    listed = bookings.sfn.list_executions(
        stateMachineArn=bookings.outputs["BookDeliveryArn"], statusFilter="RUNNING"
    )
    queue = steponce_stack.boto3("sqs").get_queue_attributes(
        QueueUrl=steponce_stack.outputs["Answers"], AttributeNames=["ApproximateNumberOfMessages"]
    )

    assert listed["executions"] == []
    assert bookings.dynamodb.scan(TableName=bookings.outputs["Bookings"])["Items"] == []
    assert receipts() == []
    assert queue["Attributes"]["ApproximateNumberOfMessages"] == "0"


class TestWhatDoesNotClean:
    """One test of a project may keep what it did, and look at it later."""

    @pytest.fixture
    def steponce_clean(self):
        """In the place of the plugin's."""

    def test_something_is_kept(self, bookings):
        """After the test."""
        assert bookings.run("kept-1")["status"] == "SUCCEEDED"

    def test_it_is_there(self, bookings):
        """For the next that does not clean."""
        assert bookings.item("kept-1")


def test_who_cleans_begins_with_nothing(bookings):
    """Also after those who do not."""
    assert bookings.item("kept-1") is None


@pytest.fixture(scope="class")
def late_booking(steponce_stack):
    """Written when the class is over, and so after its last test has cleaned."""
    yield
    steponce_stack.boto3("dynamodb").put_item(
        TableName=steponce_stack.outputs["Bookings"], Item={"id": {"S": "late-1"}}
    )


@pytest.mark.usefixtures("late_booking")
class TestWhatIsWrittenAfterTheCleaning:
    """A fixture of a wider scope ends after steponce_clean, and may still write."""

    def test_a_booking_is_made(self, bookings):
        """It is cleaned away."""
        assert bookings.run("late-2")["status"] == "SUCCEEDED"


def test_who_cleans_begins_with_nothing_after_a_cleaning_either(bookings):
    """The test before has cleaned, and its fixture has written after that."""
    assert bookings.item("late-1") is None


def test_an_execution_that_is_waited_for_is_refused_in_words(steponce_stack):
    """Express machines run, and are started without waiting."""
    sfn = steponce_stack.boto3("stepfunctions")

    with pytest.raises(ClientError, match="not supported on the local stack: StartSyncExecution"):
        sfn.start_sync_execution(stateMachineArn=steponce_stack.outputs["AskPartnerArn"], input="{}")


def test_on_purpose_the_assertion_fails(bookings, fail_state):
    """Its report has the story of the one execution that has failed, and not of the other."""
    bookings.run("purpose-1")
    fail_state("Charge", "Declined", cause="A cause of the test.")

    assert bookings.run("purpose-2")["status"] == "SUCCEEDED"


def test_on_purpose_a_fault_is_never_reached(bookings, fail_state):
    """The test is an error at its end."""
    fail_state("Charge", "Declined", times=2)

    bookings.run("purpose-3")


def test_on_purpose_nothing_is_reached_again(fail_state):
    """That the first run has failed is no excuse for the second."""
    RUNS.append("run")
    assert len(RUNS) > 1
    fail_state("Charge", "Declined")


def test_on_purpose_there_is_no_run_once_workflow(steponce_client):
    """The error says which Outputs a client needs."""


@pytest.fixture
def receipts(steponce_stack):
    """The keys in the bucket."""

    def keys():
        s3, bucket = steponce_stack.boto3("s3"), steponce_stack.outputs["Receipts"]
        return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]

    return keys


def kinds(bookings, arn):
    """The types of an execution's events."""
    return [event["type"] for event in bookings.sfn.get_execution_history(executionArn=arn)["events"]]
