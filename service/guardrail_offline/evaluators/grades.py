"""The agreement of evaluators with labels of people, as measured once and shipped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from guardrail_offline.evaluators.catalogue import EvaluatorSpec

WORDS: tuple[tuple[float, str], ...] = ((0.8, "good"), (0.7, "fair"), (0.6, "weak"))
"""By the lower end of the area's interval; below the last one it is `poor`, close to chance."""
POOR, UNKNOWN = "poor", "not measured"


@cache
def measured() -> Mapping[str, Any]:
    """Return the measurement that ships: sets, grades by evaluator, and why others have none."""
    text = files("guardrail_offline.evaluators").joinpath("grades.json").read_text("utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def grade_of(spec: EvaluatorSpec) -> dict[str, Any]:
    """Return an evaluator's grade: a word, what it stands on, and where there is none why.

    The first metric that was measured speaks for the evaluator.
    """
    found = measured()
    metrics = found["grades"].get(spec.id) if spec.backend != "judge" else None
    built = _by_construction(spec)
    if not metrics:
        return {"grade": UNKNOWN, "reason": _why_unknown(spec), **built}
    first = next(key for key in spec.keys if key in metrics)
    names = sorted({name for one in metrics.values() for name in one["sets"]})
    return {
        "grade": word(metrics[first]["area_95"][0]),
        "metric": first,
        "metrics": metrics,
        "measured": found["measured"],
        "pack": "embedded",
        "sets": {name: found["sets"][name] for name in names},
        **built,
    }


def _by_construction(spec: EvaluatorSpec) -> dict[str, Any]:
    """Return how an evaluator tells answers that are right by construction, where it was tried."""
    found = measured().get("by_construction", {})
    metrics = found.get("evaluators", {}).get(spec.id)
    if not metrics or spec.backend == "judge":
        return {}
    about = {key: found[key] for key in ("measured", "answers", "right", "groups")}
    return {"by_construction": {**about, "metrics": metrics}}


def word(area: float) -> str:
    """Return a word for the lower end of an area's interval."""
    return next((name for least, name in WORDS if area >= least), POOR)


def grade_line(spec: EvaluatorSpec) -> str:
    """Return an evaluator's grade as one line for people."""
    found = grade_of(spec)
    built = _constructed_line(spec, found)
    if found["grade"] == UNKNOWN:
        return f"{UNKNOWN}: {found['reason']}{built}"
    one = found["metrics"][found["metric"]]
    kinds = sorted({found["sets"][name]["labels"] for name in one["sets"]})
    return (
        f"{found['grade']}: area {_between(one, 'area')}, kappa {_kappa(one)}; "
        f"n {one['n']}, {', '.join(one['sets'])} (labels: {', '.join(kinds)}), "
        f"{found['measured']}{built}"
    )


def _constructed_line(spec: EvaluatorSpec, found: Mapping[str, Any]) -> str:
    built = found.get("by_construction")
    if built is None:
        return ""
    one = next(built["metrics"][key] for key in spec.keys if key in built["metrics"])
    shares = [
        f"{name} {_between(one, name)}" for name in ("precision", "recall") if one[name] is not None
    ]
    area = [] if one["area"] is None else [f"area {one['area']:.2f}"]
    return f"; of {built['answers']} answers true by construction: {', '.join([*area, *shares])}"


def _kappa(one: Mapping[str, Any]) -> str:
    if one["kappa"] is None:
        return "unknown, for want of a threshold"
    return f"{_between(one, 'kappa')} at {one['threshold']:g}"


def _between(one: Mapping[str, Any], key: str) -> str:
    low, high = one[f"{key}_95"]
    return f"{one[key]:.2f} ({low:.2f} to {high:.2f})"


def _why_unknown(spec: EvaluatorSpec) -> str:
    if spec.backend == "judge":
        return "it depends on the judge; compare it with labels of people"
    reasons: Mapping[str, str] = measured()["not_measured"]
    if spec.id in reasons:
        return reasons[spec.id]
    if spec.needs_judge:
        return "it declines without a judge"
    if "causal_lm" in spec.roles:
        return "the embedded pack has no model for it"
    if not spec.surrogate and not spec.roles:
        return "it follows a rule, and stands for no other number"
    return "no labels at hand"


_EXPLAINED = (
    "Where labels are at hand, each metric was compared with them. The area under the ROC curve "
    "says how well it ranks (0.5 is chance), Cohen's kappa how well it decides at its threshold (0 "
    "is chance). Every set counts equally; 95 % intervals draw whole groups anew, such as all "
    "answers about one passage. The word goes by the lower end of the area: "
    + ", ".join(f"{name} from {least:g}" for least, name in WORDS)
    + f", below that {POOR}. Half of each set is good, so kappa is that of an even mix. "
)


def grades_page(specs: Iterable[EvaluatorSpec]) -> list[str]:
    """Return the part of the evaluators' page about grades, as lines."""
    found = measured()
    lines = [
        "",
        "## Grades",
        "",
        _EXPLAINED + f"Measured on {found['measured']} with the embedded pack and shipped "
        f"thresholds, at most {found['rows_per_set']} rows of a set: `{found['command']}`.",
        "",
        "| metric | area | kappa | at | n, without a number | sets (area, kappa) |",
        "|---|---|---|---|---|---|",
    ]
    known = {spec.id for spec in specs}
    for evaluator in sorted(known & found["grades"].keys()):
        for metric, one in found["grades"][evaluator].items():
            lines.append(_line(f"{evaluator}.{metric}", one))
    lines += ["", "| set | good means | labels | rows (good) | groups | seen before |"]
    lines.append("|---|---|---|---|---|---|")
    for name, one in found["sets"].items():
        rows = f"{one['rows']} ({one['good_rows']})"
        cells = (name, one["good"], one["labels"], rows, one["groups"], one["seen_before"])
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += [
        "",
        "Labels of `people`: they judged the text. `constructed`: good and bad texts were",
    ]
    lines += ["written to be so. `generated`: a generator placed what is to be found."]
    lines += _constructed_page(found.get("by_construction"))
    lines += ["", "Not measured:", ""]
    lines += [f"- `{name}`: {why}" for name, why in found["not_measured"].items()]
    return lines


def _line(path: str, one: Mapping[str, Any]) -> str:
    kappa, cut = ("-", "-") if one["kappa"] is None else (_between(one, "kappa"), one["threshold"])
    sets = ", ".join(
        f"{name} {each['area']:.2f}" + ("" if each["kappa"] is None else f" {each['kappa']:.2f}")
        for name, each in one["sets"].items()
    )
    shown = cut if isinstance(cut, str) else f"{cut:g}"
    n = f"{one['n']}, {one['unscored']}"
    return f"| `{path}` | {_between(one, 'area')} | {kappa} | {shown} | {n} | {sets} |"


def _constructed_page(built: Mapping[str, Any] | None) -> list[str]:
    """Return the table of what is right by construction, as lines."""
    if built is None:
        return []
    lines = [
        "",
        "### Right by construction",
        "",
        f"{built['answers']} answers of {len(built['systems'])} systems of examples/grammar, of "
        f"which {built['right']} are right, to {built['groups']} questions from a database, each "
        "in six wordings ([grammar.md](grammar.md#study)). Precision is the share of right answers "
        "among those that a metric calls right, recall the share of right answers that it calls "
        f"right, with exact 95 % intervals: `{built['command']}`, {built['measured']}. Whoever "
        f"calls all answers right has precision {built['right'] / built['answers']:.2f}.",
        "",
        "| metric | at | precision | recall | area | unscored |",
        "|---|---|---|---|---|---|",
    ]
    for evaluator, metrics in sorted(built["evaluators"].items()):
        for key, one in metrics.items():
            cut = "-" if one["threshold"] is None else f"{one['threshold']:g}"
            shares = " | ".join(
                "-" if one[name] is None else _between(one, name)
                for name in ("precision", "recall")
            )
            area = "-" if one["area"] is None else f"{one['area']:.2f}"
            name = f"`{evaluator}.{key}`"
            lines.append(f"| {name} | {cut} | {shares} | {area} | {one['unscored']} |")
    return lines
