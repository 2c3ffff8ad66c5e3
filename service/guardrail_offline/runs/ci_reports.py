"""Reports for build servers: JUnit XML, and Markdown for a pull request.

Names of models come from labs: they are escaped, and no other text of a lab is written.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from guardrail_offline.runs.bounds import BoundCheck
from guardrail_offline.runs.run_comparison import Comparison, Difference

_SHOWN = 10
"""Rows of a list that may be long; a comment is read, a file is searched."""
_MARKS = {"met": "✅", "missed": "❌", "no value": "⚠️", "too few cases": "⚠️"}


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One test of a JUnit file.

    Attributes:
        group: Shown as its class: the evaluator.
        name: What was asked.
        text: What came.
        kind: `failure`, `error`, `skipped`, or empty where it passed.
    """

    group: str
    name: str
    text: str
    kind: str = ""


def junit(suite: str, cases: Sequence[JUnitCase]) -> str:
    """Return a JUnit file with one suite, as build servers read it."""
    counts = {kind: sum(case.kind == kind for case in cases) for kind in _COUNTED}
    totals = {"tests": str(len(cases)), **{_COUNTED[k]: str(n) for k, n in counts.items()}}
    root = ElementTree.Element("testsuites", {"name": "guardrail", **totals})
    inside = ElementTree.SubElement(root, "testsuite", {"name": _xml(suite), **totals})
    for case in cases:
        names = {"classname": _xml(case.group), "name": _xml(case.name)}
        test = ElementTree.SubElement(inside, "testcase", names)
        if case.kind:
            ElementTree.SubElement(test, case.kind, {"message": _xml(case.text)})
        else:
            ElementTree.SubElement(test, "system-out").text = _xml(case.text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True) + "\n"


_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def junit_cases_of_run(
    checks: Iterable[BoundCheck], missing: Mapping[str, Mapping[str, int]], declined: Iterable[str]
) -> list[JUnitCase]:
    """Return a test per bound and model, and a skipped one per evaluator without any number."""
    kinds = {"met": "", "missed": "failure", "no value": "error", "too few cases": "error"}
    found = [
        JUnitCase(
            check.evaluator, f"{check.model}: {check.asked}", check.found, kinds[check.outcome]
        )
        for check in checks
    ]
    for name in declined:
        reasons = ", ".join(f"{count} {reason}" for reason, count in missing[name].items())
        found.append(JUnitCase(name, "computes a value", reasons or "no case", "skipped"))
    return found


def junit_cases_of_comparison(
    comparisons: Iterable[Comparison], max_drop: float, *, strict: bool
) -> list[JUnitCase]:
    """Return a test per run, metric and model: it fails where the run is a regression."""
    return [
        JUnitCase(
            f"{comparison.run}.{d.evaluator}",
            d.metric if d.model is None else f"{d.model}: {d.metric}",
            difference_text(d),
            "failure" if d.is_regression(max_drop, strict=strict) else "",
        )
        for comparison in comparisons
        for d in comparison.differences
    ]


def difference_text(found: Difference) -> str:
    """Return a difference in one line."""
    interval = interval_text(found)
    return (
        f"{found.before:.3f} to {found.after:.3f}: {found.difference:+.3f} ({interval}), "
        f"p {found.p_holm:.3g}, {found.questions} questions, {found.verdict}"
    )


def interval_text(found: Difference) -> str:
    """Return a difference's interval, or a dash."""
    if found.interval is None:
        return "-"
    return f"{found.interval[0]:+.3f} to {found.interval[1]:+.3f}"


