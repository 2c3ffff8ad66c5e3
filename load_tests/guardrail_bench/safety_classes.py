"""Counts what toxicity and bias flag of the project's own texts, by class and preset.

The functional suite (`safety_functional.jsonl`) and the neutral answers (`neutral/open.jsonl`) of a
folder are scored once; each preset's shipped threshold then says what it flags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from guardrail_bench.output import markdown_table, shown
from guardrail_bench.safety_quality import GATING, TASKS, ScoredText, read, score
from guardrail_bench.server import serving_only
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.policy.decide import crosses
from guardrail_service.policy.file import default_thresholds_file, load_presets

PART = "bench quality safety"
FILES = ("safety_functional.jsonl", "neutral/open.jsonl")
MOST_FLAGGED = 0.15
"""Of a harmless class: the bar."""
LEAST_CAUGHT = 0.75
"""Of the classes in `MUST_CATCH`."""
MUST_CATCH = frozenset({"threat", "disguised", "leetspeak", "spacing", "zero_width", "homoglyphs"})
"""Threats and disguised insults."""


@dataclass(frozen=True)
class ClassCount:
    """The texts of a class that each preset flags, those labelled alike for one detector."""

    file: str
    name: str
    task: str
    is_bad: bool
    texts: int
    flagged: dict[str, int]

    @property
    def met(self) -> bool | None:
        """Return whether the bar for `balanced` is met; None where there is none."""
        share = self.flagged["balanced"] / self.texts
        if not self.is_bad:
            return share <= MOST_FLAGGED
        return share >= LEAST_CAUGHT if self.name in MUST_CATCH else None


def run(folder: Path) -> list[ClassCount]:
    """Score the texts of both files and count.

    Raises:
        InputError: If a file is missing or a line is no record.
    """
    found: list[ClassCount] = []
    presets = load_presets(default_thresholds_file())
    with serving_only(TASKS, None) as runtime:
        for file in FILES:
            for task in TASKS:
                records = read(task, folder / file)[0]
                labelled = [record for record in records if GATING[task] in record.labels]
                cuts = {name: cut[task][GATING[task]] for name, cut in presets.items()}
                found += counts(file, task, score(runtime, task, labelled), cuts)
    return found


def counts(
    file: str, task: str, scored: Sequence[ScoredText], cuts: dict[str, float]
) -> list[ClassCount]:
    """Return one count for each class and label, in the order of the texts."""
    metric = GATING[task]
    direction = REGISTRY[task].spec.metric(metric).direction
    kinds: dict[tuple[str, bool], list[float]] = {}
    for one in scored:
        key = (one.record.slices.get("class", "-"), one.record.labels[metric])
        kinds.setdefault(key, []).append(one.scores[metric])
    return [
        ClassCount(
            file, name, task, is_bad, len(values),
            {p: sum(crosses(value, cut, direction) for value in values) for p, cut in cuts.items()},
        )
        for (name, is_bad), values in kinds.items()
    ]  # fmt: skip


def markdown(found: Sequence[ClassCount]) -> str:
    """Return a table for each file and label, and which bars are missed."""
    parts = []
    for file in FILES:
        for is_bad in (False, True):
            rows = [one for one in found if one.file == file and one.is_bad is is_bad]
            if rows:
                parts.append(_table(file, rows, is_bad=is_bad))
    bars = [one for one in found if one.met is not None]
    missed = [f"{one.name} ({one.task})" for one in bars if one.met is False]
    met = f"{len(bars) - len(missed)} of {len(bars)} bars are met."
    parts.append(f"{met} Missed: {', '.join(missed) or 'none'}.")
    return "\n\n".join(parts)


def render(found: Sequence[ClassCount]) -> Table:
    """Return every count in one table."""
    presets = list(found[0].flagged)
    table = Table("file", "class", "detector", "bad", "texts", *presets, "bar")
    for one in found:
        cells = [str(one.flagged[preset]) for preset in presets]
        bar = "-" if one.met is None else shown(one.met)
        table.add_row(one.file, one.name, one.task, str(one.is_bad), str(one.texts), *cells, bar)
    return table


def _table(file: str, rows: Sequence[ClassCount], *, is_bad: bool) -> str:
    presets = list(rows[0].flagged)
    names = sorted({one.name for one in rows})
    total = sum(one.texts for one in {one.name: one for one in rows}.values())
    cells = []
    for name in names:
        own = {one.task: one for one in rows if one.name == name}
        line = [name, str(max(one.texts for one in own.values()))]
        line += [_shares(own[task], presets) if task in own else "-" for task in TASKS]
        states = [one.met for one in own.values() if one.met is not None]
        cells.append([*line, shown(all(states)) if states else "-"])
    heads = ["class", "texts", *(f"{task}: {' / '.join(presets)}" for task in TASKS), "bar"]
    about = f"Flagged of {total} harmless texts of `{file}`; the bar is at most {MOST_FLAGGED:.0%}"
    if is_bad:
        about = f"Caught of {total} bad texts of `{file}`; the bar is at least {LEAST_CAUGHT:.0%}"
    return f"{about} under `balanced`:\n\n{markdown_table(heads, cells)}"


def _shares(one: ClassCount, presets: Sequence[str]) -> str:
    return " / ".join(f"{one.flagged[preset] / one.texts:.0%}" for preset in presets)
