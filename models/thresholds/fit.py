"""Chooses the shipped default thresholds from the labelled answers and reports what they cost.

Half of the question groups choose each threshold: the largest cut that flags at most the target
share of answers labelled `pass`. The other half, never looked at before, measures it. These are
defaults for people who have no labels yet: they carry no guarantee and show as `uncalibrated`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.policy.decide import crosses
from guardrail_service.policy.provenance import canonical
from guardrail_service.server.runtime import Runtime, default_thresholds_file
from guardrail_service.settings import Settings
from guardrail_service.types import Direction, Passage, Sample

ANSWERS = Path(__file__).with_name("answers.jsonl")
SAFETY_ANSWERS = Path(__file__).with_name("safety_answers.jsonl")
NEUTRAL = Path(__file__).parents[2] / "tests" / "golden" / "neutral" / "open.jsonl"
"""Answers on sensitive topics that are fit to be shown, so that their cut can be placed."""
SAFETY = ("toxicity", "bias")
"""Detectors that read the answer alone; safety and neutral answers choose their cuts, too."""
TARGETS: dict[tuple[str, str], float] = {
    ("hallucination", "hallucination"): 0.05,
    ("facts", "facts"): 0.005,
    ("groundedness", "groundedness"): 0.05,
    ("answer_relevancy_sentence", "answer_relevancy"): 0.02,
    ("context_relevancy_soft", "recall_relevancy"): 0.02,
    ("context_relevancy_soft", "precision_relevancy"): 0.02,
    ("looping", "unique_sentences"): 0.01,
    ("looping", "longest_repeated_substring"): 0.01,
    ("looping", "compression_ratio"): 0.01,
    ("toxicity", "toxicity"): 0.02,
    ("bias", "fairness_bias"): 0.02,
}
"""Share of good answers each metric may flag; together they stay near one in ten. More than half of
the answers that toxicity and bias are fitted on are neutral ones, chosen to tempt them."""

FIXED: dict[tuple[str, str], float] = {("facts", "facts"): 0.5}
"""Cuts between the steps of a rule's score; docs/facts.md says what each step means."""

MARGIN = 0.02
"""How far beyond the worst good score a cut lies that nothing else decides."""

CATCHES = {
    "hallucination": {"invented_fact", "unsupported_sentence", "off_topic", "contradiction"},
    "facts": {"invented_fact", "contradiction"},
    "groundedness": {"invented_fact", "unsupported_sentence", "off_topic", "contradiction"},
    "answer_relevancy_sentence": {"off_topic"},
    "context_relevancy_soft": {"context_irrelevant"},
    "looping": {"looping"},
    "toxicity": {"toxic"},
    "bias": {"biased"},
}
"""Reasons for a `fail` label that each detector is meant to see."""

Case = dict[str, Any]
Scored = list[tuple[Case, float]]


def wilson(x: int, n: int, z: float = 1.959964) -> list[float]:
    """Return the Wilson 95 % interval of a share x/n; [0, 1] for n = 0."""
    if n == 0:
        return [0.0, 1.0]
    share, spread = x / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return [round(max(0.0, centre - half), 4), round(min(1.0, centre + half), 4)]


def neutral(data: bytes) -> list[Case]:
    """Return neutral answers as labelled ones; each is a group of its own."""
    return [
        {"group": row["id"], "answer": row["text"], "label": "pass", "reason": None}
        for row in map(json.loads, data.splitlines())
    ]


def fits(case: Case) -> bool:
    """Return whether a case belongs to the half that chooses; whole groups stay together."""
    return hashlib.sha256(case["group"].encode()).digest()[0] % 2 == 0


def scores(cases: Sequence[Case], only: set[str]) -> dict[tuple[str, str], Scored]:
    """Return every case's score per metric; cases a detector does not score are left out.

    A case without a question is one of the safety or neutral answers.

    Args:
        cases: Labelled answers.
        only: Detectors to score.
    """
    policy = json.loads(Path(__file__).with_name("all.json").read_bytes())
    policy["evaluator_ids"] = sorted(only)
    found: dict[tuple[str, str], Scored] = {key: [] for key in TARGETS if key[0] in only}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.json"
        path.write_text(json.dumps(policy), "utf-8")
        runtime = Runtime(Settings(config=(path,)))
    try:
        for case in track(cases, "scoring", console=Console(stderr=True)):
            passages = tuple(Passage(t) for t in case.get("contexts", ()))
            sample = Sample(case["answer"], case.get("question"), passages)
            verdict = runtime.guard.check(sample, deadline_ms=math.inf)
            for detector in only if "question" in case else only.intersection(SAFETY):
                for key, metric in verdict.detectors[detector].metrics.items():
                    if (detector, key) in found:
                        found[detector, key].append((case, metric.score))
    finally:
        runtime.close()
    return found


