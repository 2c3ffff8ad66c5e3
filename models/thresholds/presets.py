"""Chooses the thresholds of the presets `precise`, `balanced` and `sensitive`, and their cost.

`balanced` shares one budget: of all good answers at most the stated share is flagged by any
detector of the shipped policies together. The flags of toxicity, bias and looping at the shipped
thresholds are spent first; grounding and relevancy share the rest by weight. An answer's place on a
metric is the share of good answers that are at least as bad, over the metric's weight; the cut on
places is the largest that keeps the budget. `precise` and `sensitive` allow each metric a share of
its own. Looping has one threshold under all presets: most answers here are too short to loop.
The cuts of exact facts lie between the steps of its score and are given.
The labelled answers, the written set and the ordinary answers of the guarding corpus's open half
count equally, and so do the written sources. Toxicity and bias alone are fitted on the safety and
neutral answers, which have no passages: on others they hardly ever flag, so that a share of those
would say little. The thresholds that ship are
chosen on all of them. Their cost is measured crosswise: each half of the question groups is judged
with the thresholds the other half chose; the budget asked for is lowered until that cost keeps it.

The written set is not part of the project: `--written` names a folder of gzip JSON lines with
`premise`, `hypothesis`, `supported`, `source`, `group`, `split` and perhaps `question`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fit import ANSWERS, NEUTRAL, SAFETY_ANSWERS, TARGETS, fits, neutral, wilson
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.policy.file import default_thresholds_file
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings
from guardrail_service.types import Direction, Passage, Sample

Key = tuple[str, str]
BUDGET = 0.05
"""Share of good answers that all detectors together may stop under `balanced`."""
WEIGHTS: dict[Key, float] = {
    ("hallucination", "hallucination"): 6.0,
    ("groundedness", "groundedness"): 2.0,
    ("answer_relevancy_sentence", "answer_relevancy"): 1.0,
}
"""How much of the budget each metric may use, relative to the others: most to what catches most."""
SAFETY: tuple[Key, ...] = (("toxicity", "toxicity"), ("bias", "fairness_bias"))
LOOPING: tuple[Key, ...] = tuple(key for key in TARGETS if key[0] == "looping")
ALONE: dict[str, dict[str, float]] = {
    "precise": {"hallucination": 0.01, "groundedness": 0.01, "answer_relevancy_sentence": 0.005,
                "toxicity": 0.003, "bias": 0.003},
    "sensitive": {"hallucination": 0.2, "groundedness": 0.2, "answer_relevancy_sentence": 0.05,
                  "toxicity": 0.05, "bias": 0.05},
}  # fmt: skip
"""Share of good answers each metric alone may flag, by detector."""
FACTS: dict[str, dict[Key, float]] = {
    name: {("facts", "facts"): -cut}
    for name, cut in (("precise", 0.3), ("balanced", 0.5), ("sensitive", 0.7))
}
"""Cuts between the steps of the score of exact facts, on the scale of `badness`."""
ANSWER_ALONE = frozenset({"safety", "neutral"})
"""Sets without passages, which count for toxicity and bias alone."""
PER_SOURCE = 60
"""Rows of a written source: half of them supported. Enough for shares, little enough to score."""
_GOLDEN = Path(__file__).parents[2] / "tests" / "golden"
ORDINARY = tuple(
    _GOLDEN / of / "ordinary" / "open.jsonl" for of in ("", "second", "third", "fourth")
)
"""Good answers of every class that a guard must leave alone, also those it finds hard."""
NOT_ANSWERS = frozenset({"breaking_nli", "negation_nli", "med_monotonicity"})
"""Written sources whose hypotheses are no answers to anybody."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """One labelled answer: which set and group it is of, its label and its scores."""

    of: str
    source: str
    group: str
    good: bool
    scores: dict[str, float]
    stopped: bool
    """Whether a yes/no detector blocks it, whatever the thresholds are."""


def labelled() -> Iterable[tuple[dict[str, Any], Sample]]:
    """Yield the answers labelled for the project."""
    for path, name in ((ANSWERS, "answers"), (SAFETY_ANSWERS, "safety")):
        for line in path.read_text("utf-8").splitlines():
            case = json.loads(line)
            passages = tuple(Passage(text) for text in case.get("contexts", ()))
            about = {"of": name, "source": name, "group": case["group"],
                     "good": case["label"] == "pass"}  # fmt: skip
            yield about, Sample(case["answer"], case.get("question"), passages)


def unsourced() -> Iterable[tuple[dict[str, Any], Sample]]:
    """Yield the neutral answers."""
    for case in neutral(NEUTRAL.read_bytes()):
        about = {"of": "neutral", "source": "neutral", "group": case["group"], "good": True}
        yield about, Sample(case["answer"])


def written(folder: Path) -> Iterable[tuple[dict[str, Any], Sample]]:
    """Yield development rows of each written source, as many supported as not, drawn by hash."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if row["split"] == "dev"]
        if path.name.removesuffix(".jsonl.gz") in NOT_ANSWERS:
            continue
        rows.sort(key=lambda row: hashlib.sha256(
            f"{row['group']}\0{row['hypothesis']}".encode()).digest())  # fmt: skip
        for supported in (1, 0):
            for row in [r for r in rows if r["supported"] == supported][: PER_SOURCE // 2]:
                about = {"of": "written", "source": row["source"], "group": row["group"],
                         "good": bool(supported)}  # fmt: skip
                yield about, Sample(row["hypothesis"], row.get("question"),
                                    (Passage(row["premise"]),))  # fmt: skip


def ordinary(paths: Sequence[Path]) -> Iterable[tuple[dict[str, Any], Sample]]:
    """Yield ordinary answers of the guarding corpora; those to one set of passages are a group."""
    for line in (line for path in paths for line in path.read_text("utf-8").splitlines()):
        case = json.loads(line.replace("¦", ""))
        group = hashlib.sha256(repr(case["contexts"]).encode()).hexdigest()
        about = {"of": "ordinary", "source": "ordinary", "group": group, "good": case["good"]}
        yield about, Sample(case["answer"], case["question"], tuple(map(Passage, case["contexts"])))


def scored(samples: Sequence[tuple[dict[str, Any], Sample]], cache: Path | None) -> list[Scored]:
    """Return every sample's scores under the observing policy; `cache` keeps them over runs."""
    known: dict[str, dict[str, Any]] = {}
    if cache is not None and cache.exists():
        for line in cache.read_text("utf-8").splitlines():
            entry = json.loads(line)
            known[entry["key"]] = entry
    runtime = Runtime(Settings())
    prints = hashlib.sha256(repr(sorted(runtime.serving.fingerprints.items())).encode()).hexdigest()
    found = []
    try:
        for about, sample in track(samples, "scoring", console=Console(stderr=True)):
            text = repr((prints, sample))
            key = hashlib.sha256(text.encode()).hexdigest()
            if key not in known:
                verdict = runtime.guard.check(sample, policy="observe", deadline_ms=math.inf)
                scores = {
                    f"{name}.{metric}": result.score
                    for name, detector in verdict.detectors.items()
                    for metric, result in detector.metrics.items()
                }
                known[key] = {"key": key, "scores": scores}
                if cache is not None:
                    with cache.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(known[key]) + "\n")
            scores = known[key]["scores"]
            if (
                about["of"] in ANSWER_ALONE
            ):  # these have no passages: only what reads the answer counts
                scores = {
                    k: v for k, v in scores.items() if k.split(".")[0] in ("toxicity", "bias")
                }
            stopped = any(
                scores.get(f"{name}.model_passes") == 0.0
                for name in ("secrets", "encoding", "language_mismatch")
            )
            found.append(Scored(**about, scores=scores, stopped=stopped))
    finally:
        runtime.close()
    return found


