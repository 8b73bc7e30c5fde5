"""What a dead letter is, why it is there, and what to do with it."""

from __future__ import annotations

from dataclasses import replace

from steponce.next_step import NextStep
from steponce.triggers.dead_letters import IF_NOT_ANSWERED, REASON
from steponce.triggers.foreign_records import Foreign, foreign_record
from steponce.triggers.found_letters import Found, json_in
from steponce.triggers.sqs import MAX_REQUEST_BYTES


def is_foreign(found: Found) -> str | None:
    """The kind of AWS's own message that a letter is. None for a request."""
    foreign = _foreign(found)
    if foreign is not None:
        return foreign.kind
    return "record of a kind that is not known here" if found.queue.back_to is None else None


def _foreign(found: Found) -> Foreign | None:
    if found.letter.shape == "request":
        return None  # its body is a payload, whatever that is about
    return foreign_record(json_in(found.body), found.text_attributes())


def can_be_put_back(found: Found) -> bool:
    """Whether a letter is a request, and its queue would take it."""
    return is_foreign(found) is None and not found.is_too_large


def may_be_answered(found: Found) -> bool:
    """Whether a person has to find out first whether the message was answered."""
    return found.reason.endswith(IF_NOT_ANSWERED)


def what_next(found: Found) -> tuple[str, tuple[NextStep, ...]]:
    """What to do with a letter, in words and as steps."""
    shown, deleted = NextStep("show letter", found.id), NextStep("delete letter", found.id)
    foreign = _foreign(found)
    if foreign is not None:
        steps = tuple(_at_its_machine(step, found) for step in foreign.next_steps)
        return f"{foreign.advice} Then delete the letter.", (*steps, deleted)
    if is_foreign(found) is not None:
        return "Look at it. Then delete the letter.", (shown, deleted)
    if found.is_too_large:
        return (
            f"Its queue takes {MAX_REQUEST_BYTES:,} bytes, and the letter has more with its attributes. Save "
            "its body, keep the large part in S3, and send a request with the address. Then delete the "
            "letter.",
            (shown, deleted),
        )
    redriven = NextStep("redrive letter", found.id)
    if may_be_answered(found):
        return (
            "Find out whether its work took effect. If it did not, redrive the letter. If it did, delete it: "
            "redriven, it runs the work again.",
            (redriven, deleted),
        )
    return (
        "Remove the cause that its reason names, and redrive it. If the letter itself is the cause, delete "
        "it, and let its sender send a right one.",
        (redriven, deleted),
    )


def _at_its_machine(step: NextStep, found: Found) -> NextStep:
    """A start without a machine would go to the stack's own."""
    return replace(step, machine=found.queue.machine) if step.action == "start request" else step


def reason_of(found: Found) -> str:
    """Why a letter was dead-lettered, or what AWS's own failure record says."""
    foreign = _foreign(found)
    if REASON in found.attributes or foreign is None:
        return found.reason
    return f"{foreign.reason} ({foreign.kind})"