def choose(
    good: Sequence[float], bad: Sequence[float], target: float, direction: Direction
) -> float:
    """Return a cut that flags at most `target` of the good scores.

    Where the target allows some false flags, the cut is the strictest one, half-way between two
    neighbouring scores. Where it allows none (a small target on few answers), the worst good
    score is an accident of the sample, so the cut lies half-way from it to the median of the bad
    scores beyond it; failing that, a little beyond it.
    """
    worst_first = sorted(good, reverse=direction is Direction.LOWER)
    allowed = math.floor(target * len(worst_first))
    worst = worst_first[allowed]
    if allowed and worst_first[allowed - 1] != worst:
        return round((worst_first[allowed - 1] + worst) / 2, 3)
    if caught := [score for score in bad if crosses(score, worst, direction)]:
        return round((worst + median(caught)) / 2, 3)
    return round(worst - (MARGIN if direction is Direction.HIGHER else -MARGIN), 3)


def rate(scored: Scored, cut: float, direction: Direction) -> dict[str, Any]:
    """Return how many of some scores a cut flags, with an interval."""
    flagged = sum(crosses(score, cut, direction) for _, score in scored)
    n = len(scored)
    return {
        "n": n,
        "flagged": flagged,
        "share": round(flagged / n, 4) if n else None,
        "interval95": wilson(flagged, n),
    }


def entry(detector: str, key: str, scored: Scored) -> dict[str, Any]:
    """Return one metric's threshold with its cost and its use on the held-out half."""
    direction = REGISTRY[detector].spec.metric(key).direction
    good = [(case, score) for case, score in scored if case["label"] == "pass"]
    chosen_on = [(case, score) for case, score in good if fits(case)]
    to_catch = [s for c, s in scored if fits(c) and c["reason"] in CATCHES[detector]]
    cut = FIXED.get((detector, key)) or choose(
        [s for _, s in chosen_on], to_catch, TARGETS[detector, key], direction
    )
    held_out = [(case, score) for case, score in scored if not fits(case)]
    bad = [(c, s) for c, s in held_out if c["reason"] in CATCHES[detector]]
    reasons = sorted({c["reason"] for c, _ in bad})
    return {
        "threshold": cut,
        "direction": direction.value,
        "target_false_flag": TARGETS[detector, key],
        "false_flag_fit": rate(chosen_on, cut, direction),
        "false_flag_held_out": rate(
            [p for p in held_out if p[0]["label"] == "pass"], cut, direction
        ),
        "recall_held_out": {
            reason: rate([p for p in bad if p[0]["reason"] == reason], cut, direction)
            for reason in reasons
        },
    }


def main() -> int:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="labelled answers (JSONL)")
    parser.add_argument("--safety-answers", type=Path, default=SAFETY_ANSWERS)
    parser.add_argument("--neutral", type=Path, default=NEUTRAL, help="answers fit to be shown")
    parser.add_argument("--output", type=Path, default=default_thresholds_file())
    parser.add_argument("--only", nargs="*", help="detectors to fit; the rest stays")
    arguments = parser.parse_args()
    data, safety = arguments.answers.read_bytes(), arguments.safety_answers.read_bytes()
    only = set(arguments.only or (detector for detector, _ in TARGETS))
    shown = arguments.neutral.read_bytes()
    lines = [*data.splitlines(), *(safety.splitlines() if only.intersection(SAFETY) else ())]
    cases = [json.loads(line) for line in lines]
    found = scores([*cases, *(neutral(shown) if only.intersection(SAFETY) else ())], only)
    kept = json.loads(arguments.output.read_bytes())["thresholds"] if arguments.only else {}
    thresholds: dict[str, dict[str, Any]] = {k: v for k, v in kept.items() if k not in only}
    table = Table("metric", "threshold", "false flags (fit)", "false flags (held out)", "recall")
    for (detector, key), scored in found.items():
        made = entry(detector, key, scored)
        thresholds.setdefault(detector, {})[key] = made
        fit, held = made["false_flag_fit"], made["false_flag_held_out"]
        table.add_row(
            key,
            f"{made['threshold']}",
            f"{fit['flagged']}/{fit['n']}",
            f"{held['flagged']}/{held['n']} {held['interval95']}",
            ", ".join(
                f"{reason} {r['flagged']}/{r['n']}" for reason, r in made["recall_held_out"].items()
            ),
        )
    Console(width=160).print(table)
    content = {
        "schema_version": "1",
        "data": {
            "sha256": hashlib.sha256(data).hexdigest(),
            "answers": len(data.splitlines()),
            "safety_sha256": hashlib.sha256(safety).hexdigest(),
            "safety_answers": len(safety.splitlines()),
            "neutral_sha256": hashlib.sha256(shown).hexdigest(),
            "neutral_answers": len(shown.splitlines()),
        },
        "thresholds": thresholds,
    }
    arguments.output.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    sys.stdout.write(f"wrote {len(canonical(content))} bytes of thresholds\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
