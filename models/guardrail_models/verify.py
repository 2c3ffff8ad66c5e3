"""Compares an export with its original on scores, through the sessions that serve it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from guardrail_models.original import Floats, Text
from guardrail_models.quantise import Quantisation
from guardrail_service.errors import ConfigurationError, RowFailed, ServiceError
from guardrail_service.inference.models.causal_lm import CausalLmSession
from guardrail_service.inference.models.pair import PairModel
from guardrail_service.inference.models.session import Encoded, TextModel
from guardrail_service.inference.pack import Pack
from guardrail_service.types import Role

BATCH = 8
BATCH_TOLERANCE = 1e-3
"""How far a row may move beside others where the manifest says rows may run together: sums in
another order, not another score."""
LIMITS: dict[Quantisation, tuple[float, float]] = {
    "none": (1e-3, 1e-4),
    "fp16": (0.02, 0.004),
    "int8-dynamic": (0.25, 0.05),
    "int8-static": (0.30, 0.06),
    "weight-only": (0.15, 0.025),
}
"""Largest and mean difference of a score that an export may have, by default. Twice to ten times
what correct exports of the stand-ins show; each deliberately wrong export of the tests is above."""
OUTPUT: dict[Role, str] = {"embedding": "sentence_embedding", "causal_lm": "log_probabilities"}
FIRST = ("premise", "prompt", "text", "question", "answer")
SECOND = ("hypothesis", "pair", "second")
TEXTS = Path(__file__).with_name("embedding_texts.jsonl")
GOLDEN_ROWS = 56
"""About how many rows are compared and kept with the model."""
LEAST_ROWS = 50
"""The pack format asks for as many golden rows."""
MAX_ROWS = 400
LONG_SHARES = (0.3, 0.5, 0.7, 0.85, 0.95)
"""Shares of the longest row a model reads. A row cut to fewer tokens must show."""


class ExportFailed(ServiceError):
    """An export does not give its original's scores; it is not written."""

    code = "export_failed"