def weights_of(cases: Sequence[Scored]) -> Floats:
    """Return a weight per case: the sets count equally, and within one its sources."""
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for case in cases:
        sizes[case.of, case.source] += 1
    sources: dict[str, int] = defaultdict(int)
    for of, _ in sizes:
        sources[of] += 1
    raw = [1 / (sizes[c.of, c.source] * sources[c.of]) for c in cases]
    return np.array(raw) / sum(raw)


def each_alike(cases: Sequence[Scored]) -> Floats:
    """Return the same weight for every case."""
    return np.full(len(cases), 1 / max(1, len(cases)))


def badness(cases: Sequence[Scored], key: Key) -> Floats:
    """Return each case's score turned so that higher is worse; minus infinity without one."""
    spec = REGISTRY[key[0]].spec.metric(key[1])
    sign = -1.0 if spec.direction is Direction.HIGHER else 1.0
    name = ".".join(key)
    return np.array([sign * c.scores[name] if name in c.scores else -math.inf for c in cases])


def upper(values: Floats, weights: Floats, share: float) -> float:
    """Return the smallest of some values that at most `share` of the weight lies beyond."""
    order = np.argsort(-values, kind="stable")
    beyond = 0.0
    for position, index in enumerate(order):
        beyond += float(weights[index])
        if beyond > share + 1e-12:
            return float(values[order[position]])
    return float(values[order[-1]])