def run_markdown(
    name: str,
    checks: Sequence[BoundCheck],
    boards: Sequence[Mapping[str, Any]],
    problems: Sequence[Mapping[str, Any]],
) -> str:
    """Return a finished run for a pull request: bounds first, then scores, then problems.

    Args:
        name: Of the run.
        checks: Bounds held against models; may be empty.
        boards: The content of `leaderboards.json`.
        problems: The content of `problems.json`.
    """
    bad = sum(check.outcome != "met" for check in checks)
    if checks:
        said = f"{bad} of {len(checks)} bounds not met" if bad else f"{len(checks)} bounds met"
    else:
        said = "evaluated, no bounds set"
    lines = [f"## {'❌' if bad else '✅'} {_md(name)}: {said}", ""]
    if checks:
        head = ["", "model", "asked", "found", "judged"]
        lines += _table(head, ([_MARKS[c.outcome], _md(c.model), *_cells(c)] for c in checks))
    lines += _scores(boards)
    if problems:
        lines += ["", f"<details><summary>{len(problems)} problems</summary>", ""]
        shown = problems[:_SHOWN]
        lines += [f"- **{one['severity']}** {_md(one['description'])}" for one in shown]
        if len(problems) > _SHOWN:
            lines.append(f"- and {len(problems) - _SHOWN} more in `problems.json`")
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _cells(check: BoundCheck) -> list[str]:
    value = "-" if check.value is None else f"{check.value:.3f}"
    return [f"`{check.asked}`", value, f"{check.judged} of {check.cases}"]


def _scores(boards: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each evaluator's primary metric, a column per model; those without any are named."""
    models = {row["model"]: row["name"] for board in boards for row in board["rows"]}
    rows, without = [], []
    for board in boards:
        key = board["primary_metric"]
        cells = {row["model"]: row["metrics"][key] for row in board["rows"]}
        if all(cell["value"] is None for cell in cells.values()):
            without.append(board["evaluator"])
            continue
        arrow = "↑" if board["direction"] == "higher_is_better" else "↓"
        title = board["evaluator"] if key == board["evaluator"] else f"{board['evaluator']}.{key}"
        rows.append([f"`{title}` {arrow}", *(_score(cells.get(model)) for model in models)])
    lines = ["", *_table(["metric", *map(_md, models.values())], rows)] if rows else []
    if without:
        lines += ["", f"Without a value: {', '.join(f'`{name}`' for name in without)}."]
    return lines


def _score(cell: Mapping[str, Any] | None) -> str:
    return "-" if cell is None or cell["value"] is None else f"{cell['value']:.3f} ({cell['n']})"


def comparison_markdown(
    before: str, comparisons: Sequence[Comparison], max_drop: float, *, strict: bool
) -> str:
    """Return some runs against a first one, regressions first, for a pull request."""
    lines: list[str] = []
    for comparison in comparisons:
        bad = [d for d in comparison.differences if d.is_regression(max_drop, strict=strict)]
        changed = [
            d for d in comparison.differences if d.verdict in ("better", "worse") and d not in bad
        ]
        said = f"{len(bad)} regressions" if bad else "no regression"
        lines += [f"## {'❌' if bad else '✅'} {_md(comparison.run)} against {_md(before)}: {said}"]
        lines += ["", f"{len(changed)} of {len(comparison.differences)} metrics changed otherwise."]
        if bad or changed:
            head = ["", "metric", "before", "after", "difference", "95 %", "p (Holm)", "questions"]
            marked = [("❌", d) for d in bad] + [
                ("🔼" if d.verdict == "better" else "🔽", d) for d in changed
            ]
            lines += ["", *_table(head, ([mark, *_difference_cells(d)] for mark, d in marked))]
        lines += ["", *(f"- {_md(note)}" for note in comparison.warnings), ""]
    return "\n".join(lines)


def _difference_cells(d: Difference) -> list[str]:
    name = f"`{d.evaluator}.{d.metric}`" + ("" if d.model is None else f" of {_md(d.model)}")
    numbers = [f"{d.before:.3f}", f"{d.after:.3f}", f"{d.difference:+.3f}", interval_text(d)]
    return [name, *numbers, f"{d.p_holm:.3g}", str(d.questions)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _md(text: str) -> str:
    """Return text that Markdown shows as it is: no link, mention, heading or tag comes of it."""
    line = html.escape(" ".join(_xml(text).split()), quote=False)
    line = line.replace("://", "&#58;//").replace("www.", "www&#46;")
    return "".join(f"&#{ord(c)};" if c in "|`*[]@!~\\$" else c for c in line)


def _xml(text: str) -> str:
    """Return text that XML can hold: other characters are replaced."""
    return "".join(c if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd"
                   or c >= "\U00010000" else "\ufffd" for c in text)  # fmt: skip