@dataclass(frozen=True, slots=True)
class Verification:
    """The comparison of an export with its original.

    Attributes:
        rows: Rows that were compared.
        longest: Tokens of the longest.
        largest: Largest difference of a score; cosines of all pairs for an embedding, mean log
            probabilities for a language model.
        mean: Mean difference.
        flips: Scores on the other side of the threshold than the original's.
        scores: Scores that were compared.
        threshold: Where a verdict would flip.
        batch: Largest change of a score between a row alone and among others of other lengths.
        batch_flips: Scores that end on the other side of the threshold by that.
    """

    rows: int
    longest: int
    largest: float
    mean: float
    flips: int
    scores: int
    threshold: float
    batch: float
    batch_flips: int

    def as_json(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return asdict(self)


class Export:
    """An export as it will be served, one row at a time and, to compare, several at once."""

    def __init__(self, pack: Pack, role: Role) -> None:
        self.role = role
        self.file = pack.model(role)
        self._pair = PairModel(pack, pack.manifest.roles[role]) if _is_pair(role) else None
        self._causal = CausalLmSession(pack) if role == "causal_lm" else None
        self._text = None if self._pair else TextModel(pack, pack.manifest.roles[role])

    def encoded(self, row: Text) -> tuple[Encoded, int]:
        """Return a row's tokens, and how many of them are judged (causal models)."""
        if self._pair is not None:
            return self._pair.encoded(row.first, row.second or ""), 0
        if self._causal is not None:
            return self._causal.encoded(row.first, row.second or "")
        if self._text is None:
            raise RowFailed("no model")
        return self._text.tokenizer.encoded(row.first), 0

    def tokens(self, row: Text) -> int:
        """Return how many tokens a row has; more than the model reads counts as one too many."""
        try:
            return len(self.encoded(row)[0].ids)
        except RowFailed:
            return self.file.max_tokens + 1

    def scores(self, rows: Sequence[Text], together: int = 1) -> Floats:
        """Return what `Original.scores` returns, `together` rows per call."""
        encoded = [self.encoded(row) for row in rows]
        found: list[npt.NDArray[Any]] = []
        for start in range(0, len(encoded), together):
            part = encoded[start : start + together]
            found.extend(self._run([row for row, _ in part], [judged for _, judged in part]))
        return np.stack(found).astype(np.float64)

    def _run(self, rows: list[Encoded], judged: list[int]) -> list[npt.NDArray[Any]]:
        if self._pair is not None:
            labels = len(self.file.labels or ())
            return [row[:labels] for row in self._pair.probabilities(rows)]
        if self._text is None:
            raise RowFailed("no model")
        values = self._text.run(rows, OUTPUT.get(self.role, "probabilities"))
        if self.role != "causal_lm":
            return list(values)
        is_left = self.file.padding is not None and self.file.padding.side == "left"
        ends = [values.shape[1] if is_left else len(row.ids) - 1 for row in rows]
        return [
            line[end - count : end].mean(keepdims=True)
            for line, end, count in zip(values, ends, judged, strict=True)
        ]


def _is_pair(role: Role) -> bool:
    return role in ("grounding", "nli")


def compare(
    export: Export, original: Floats, rows: Sequence[Text], threshold: float
) -> Verification:
    """Return how an export compares with what the original gave for the same rows.

    Args:
        export: The export.
        original: `Original.scores` of the rows.
        rows: What was scored.
        threshold: Where a verdict flips.
    """
    alone = export.scores(rows)
    mixed = _mixed(rows, export)
    beside = np.empty_like(alone)
    beside[mixed] = export.scores([rows[place] for place in mixed], BATCH)
    expected, found, moved = (_flat(table, export.role) for table in (original, alone, beside))
    apart = np.abs(found - expected)
    return Verification(
        rows=len(rows),
        longest=max(map(export.tokens, rows)),
        largest=float(apart.max()),
        mean=float(apart.mean()),
        flips=int(((found > threshold) != (expected > threshold)).sum()),
        scores=len(found),
        threshold=threshold,
        batch=float(np.abs(moved - found).max()),
        batch_flips=int(((found > threshold) != (moved > threshold)).sum()),
    )


def refuse_wrong(
    found: Verification, export: Export, limits: tuple[float, float], max_flips: float
) -> None:
    """Raise ExportFailed unless an export may be served in its original's place.

    Args:
        found: What was measured.
        export: The export.
        limits: Largest and mean difference that are accepted.
        max_flips: Share of scores that may change sides at the threshold.
    """
    faults = []
    if not found.largest <= limits[0]:  # so that a NaN is a fault
        faults.append(f"largest difference {found.largest:.4f}, expected at most {limits[0]}")
    if not found.mean <= limits[1]:
        faults.append(f"mean difference {found.mean:.4f}, expected at most {limits[1]}")
    if found.flips > max_flips * found.scores:
        faults.append(f"{found.flips} of {found.scores} scores flip at {found.threshold:g}")
    if export.file.batch_rule == "token_budget" and not found.batch <= BATCH_TOLERANCE:
        faults.append(f"a row moves by {found.batch:.4f} beside padded rows")
    if faults:
        raise ExportFailed(
            f"{export.file.path}: scores differ from the original's: {'; '.join(faults)}. Look at "
            "labels, pooling, token types, cut input and padding; or accept more with --largest, "
            "--mean or --max-flips"
        )


def _mixed(rows: Sequence[Text], export: Export) -> list[int]:
    """Return the rows in an order that puts short ones beside long ones."""
    order = sorted(range(len(rows)), key=lambda place: export.tokens(rows[place]))
    groups = -(-len(order) // BATCH)
    return [place for group in range(groups) for place in order[group::groups]]


def _flat(scores: Floats, role: Role) -> Floats:
    """Return scores one after another: for an embedding the cosines of all pairs of rows."""
    if role != "embedding":
        return scores.ravel()
    unit = scores / np.linalg.norm(scores, axis=1, keepdims=True)
    products: Floats = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    return products


def load_texts(path: Path | None) -> list[Text]:
    """Return the rows of a JSON-lines file, also .gz; None gives the shipped texts.

    Raises:
        ConfigurationError: Naming file and line, and which keys a row may have.
    """
    source = path or TEXTS
    try:
        opened = gzip.open if source.suffix == ".gz" else open
        with opened(source, "rt", encoding="utf-8") as lines:
            rows = [
                _text(json.loads(line), f"{source}:{number}")
                for number, line in enumerate(islice(lines, MAX_ROWS), 1)
                if line.strip()
            ]
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(source), type(error).__name__, "JSON lines") from error
    if len(rows) < GOLDEN_ROWS:
        raise ConfigurationError(str(source), f"{len(rows)} rows", f"at least {GOLDEN_ROWS}")
    return rows


def _text(row: Any, where: str) -> Text:
    first = next((row[key] for key in FIRST if key in row), None)
    second = next((row[key] for key in SECOND if key in row), None)
    if not isinstance(first, str) or not isinstance(second, str | None):
        raise ConfigurationError(where, "no text", f"a key of {', '.join(FIRST)}")
    return Text(first, second)


def rows_for(role: Role, texts: list[Text], tokens_of: Any, max_tokens: int) -> list[Text]:
    """Return rows a role's model can read whole, long ones among them.

    Args:
        role: Pairs for `grounding`, `nli` and `causal_lm`, else every text alone.
        texts: What to make rows of.
        tokens_of: Counts a row's tokens, special tokens included.
        max_tokens: Longest row the model reads.
    """
    is_pair = role in ("grounding", "nli", "causal_lm")
    if is_pair:
        made = [row for row in texts if row.second]
    else:
        found = dict.fromkeys(part for row in texts for part in row if part)
        made = [Text(part) for part in found]
    long = list(_long_rows(made, tokens_of, max_tokens))
    rows = [row for row in made if 0 < tokens_of(row) <= max_tokens]
    step = max(1, len(rows) // (GOLDEN_ROWS - len(long)))
    spread = rows[::step]  # from all kinds of texts, which lie in the file by kind
    if len(spread) + len(long) < LEAST_ROWS:
        raise ConfigurationError(
            "--texts", f"{len(spread)} rows of at most {max_tokens} tokens", f"{LEAST_ROWS} or more"
        )
    return [*spread, *long]


def _long_rows(rows: list[Text], tokens_of: Any, max_tokens: int) -> Iterator[Text]:
    """Yield rows of several texts after another, of about the given shares of the longest row."""
    for place, share in enumerate(LONG_SHARES):
        last = rows[-1 - place]
        parts: list[str] = []
        for row in rows[7 * place :] + rows:
            longer = Text(" ".join([*parts, row.first]), last.second)
            if tokens_of(longer) > share * max_tokens:
                break
            parts.append(row.first)
        if parts:
            yield Text(" ".join(parts), last.second)
