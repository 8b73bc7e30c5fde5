"""Which machine a request or a lock belongs to, if several are on one table."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from moto import mock_aws

from steponce import RequestNotFound, Unavailable
from steponce.errors import LockNotFound, MachineAmbiguous, OwnerHidden
from steponce.operator.machines import machine_of_lock, machine_of_request
from steponce.request.machine import Machine
from steponce.request.names import name_of
from tests.fakes.errors import client_error
from tests.unit.one_machine import ARN, arn, envelope
from tests.unit.two_machines import OF_REFUNDS, REFUNDS, TwoMachines, at_refunds


@pytest.fixture
def world() -> Iterator[TwoMachines]:
    """Two machines on one table."""
    with mock_aws():
        yield TwoMachines()


@pytest.fixture
def machines(world: TwoMachines) -> list[Machine]:
    return [world.client_of(name).machine for name in ("m", "refunds")]


def whose(machines: list[Machine], request_id: str, lock_token: str | None = None) -> str:
    """The ARN of the machine of a request."""
    return machine_of_request(machines, request_id, lock_token=lock_token).arn


# -- requests --------------------------------------------------------------------------------------
def test_a_request_is_where_its_execution_is(world: TwoMachines, machines: list[Machine]):
    """With or without a record; the two never share a lock token by default."""
    world.execution("order-1", "RUNNING")
    world.execution(at_refunds("order-2"), "RUNNING", given=envelope("refunds/order-2"))
    assert [ARN, REFUNDS] == [whose(machines, one) for one in ("order-1", "order-2")]


def test_a_request_whose_executions_are_forgotten_is_where_its_record_is(
    world: TwoMachines, machines: list[Machine]
):
    """Also if only its second attempt is known, or plain Python has taken its lock."""
    world.put("refunds/order-1", "order-1", lockedBy=at_refunds("order-1"))
    world.execution(at_refunds("order-2--2"), "FAILED", given=envelope("refunds/order-2"))
    world.put("refunds/order-3", "order-3", lockedBy="process/host/7")
    assert {REFUNDS} == {whose(machines, f"order-{number}") for number in (1, 2, 3)}


def test_a_record_under_a_shared_key_says_whose_it_is(world: TwoMachines, machines: list[Machine]):
    """Both know the id, and the key was taken for the request of one of them."""
    for name in (arn("order-1"), at_refunds("order-1")):
        world.execution(name, "FAILED", given=envelope("acme/1"))
    world.put("acme/1", "order-1", lockedBy=at_refunds("order-1"))
    assert REFUNDS == whose(machines, "order-1", "acme/1")
    with pytest.raises(MachineAmbiguous):
        whose(machines, "order-1", "acme/2")


def test_a_guard_s_record_under_a_given_key_is_found(world: TwoMachines, machines: list[Machine]):
    """No machine has made it, and one that may not be asked does not hide it. Its id is the given one."""
    world.put("billing/charge/1", "charge/1", lockedBy="process/host/7")
    world.sfn.refuse("describe_execution", "AccessDeniedException", at_refunds(name_of("charge/1")))
    assert ARN == whose(machines, "charge/1", "billing/charge/1")
    with pytest.raises(RequestNotFound):
        whose(machines, "charge/2", "billing/charge/1")


def test_a_guard_s_record_that_two_machines_find_is_one(world: TwoMachines):
    """They have one key prefix. An execution of theirs is still another request."""
    world.outputs["RefundsWorkflow"] = json.dumps(OF_REFUNDS | {"keyPrefix": "m"})
    machines = [world.client_of(name).machine for name in ("m", "refunds")]
    world.put("m/order-1", "order-1", lockedBy="process/host/7")
    assert ARN == whose(machines, "order-1")
    world.execution(at_refunds("order-1"), "RUNNING", given=envelope("acme/1"))
    with pytest.raises(MachineAmbiguous):
        whose(machines, "order-1")


def test_an_id_that_two_machines_know_is_not_guessed(world: TwoMachines, machines: list[Machine]):
    """The message names them; one that is named is not even asked."""
    world.execution("order-1", "RUNNING")
    world.execution(at_refunds("order-1"), "RUNNING", given=envelope("refunds/order-1"))
    with pytest.raises(MachineAmbiguous, match=r"know a request 'order-1': m, refunds\. Name one of them\."):
        whose(machines, "order-1")
    world.sfn.calls.clear()
    assert (REFUNDS, 0) == (whose(machines[1:], "order-1"), world.sfn.calls.total())


def test_a_record_of_another_machine_s_request_is_no_knowledge(world: TwoMachines, machines: list[Machine]):
    """It has the lock token that this machine would give, by hand."""
    world.put("m/order-1", "order-1", lockedBy=at_refunds("order-1"))
    with pytest.raises(RequestNotFound):
        whose(machines[:1] * 2, "order-1")


def test_a_request_that_nobody_knows_is_not_found(machines: list[Machine], world: TwoMachines):
    """By two descriptions of each machine; the message says where it was looked for."""
    with pytest.raises(RequestNotFound, match="no request 'order-1' at m, refunds"):
        whose(machines, "order-1")
    assert {"describe_execution": 4} == world.sfn.calls


def test_a_machine_that_may_not_be_asked_hides_no_other(world: TwoMachines, machines: list[Machine]):
    """But if none of the others knows the request, it may be there."""
    world.execution("order-1", "RUNNING")
    world.sfn.refuse("describe_execution", "AccessDeniedException", at_refunds("order-1"))
    world.sfn.refuse("describe_execution", "AccessDeniedException", at_refunds("order-2"))
    assert ARN == whose(machines, "order-1")
    with pytest.raises(OwnerHidden, match=r"stateMachine|execution:refunds"):
        whose(machines, "order-2")
    world.sfn.refuse("describe_execution", "ThrottlingException", at_refunds("order-3"))
    with pytest.raises(Unavailable):
        whose(machines, "order-3")


def test_a_record_tells_of_a_request_whose_execution_may_not_be_looked_at(
    world: TwoMachines, machines: list[Machine]
):
    """As with another KMS key. The other machine's request was taken for the only one, and settled."""
    world.held()
    world.held_by_refunds()
    for hidden in (arn("order-1"), at_refunds("order-1")):
        world.sfn.refuse("describe_execution", "KmsAccessDeniedException", hidden)
        with pytest.raises(MachineAmbiguous, match="m, refunds"):
            whose(machines, "order-1")
        with pytest.raises(MachineAmbiguous, match=r"'m/order-1' of m; 'refunds/order-1' of refunds"):
            machine_of_lock(machines, "order-1")