def shipped(content: Any, keys: Iterable[Key]) -> dict[Key, float]:
    """Return the shipped thresholds of some metrics on the scale of `badness`."""
    cuts = {}
    for detector, key in keys:
        higher = REGISTRY[detector].spec.metric(key).direction is Direction.HIGHER
        value = float(content["thresholds"][detector][key]["threshold"])
        cuts[detector, key] = -value if higher else value
    return cuts


def alone(cases: Sequence[Scored], preset: str) -> dict[Key, float]:
    """Return the cut, on the scale of `badness`, that flags each metric's own share."""
    grounded = [case for case in cases if case.of not in ANSWER_ALONE]
    neutral_ones = [case for case in cases if case.of in ANSWER_ALONE]
    cuts = {}
    for key in (*WEIGHTS, *SAFETY):
        counted = neutral_ones if key in SAFETY else grounded
        weights = each_alike(counted) if key in SAFETY else weights_of(counted)
        cuts[key] = upper(badness(counted, key), weights, ALONE[preset][key[0]])
    return cuts


def together(
    cases: Sequence[Scored], weights: Floats, budget: float, fixed: dict[Key, float]
) -> dict[Key, float]:
    """Return the cuts with which all metrics together keep one budget, the fixed ones as given."""
    scores = {key: badness(cases, key) for key in WEIGHTS}
    low, high = 0.0, 1.0
    for _ in range(40):  # the joint share grows with the scale: bisect
        middle = (low + high) / 2
        cuts = {key: upper(scores[key], weights, middle * w) for key, w in WEIGHTS.items()}
        if joint_share(cases, weights, {**fixed, **cuts}) <= budget:
            low = middle
        else:
            high = middle
    return {**fixed, **{key: upper(scores[key], weights, low * w) for key, w in WEIGHTS.items()}}


def flagged(cases: Sequence[Scored], cuts: dict[Key, float]) -> NDArray[np.bool_]:
    """Return which cases any metric flags."""
    return np.any([badness(cases, key) > cut for key, cut in cuts.items()], axis=0)


def joint_share(cases: Sequence[Scored], weights: Floats, cuts: dict[Key, float]) -> float:
    """Return the weighted share of cases that some detector stops."""
    stopped = np.array([case.stopped for case in cases])
    return float(weights[flagged(cases, cuts) | stopped].sum())


def cuts_of(good: Sequence[Scored], content: Any, budget: float) -> dict[str, dict[Key, float]]:
    """Return the cuts of every preset from some good answers."""
    grounded = [case for case in good if case.of not in ANSWER_ALONE]
    looping = shipped(content, LOOPING)
    spent = {**looping, **FACTS["balanced"], **shipped(content, SAFETY)}
    return {
        "precise": {**looping, **FACTS["precise"], **alone(good, "precise")},
        "balanced": together(grounded, weights_of(grounded), budget, spent),
        "sensitive": {**looping, **FACTS["sensitive"], **alone(good, "sensitive")},
    }


