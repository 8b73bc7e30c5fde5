"""The state machine of a new application: the sample's, around a function of the application's own."""

from __future__ import annotations

from steponce.scaffold import sources

FILE = "statemachines/run_once.asl.json"

_CONFIRMATION_STATES = ('    "IsConfirmationWanted": {\n', '    "AwaitConfirmation": {\n')
_CONFIRMATION_TIMES = '        "confirmation'
_END_OF_STATE = "    },\n"
_TIMEOUT_SECONDS = 2592000  # 30 days, which is longer than the longest confirmation


def definition(*, callback: bool) -> str:
    """
    The text of the definition.

    Args:
        callback: Whether an order may wait for a confirmation.
    """
    text = (sources.root() / FILE).read_text(encoding="utf-8")
    text = _replaced(text, "${ChargeCardFunctionArn}", "${DoWorkFunctionArn}")
    text = _replaced(text, '${RequestTimeout}",', f'",\n  "TimeoutSeconds": {_TIMEOUT_SECONDS},')
    text = _replaced(text, "the provider has confirmed the charge", "they are confirmed")
    text = _replaced(text, "The charge has happened", "The work is done")
    return text if callback else _without_confirmation(text)


def _without_confirmation(text: str) -> str:
    kept, skipping = [], False
    for line in text.splitlines(keepends=True):
        skipping = skipping or line in _CONFIRMATION_STATES
        if not skipping and not line.startswith(_CONFIRMATION_TIMES):
            kept.append(line)
        skipping = skipping and line != _END_OF_STATE
    text = _replaced("".join(kept), '"result.$": "$.Payload",\n      }', '"result.$": "$.Payload"\n      }')
    return _replaced(text, '"Next": "IsConfirmationWanted"', '"Next": "CompleteRequest"')


def _replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise sources.SampleChanged(FILE, repr(old))
    return text.replace(old, new)
