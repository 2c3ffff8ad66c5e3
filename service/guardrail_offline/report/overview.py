"""The data overview: columns with lengths, languages, categories, duplicates, ignored columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from guardrail_offline.report.figures import RunFigures

MOST_IDENTIFIED = 200
"""Different texts of a column whose language is told: a millisecond each."""
_READ = 1000
"""Characters that tell a language well enough."""


def overview(figures: RunFigures) -> dict[str, Any]:
    """Return what the lab holds, as plain values."""
    cases = figures.run.cases
    columns = [
        _lengths("Question", (case.get("input") for case in cases)),
        _lengths("Answer", (case.get("actual_output") for case in cases)),
        _lengths("Expected answer", (case.get("expected_output") for case in cases)),
        _lengths("Passages", (_joined_passages(case) for case in cases)),
    ]
    pairs: Counter[Any] = Counter(
        (case["model_key"], case.get("input"), case.get("actual_output"))
        for case in cases
        if case.get("actual_output")
    )
    plans = [manifest.get("plan") or {} for manifest in figures.run.manifests]
    return {
        "columns": columns,
        "languages": [
            {"name": "Question", **languages([case.get("input") for case in cases])},
            {"name": "Answer", **languages([case.get("actual_output") for case in cases])},
        ],
        "questions": int(figures.groups.max(initial=-1)) + 1,
        "categories": Counter(n for c in cases for n in c.get("categories") or ()).most_common(30),
        "models": [(m.title, len(figures.places(m.key))) for m in figures.run.models],
        "duplicates": sum(count - 1 for count in pairs.values()),
        "ignored": list(dict.fromkeys(n for p in plans for n in p.get("ignored_columns") or ())),
    }


def _joined_passages(case: Mapping[str, Any]) -> str | None:
    passages = case.get("context")
    if not passages:
        return None
    return "".join(str(p.get("text") if isinstance(p, Mapping) else p) for p in passages)


def _lengths(name: str, texts: Iterable[Any]) -> dict[str, Any]:
    all_ = list(texts)
    sizes = [len(text) for text in all_ if isinstance(text, str) and text]
    quantiles = np.quantile(sizes, [0, 0.5, 1]).round().astype(int).tolist() if sizes else None
    distinct = len({text for text in all_ if isinstance(text, str) and text})
    return {"name": name, "there": len(sizes), "of": len(all_), "sizes": quantiles,
            "distinct": distinct}  # fmt: skip


def languages(texts: Sequence[Any]) -> dict[str, Any]:
    """Return how many of some texts are in which language; `looked_at` texts of `different` ones.

    Of many texts some are looked at, evenly over the lab. None stands for a language that cannot
    be told.
    """
    from guardrail_service.text.language import identify

    different = list(dict.fromkeys(text for text in texts if isinstance(text, str) and text))
    step = max(1, -(-len(different) // MOST_IDENTIFIED))
    seen = different[::step]
    found = (identify(text[:_READ]) for text in seen)
    counts = Counter(None if language is None else language.code for language in found)
    return {"found": counts.most_common(), "looked_at": len(seen), "different": len(different)}
