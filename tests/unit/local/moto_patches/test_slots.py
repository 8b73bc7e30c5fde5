"""Who may run, and who is next; no engine, only threads."""

import threading

from steponce.local.moto_patches.slots import Slot, Slots
from tests.patience import eventually

FOR_EVER = 3600.0


def requested(slots, number):
    """So many that have requested a slot, in this order."""
    found = [Slot(slots) for _ in range(number)]
    for slot in found:
        slot.request()
    return found


def running(slots):
    """The numbers of those that hold a slot."""
    return [number for number, slot in enumerate(slots) if slot._held]


def in_thread(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_so_many_run_and_the_others_come_in_the_order_of_their_start():
    """First come, first served."""
    all_of_them = requested(Slots(2, FOR_EVER), 5)
    assert [0, 1] == running(all_of_them)
    all_of_them[1].close()
    assert [0, 2] == running(all_of_them)
    all_of_them[0].close()
    all_of_them[2].close()
    assert [3, 4] == running(all_of_them)


def test_who_only_waits_lets_others_run_and_comes_back_before_the_new():
    """A released slot goes to the next, and returns as soon as one is free."""
    first, second, third = all_of_them = requested(Slots(1, FOR_EVER), 3)
    answered = threading.Event()

    def wait_for_answer():
        with first.released():
            answered.wait()

    waiting = in_thread(wait_for_answer)
    eventually(lambda: [1] == running(all_of_them))
    answered.set()
    eventually(lambda: first._turn)
    second.close()
    waiting.join()
    assert [0] == running(all_of_them)
    first.close()
    assert third._held


def test_one_that_is_stopped_in_line_waits_no_more_and_takes_nothing():
    """Its thread goes on at once, and the one behind moves up."""
    first, stopped, last = requested(Slots(1, FOR_EVER), 3)
    waiting = in_thread(stopped.wait)
    stopped.abandon()
    waiting.join(60)
    assert not waiting.is_alive()
    first.close()
    assert last._held
    stopped.request(returning=True)
    stopped.wait()
    stopped.close()
    assert not stopped._held


def test_a_slot_is_released_once():
    """Who ends twice releases one slot, not two."""
    all_of_them = requested(Slots(1, FOR_EVER), 3)
    for _ in range(3):
        all_of_them[0].close()
        all_of_them[0].release()
    assert [1] == running(all_of_them)


def test_work_that_waits_for_other_work_does_not_stop_the_stack():
    """If no slot changes hands, the next in line is let in; afterwards there are as many as before."""
    slots = Slots(2, 0.02)
    all_of_them = requested(slots, 4)
    eventually(lambda: [0, 1, 2, 3] == running(all_of_them))
    slots._patience_seconds = FOR_EVER
    for slot in all_of_them:
        slot.close()
    assert [0, 1] == running(requested(slots, 4))


def test_many_threads_leave_all_slots_free():
    """Whatever the order, nobody is forgotten and nothing is lost."""
    slots = Slots(3, FOR_EVER)
    most, now = 0, 0
    counting = threading.Lock()

    def live(number):
        nonlocal most, now
        slot = Slot(slots)
        slot.request(returning=number % 3 == 0)
        slot.wait()
        for _ in range(5):
            with counting:
                now += 1
                most = max(most, now)
            with counting:
                now -= 1
            with slot.released():
                pass
        slot.close()

    threads = [in_thread(lambda number=number: live(number)) for number in range(60)]
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert 3 >= most
    assert [0, 1, 2] == running(requested(slots, 4))