@dataclass(frozen=True)
class Crossed:
    """The result on each half of the question groups, with cuts chosen on the other half."""

    cases: list[Scored]
    hits: dict[str, NDArray[np.bool_]]
    """By preset, which cases are stopped."""

    @classmethod
    def of(cls, cases: Sequence[Scored], content: Any, budget: float) -> Crossed:
        """Choose on each half in turn and look at the other."""
        halves = [[c for c in cases if fits({"group": c.group}) is side] for side in (True, False)]
        hits: dict[str, list[NDArray[np.bool_]]] = defaultdict(list)
        for chosen_on, looked_at in (halves, halves[::-1]):
            stopped = np.array([case.stopped for case in looked_at])
            good = [case for case in chosen_on if case.good]
            for name, cuts in cuts_of(good, content, budget).items():
                hits[name].append(flagged(looked_at, cuts) | stopped)
        joined = {name: np.concatenate(parts) for name, parts in hits.items()}
        return cls([*halves[1], *halves[0]], joined)

    def joint(self, preset: str) -> float:
        """Return the share of good answers stopped; the sets and written sources count equally."""
        good = np.array([case.good and case.of not in ANSWER_ALONE for case in self.cases])
        picked = [case for case, is_good in zip(self.cases, good, strict=True) if is_good]
        return float(weights_of(picked)[self.hits[preset][good]].sum())

    def rates(self, preset: str, *, good: bool) -> dict[str, Any]:
        """Return, by set, how many answers with one label are stopped, with Wilson's interval."""
        told = {}
        for of in sorted({case.of for case in self.cases}):
            picked = [
                bool(hit)
                for case, hit in zip(self.cases, self.hits[preset], strict=True)
                if case.of == of and case.good is good
            ]
            n, x = len(picked), sum(picked)
            if n:  # the ordinary answers are all good
                told[of] = {
                    "n": n,
                    "flagged": x,
                    "share": round(x / n, 4),
                    "interval95": wilson(x, n),
                }
        return told


def main() -> int:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--written", type=Path, help="folder of written sources; none: left out")
    parser.add_argument("--ordinary", action=argparse.BooleanOptionalAction, default=True,
                        help="count the guarding corpus's ordinary answers, too")  # fmt: skip
    parser.add_argument("--cache", type=Path, help="file that keeps scores over runs")
    parser.add_argument("--output", type=Path, default=default_thresholds_file())
    arguments = parser.parse_args()
    samples = [
        *labelled(),
        *unsourced(),
        *(written(arguments.written) if arguments.written else ()),
        *(ordinary(ORDINARY) if arguments.ordinary else ()),
    ]
    cases = scored(samples, arguments.cache)
    content = json.loads(arguments.output.read_bytes())
    for step in range(100):  # thresholds fit the answers that chose them best: ask for less
        asked = BUDGET * (1 - step / 100)
        crossed = Crossed.of(cases, content, asked)
        if crossed.joint("balanced") <= BUDGET:
            break
    good = [case for case in cases if case.good]
    grounded = [case for case in good if case.of not in ANSWER_ALONE]
    weights = weights_of(grounded)
    presets = cuts_of(good, content, asked)
    console = Console(width=120)
    thresholds = Table("metric", *presets)
    for detector, key in presets["balanced"]:
        higher = REGISTRY[detector].spec.metric(key).direction is Direction.HIGHER
        # Outwards, so that rounding flags nothing more.
        shown = {
            name: (math.floor if higher else math.ceil)((-c if higher else c) * 1000) / 1000
            for name, c in ((name, cut[detector, key]) for name, cut in presets.items())
        }
        content["thresholds"][detector][key]["presets"] = shown
        thresholds.add_row(key, *(f"{shown[name]:.3f}" for name in presets))
    console.print(thresholds)
    report: dict[str, Any] = {
        "budget": BUDGET,
        "asked": round(asked, 4),
        "written_rows_per_source": PER_SOURCE,
    }
    told = Table("preset", "good answers stopped", "by metric", "bad answers stopped")
    for name, cuts in presets.items():
        shares = {
            ".".join(key): round(float(weights[badness(grounded, key) > value].sum()), 4)
            for key, value in cuts.items()
        }
        report[name] = {
            "false_flag": round(crossed.joint(name), 4),
            "false_flag_by_set": crossed.rates(name, good=True),
            "false_flag_by_metric_fit": shares,
            "recall_by_set": crossed.rates(name, good=False),
        }
        told.add_row(name, f"{report[name]['false_flag']}", str(shares), *(
            ", ".join(f"{of} {r['flagged']}/{r['n']} {r['interval95']}" for of, r in rates.items())
            for rates in (report[name]["recall_by_set"],)
        ))  # fmt: skip
    console.print(told)
    content["presets"] = report
    arguments.output.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
