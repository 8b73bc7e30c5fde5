"""A function that does not end by itself when its test does; cleaning waits for five seconds."""


def test_a_charge_still_runs_when_its_test_is_over(bookings, steponce_stack):
    """Nobody waits for it."""
    bookings.start("slow-1", chargeSeconds=15)
    bookings.until(lambda: "begins slow-1" in steponce_stack.logs("steponce-ChargeFunction"))


def test_it_was_ended_before_the_next_test(bookings, steponce_stack):
    """It has not come to its effect, and cannot any more; another one runs."""
    assert "ends slow-1" not in steponce_stack.logs("steponce-ChargeFunction")
    assert bookings.item("slow-1") is None
    assert bookings.run("slow-2")["status"] == "SUCCEEDED"
    assert "ends slow-2" in steponce_stack.logs("steponce-ChargeFunction")
