"""Other tools to stand beside ours in a report, used only where the user installed them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from guardrail_bench.tasks import Found, SpanTask

_RECOGNIZERS = "presidio_analyzer.predefined_recognizers"
_CLASSES = (
    "EmailRecognizer", "PhoneRecognizer", "CreditCardRecognizer", "IbanRecognizer",
    "UsSsnRecognizer", "UsItinRecognizer", "UsPassportRecognizer", "UsLicenseRecognizer",
    "UsBankRecognizer", "AbaRoutingRecognizer", "IpRecognizer", "CryptoRecognizer",
    "MedicalLicenseRecognizer", "NhsRecognizer", "EsNifRecognizer", "ItFiscalCodeRecognizer",
    "SgFinRecognizer", "AuTfnRecognizer", "InPanRecognizer", "InAadhaarRecognizer",
    "PlPeselRecognizer", "FiPersonalIdentityCodeRecognizer",
)  # fmt: skip
_SCORE = 0.4
"""Presidio's confidence from which a finding counts: its documented patterns without context
score 0.01 to 0.3 when weak and 0.4 or more otherwise."""
MISSING = (
    "baseline not installed: pip install presidio-analyzer (its pattern recognizers are used "
    "alone, so no language model is downloaded)"
)


def presidio(task: SpanTask) -> tuple[Callable[[str], list[Found]] | None, str]:
    """Return Presidio's pattern recognizers under our type names, and a note for the report."""
    if task.id != "pii":
        return None, "no baseline for this task"
    if find_spec("presidio_analyzer") is None:
        return None, MISSING
    module = import_module(_RECOGNIZERS)
    recognizers = [getattr(module, name)() for name in _CLASSES if hasattr(module, name)]

    def find(text: str) -> list[Found]:
        return list(_convert(task, recognizers, text))

    return find, f"baseline: Presidio's {len(recognizers)} pattern recognizers, score >= {_SCORE}"


def _convert(task: SpanTask, recognizers: Iterable[Any], text: str) -> Iterable[Found]:
    for recognizer in recognizers:
        for result in recognizer.analyze(text, recognizer.supported_entities, None) or ():
            type_ = task.canonical(result.entity_type)
            if type_ is not None and result.score >= _SCORE:
                yield type_, result.start, result.end
