"""Groups of equivalent questions over a run: `grammar.json`, its table, and its problems."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail_offline.datasets.cases import Model
from guardrail_offline.evaluators.shared.grammar_scores import (
    BLAMES,
    DRAWS,
    SEED,
    GroupScores,
    cluster_intervals,
    group_scores,
)
from guardrail_offline.runs.leaderboards import in_cell
from guardrail_offline.runs.model_figures import KEPT_CASES
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import is_unanswered

ID = "grammar"
GRAMMAR = "grammar.json"
Counts = tuple[int, int]
"""Right answers, answers."""


@dataclass
class _ModelGroups:
    """One model's answers: by group and style how many are right, and had what they need."""

    answers: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(dict))
    had: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    templates: dict[str, str] = field(default_factory=dict)
    levels: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    blame: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    keys: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    unknown: list[int] = field(default_factory=lambda: [0, 0])
    cases: int = 0
    unanswered: int = 0


class GrammarGroups:
    """Filled by question: all cases of one group come together."""

    def __init__(self) -> None:
        self._models: dict[str, _ModelGroups] = defaultdict(_ModelGroups)

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Count the generated cases of one question."""
        for scored in group:
            result = scored.results.get(ID)
            if result is None or scored.case.has_other_answer:
                continue
            primary = result.scores["correct"]
            if primary.reason == "not_generated":
                continue
            found = self._models[scored.case.model]
            found.cases += 1
            found.unanswered += is_unanswered(primary.reason)
            if (
                "unknown" in result.details
                and (value := result.scores["admits_unknown"].value) is not None
            ):
                found.unknown[0] += int(value)
                found.unknown[1] += 1
            if "right" in result.details:
                _count(found, scored.case.key, result.details)

    def as_json(self, models: Sequence[Model]) -> dict[str, Any] | None:
        """Return the content of `grammar.json`, or None if there is no generated case."""
        if not self._models:
            return None
        names = {model.key: model.title for model in models}
        return {
            "intervals": {"level": 0.95, "draws": DRAWS, "seed": SEED, "drawn": "groups"},
            "models": [
                {"model": key, "name": names.get(key, key), **_model_json(found)}
                for key, found in sorted(self._models.items())
            ],
        }


def _count(found: _ModelGroups, key: str, details: Mapping[str, Any]) -> None:
    right, group = bool(details["right"]), str(details["group"])
    counts = found.answers[group].setdefault(str(details["style"]), [0, 0])
    counts[0] += right
    counts[1] += 1
    had = right or details.get("blame") == "language_model"
    there = details["retrieved"] if details.get("retrieved_by") == "ids" else had
    found.had[group][0] += bool(there)
    found.had[group][1] += 1
    found.templates[group] = str(details["template"])
    found.levels[str(details["level"])][not right] += 1
    if not right:
        blame = str(details["blame"])
        found.blame[str(details["group_is"])][blame] += 1
        if len(found.keys[blame]) < KEPT_CASES:
            found.keys[blame].append(key)


def _model_json(found: _ModelGroups) -> dict[str, Any]:
    known = {"cases": found.cases, "unanswered": found.unanswered}
    unknown = {"cases": found.unknown[1], "admitted": found.unknown[0]}
    if not found.answers:
        return {**known, "unknown": unknown, "groups": 0}
    groups = {group: _sum(styles.values()) for group, styles in found.answers.items()}
    outside = {group for group, (right, _) in groups.items() if right}
    return {
        **known,
        "unknown": unknown,
        "groups": len(groups),
        **_scores(groups, outside),
        "retrieval": _scores(
            had := {group: (n, total) for group, (n, total) in found.had.items()},
            {group for group, (n, _) in had.items() if n},
        ),
        "levels": {
            level: {"right": right, "wrong": wrong}
            for level, (right, wrong) in sorted(found.levels.items())
        },
        "blame": {
            kind: {blame: found.blame[kind][blame] for blame in BLAMES}
            for kind in ("non_robust", "gap")
        },
        "row_keys": {blame: found.keys[blame] for blame in BLAMES if found.keys[blame]},
        "styles": list(_parts(_by_style(found), outside)),
        "templates": list(_by_template(found, groups, outside)),
    }


def _sum(counts: Iterable[Sequence[int]]) -> Counts:
    rows = list(counts)
    return sum(row[0] for row in rows), sum(row[1] for row in rows)


def _scores(groups: Mapping[str, Counts], outside: set[str]) -> dict[str, Any]:
    """Return the scores of groups with intervals; the identity is checked on the way."""
    found = group_scores(list(groups.values()))
    rows = [(right, count, group in outside) for group, (right, count) in sorted(groups.items())]
    return {**_plain(found), "intervals95": dict(cluster_intervals(rows))}


def _plain(found: GroupScores) -> dict[str, Any]:
    return {**found._asdict(), "knowledge_accuracy": found.knowledge_accuracy}


def _by_style(found: _ModelGroups) -> dict[str, dict[str, Counts]]:
    styles: dict[str, dict[str, Counts]] = defaultdict(dict)
    for group, by_style in found.answers.items():
        for style, (right, count) in by_style.items():
            styles[style][group] = right, count
    return styles


def _parts(
    styles: Mapping[str, Mapping[str, Counts]], outside: set[str]
) -> Iterator[dict[str, Any]]:
    """Yield each style's scores.

    `robustness` is over the questions that some wording of any style gets right. `own` takes the
    style's cases for themselves, with its own gaps: with one text of a question it is 1 or there
    is none. `balanced` is over the questions that every style has equally often.
    """
    common = _common(styles)
    for style, groups in sorted(styles.items()):
        right, count = _sum(groups.values())
        inside = _sum(counts for group, counts in groups.items() if group in outside)
        rows = [(r, n, group in outside) for group, (r, n) in sorted(groups.items())]
        intervals = cluster_intervals(rows)
        balanced = {group: counts for group, counts in groups.items() if group in common}
        yield {
            "style": style,
            "groups": len(groups),
            "cases": count,
            "accuracy": right / count,
            "robustness": inside[0] / inside[1] if inside[1] else None,
            "intervals95": {name: intervals[name] for name in ("accuracy", "robustness")},
            "own": _plain(group_scores(list(groups.values()))),
            "balanced": _plain(group_scores(list(balanced.values()))) if balanced else None,
        }


def _common(styles: Mapping[str, Mapping[str, Counts]]) -> set[str]:
    """Return the questions that every style has equally often."""
    shared = set.intersection(*(set(groups) for groups in styles.values()))
    return {group for group in shared if len({one[group][1] for one in styles.values()}) == 1}


def _by_template(
    found: _ModelGroups, groups: Mapping[str, Counts], outside: set[str]
) -> Iterator[dict[str, Any]]:
    templates: dict[str, dict[str, Counts]] = defaultdict(dict)
    for group, counts in groups.items():
        templates[found.templates[group]][group] = counts
    for name, inside in sorted(templates.items()):
        scores = group_scores(list(inside.values()))
        yield {"template": name, "groups": len(inside), **_plain(scores)}


def grammar_markdown(content: Mapping[str, Any]) -> str:
    """Return tables of what `grammar.json` holds: models, styles, and who is to blame."""
    heads = ("model", "groups", "accuracy", "robustness", "gap", "robust", "non-robust",
             "knowledge accuracy", "retrieval robustness")  # fmt: skip
    lines = ["## Groups of equivalent questions", "", _ABOUT, "", *_head(heads)]
    judged = [one for one in content["models"] if one["groups"]]
    for one in judged:
        values = [
            f"{_number(one['accuracy'])} {_ends(one, 'accuracy')}",
            f"{_number(one['robustness'])} {_ends(one, 'robustness')}",
            str(one["gap"]),
            str(one["robust"]),
            str(one["non_robust"]),
            f"{_number(one['knowledge_accuracy'])} {_ends(one, 'knowledge_accuracy')}",
            f"{_number(one['retrieval']['robustness'])} {_ends(one['retrieval'], 'robustness')}",
        ]
        lines.append(_row([in_cell(one["name"]), str(one["groups"]), *values]))
    lines += ["", *_head(("model", "style", "cases", "accuracy", "robustness"))]
    for one in judged:
        for style in one["styles"]:
            values = [f"{_number(style[k])} {_ends(style, k)}" for k in ("accuracy", "robustness")]
            lines.append(_row([in_cell(one["name"]), style["style"], str(style["cases"]), *values]))
    lines += ["", *_head(("model", "wrong answers in", *BLAMES))]
    for one in judged:
        for kind, counts in one["blame"].items():
            cells = [str(counts[blame]) for blame in BLAMES]
            lines.append(_row([in_cell(one["name"]), kind.replace("_", "-"), *cells]))
    return "\n".join(lines) + "\n"


_ABOUT = (
    "A gap is a question that is right in no wording, a robust one is right in all. Robustness is "
    "the share of right answers outside gaps, and does not move with what the documents lack. "
    "In brackets are 95 % intervals that draw whole questions anew."
)


def _head(names: Sequence[str]) -> list[str]:
    return [_row(names), "|" + "---|" * len(names)]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _ends(one: Mapping[str, Any], name: str) -> str:
    ends = one["intervals95"][name]
    return "" if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]"


def grammar_problems(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a problem per model whose answers depend on the wording, and one for what it lacks."""
    for one in content["models"]:
        if not one["groups"]:
            continue
        if one["non_robust"]:
            yield _depends_on_wording(one)
        if one["gap"]:
            text = (
                f"{one['name']}: {one['gap']} of {one['groups']} questions are right in no wording"
            )
            share = one["gap"] / one["groups"]
            blame = one["blame"]["gap"]
            yield _problem(one, text, share, "retrieval", ("complete_documents", _LACKS), blame)