def test_a_machine_whose_table_may_not_be_read_either_hides_no_other(
    world: TwoMachines, machines: list[Machine], monkeypatch: pytest.MonkeyPatch
):
    """Nothing can be known of it."""
    world.held()
    world.sfn.refuse("describe_execution", "AccessDeniedException", at_refunds("order-1"))

    def refuse(_token: str) -> None:
        raise client_error("AccessDeniedException")

    monkeypatch.setattr(machines[1].locks, "get", refuse)
    assert ARN == whose(machines, "order-1")


def test_a_record_alone_says_whose_a_request_is(world: TwoMachines, machines: list[Machine]):
    """If nobody may be asked."""
    world.held_by_refunds()
    world.put("m/order-1", "another", lockedBy=arn("another"))
    for hidden in (arn("order-1"), at_refunds("order-1")):
        world.sfn.refuse("describe_execution", "AccessDeniedException", hidden)
    assert [REFUNDS] * 2 == [whose(machines, "order-1"), machine_of_lock(machines, "order-1")[0].arn]


# -- locks -----------------------------------------------------------------------------------------
def test_a_lock_is_its_owner_s_machine_s(world: TwoMachines, machines: list[Machine]):
    """By its token, or by the id of its request; in either order of the machines."""
    lock = world.held_by_refunds()
    for order in (machines, machines[::-1]):
        for key in ("refunds/order-1", "order-1"):
            machine, found = machine_of_lock(order, key)
            assert (REFUNDS, lock) == (machine.arn, found)


def test_a_shared_key_s_lock_is_found_by_either_s_request(world: TwoMachines, machines: list[Machine]):
    """Whoever has it."""
    for name in (arn("pay-1"), at_refunds("refund-1")):
        world.execution(name, "FAILED", given=envelope("acme/1"))
    world.put("acme/1", "refund-1", lockedBy=at_refunds("refund-1"))
    assert {REFUNDS} == {machine_of_lock(machines, key)[0].arn for key in ("pay-1", "refund-1", "acme/1")}


def test_an_id_with_a_record_at_each_machine_is_not_guessed(world: TwoMachines, machines: list[Machine]):
    """The message names the lock tokens, each of which means one."""
    world.held()
    world.held_by_refunds()
    with pytest.raises(MachineAmbiguous, match=r"'m/order-1' of m; 'refunds/order-1' of refunds"):
        machine_of_lock(machines, "order-1")
    assert ARN == machine_of_lock(machines, "m/order-1")[0].arn
    assert "m/order-1" == machine_of_lock(machines[:1], "order-1")[1].lock_token


def test_a_lock_whose_token_is_also_a_request_s_id_can_be_named(world: TwoMachines, machines: list[Machine]):
    """A guard may have such a token. No other name leads to its record."""
    world.held()
    lock = world.put("order-1", lockedBy="process/host/7")

    with pytest.raises(MachineAmbiguous) as raised:
        machine_of_lock(machines, "order-1")

    assert {"order-1", "m/order-1"} == {step.key for step in raised.value.next_steps}
    assert lock == machine_of_lock(machines, "order-1", by_token=True)[1]


def test_a_lock_of_an_unknown_machine_is_found_nevertheless(world: TwoMachines, machines: list[Machine]):
    """And plain Python's: an operator's command says what can be done."""
    for owner in (at_refunds("x").replace(":refunds:", ":charges:"), "process/host/7"):
        lock = world.put("acme/1", "x", lockedBy=owner)
        assert (ARN, lock) == ((found := machine_of_lock(machines, "acme/1"))[0].arn, found[1])


def test_a_lock_that_is_not_there_is_said_so(world: TwoMachines, machines: list[Machine]):
    """With the machines; or with the one that may not be asked."""
    with pytest.raises(LockNotFound, match="at m, refunds"):
        machine_of_lock(machines, "order-1")
    world.sfn.refuse("describe_execution", "AccessDeniedException", at_refunds("order-1"))
    with pytest.raises(OwnerHidden):
        machine_of_lock(machines, "order-1")
    world.held()
    assert ARN == machine_of_lock(machines, "order-1")[0].arn
