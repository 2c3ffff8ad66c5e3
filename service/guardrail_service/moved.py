"""Names the new place of a module of version 0.1 when somebody imports the old one.

The finder is the last that Python asks, so an import that works costs nothing more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ROOMS = {
    "guardrail_offline": "offline",
    "guardrail_bench": "bench",
    "guardrail_models": "modelkit",
    "guardrail_service.server": "api collector",
    "guardrail_service.server.runtime": "runtime",
    "guardrail_service.server.serve": "serve",
    "guardrail_service.commands.main": "cli",
    "guardrail_service.commands.console": "console",
    "guardrail_service.commands": "lines warm",
    "guardrail_service.streaming": "stream",
    "guardrail_service.guard": "overrides",
    "guardrail_service.guard.check": "redaction",
    "guardrail_service.guard.waiting": "guard.Cancellation inference.turns",
    "guardrail_service.guard.guard": "guard.Guard guard.Warmed",
    "guardrail_service.policy.file": "config",
    "guardrail_service.policy.fingerprints": "fingerprint",
    "guardrail_service.policy.provenance": "provenance",
    "guardrail_service.policy.decide": (
        "policy.Policy policy.Rule policy.Cut policy.Decided policy.crosses policy.judge "
        "policy.span_action policy.describe"
    ),
    "guardrail_service.detectors.registry": "registry",
    "guardrail_service.detectors.pii": "detectors._pii",
    "guardrail_service.detectors.secrets": "detectors._secrets",
    "guardrail_service.detectors.no_answer": "detectors.abstention detectors.abstention_phrases",
    "guardrail_service.detectors.text_matching": "detectors.condition detectors.condition_tree",
    "guardrail_service.detectors.looping": "detectors.repeats",
    "guardrail_service.detectors.relevancy": (
        "detectors.answer_relevancy_sentence detectors.context_relevancy_soft "
        "detectors.language_mismatch"
    ),
    "guardrail_service.detectors.groundedness": (
        "detectors.claims detectors.coverage detectors.embedding"
    ),
    "guardrail_service.detectors.safety": "detectors.bias detectors.toxicity",
    "guardrail_service.detectors.hallucination": "detectors.verbatim",
    "guardrail_service.detectors.json_schema": (
        "detectors.schema_check detectors.schema_steps detectors.strict_json"
    ),
    "guardrail_service.detectors.shared": (
        "detectors.boolean detectors.caller_patterns detectors.placeholders"
    ),
    "guardrail_service.inference.queue": (
        "inference.backlog inference.batch inference.cost inference.entry inference.job "
        "inference.scheduler"
    ),
    "guardrail_service.inference.memory": "inference.caches",
    "guardrail_service.inference.models.session": "inference.tokenizer",
    "guardrail_service.inference.models": (
        "inference.branch inference.causal_lm inference.classifier inference.encoder "
        "inference.evidence inference.feeds inference.head inference.lexical inference.pair "
        "inference.session inference.text_model"
    ),
    "guardrail_service.text.segmentation": (
        "text.abbreviations text.layout text.sentences text.windows"
    ),
    "guardrail_service.text.sample": "text.segmented",
    "guardrail_service.text.decoding": (
        "text.confusables text.decode text.decode_blocks text.decode_inline text.disguise"
    ),
    "guardrail_service.text.patterns": "text.gates text.linear",
    "guardrail_service.text.patterns.search": (
        "text.patterns.PatternSet text.patterns.Prepared text.patterns.compile_regex "
        "text.patterns.prepared"
    ),
}
_BROUGHT_BY = {
    "guardrail_offline": "pip install rag-guardrail-offline",
    "guardrail_models": "pip install rag-guardrail-models",
    "guardrail_bench": "part of a checkout, not published",
}
_PACKAGE = __name__.partition(".")[0]
MOVED = {
    f"{_PACKAGE}.{old}": new for new, everything in _ROOMS.items() for old in everything.split()
}
"""New place by old one. The contents of an old module or package are inside the new one."""


class MovedFinder(MetaPathFinder):
    """Answers an import of something that moved with an ImportError that names the new place."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return None, for everything that did not move."""
        old = name
        while old not in MOVED:
            old, dot, _ = old.rpartition(".")
            if not dot:
                return None
        new = MOVED[old]
        note = _BROUGHT_BY.get(new, "")
        raise ImportError(
            f"{name} moved in version 0.2: look in {new}{f' ({note})' if note else ''}", name=name
        )


def install() -> None:
    """Let imports of old places be answered."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedFinder())