_LACKS = "Look whether the documents say it, and whether they are found; see `blame`."


def _depends_on_wording(one: Mapping[str, Any]) -> dict[str, Any]:
    blame = one["blame"]["non_robust"]
    told = ", ".join(f"{blame[name]} {name.replace('_', ' ')}" for name in BLAMES if blame[name])
    worst = min(one["styles"], key=lambda s: (s["robustness"] is None, s["robustness"], s["style"]))
    text = (
        f"{one['name']}: {one['non_robust']} of {one['groups']} questions are right in some "
        f"wordings only; robustness {one['robustness']:.3f}, in style {worst['style'] or '(none)'} "
        f"{worst['robustness']:.3f}; to blame: {told}"
    )
    share = one["non_robust"] / one["groups"]
    action = ("stabilise", "Compare the wordings that differ, and mend the part that is to blame.")
    return _problem(one, text, share, "stability", action, blame)


def _problem(
    one: Mapping[str, Any],
    text: str,
    share: float,
    kind: str,
    action: tuple[str, str],
    blame: Mapping[str, int],
) -> dict[str, Any]:
    keys = [key for name in BLAMES if blame[name] for key in one["row_keys"].get(name, ())]
    return {
        "description": text,
        "severity": "high" if share >= 0.5 else "medium" if share >= 0.25 else "low",
        "problem_type": kind,
        "problem_code": "P0200",
        "problem_code_meaning": "ability of the system to perform as intended",
        "problem_attrs": {
            "evaluator": ID, "model": one["model"], "share": share, "blame": dict(blame),
            "row_keys": keys[:KEPT_CASES],
        },
        "actions_codes": [action[0]],
        "actions_description": action[1],
    }  # fmt: skip
