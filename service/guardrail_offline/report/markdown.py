"""The report, or one part of it, as Markdown: for a wiki or a pull request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from guardrail_offline.report.content import page_content
from guardrail_offline.report.figures import Figure, RunFigures
from guardrail_offline.report.page import number
from guardrail_offline.report.run_data import RunData, short
from guardrail_offline.report.sections import Section
from guardrail_offline.report.verdicts import TOLERATED, ModelVerdict
from guardrail_service.errors import ConfigurationError, choices


def report_markdown(run: RunData, tolerated: float = TOLERATED) -> str:
    """Return the first screen and the headline metrics."""
    content = page_content(RunFigures(run), tolerated)
    lines = [f"# Report: {_cell(run.name)}", "", *_summary(content), *_metrics(content)]
    return "\n".join(lines) + "\n"


def markdown_fragment(content: Mapping[str, Any], part: str) -> str:
    """Return one part of the page, or one evaluator.

    Args:
        content: From `page_content`.
        part: One of `PARTS`, or an evaluator.

    Raises:
        ConfigurationError: If there is no such part.
    """
    found: dict[str, Section] = {one.data.id: one for one in content["sections"]}
    if part in found:
        return "\n".join(_evaluator(found[part], content["run"])) + "\n"
    if part not in PARTS:
        raise ConfigurationError("--part", repr(part), choices(part, (*PARTS, *found), "part"))
    return "\n".join(PARTS[part](content)) + "\n"


def _summary(content: Mapping[str, Any]) -> list[str]:
    lines = [f"**{_cell(content['answer'][1])}**", ""]
    for verdict in content["ordered_verdicts"]:
        lines += _of_model(verdict, content["run"])
    return lines


def _metrics(content: Mapping[str, Any]) -> list[str]:
    return _headlines(content["headlines"], content["run"])


def _not_judged(content: Mapping[str, Any]) -> list[str]:
    lines = ["## What was not judged", ""]
    for one in content["not_run"]:
        lines.append(f"- {one['data'].name}: no number at all: {', '.join(one['why'])}")
    for one in content["not_judged"]:
        if one["missing"]:
            why = ", ".join(f"{count} {reason}" for reason, count in one["why"])
            lines.append(f"- {one['data'].name}: {one['missing']} of {one['cases']}: {why}")
    return lines


def _findings(content: Mapping[str, Any]) -> list[str]:
    run: RunData = content["run"]
    lines = ["## Findings", ""]
    for one in (content["differences"] or {"rows": ()})["rows"]:
        better, worse = (_cell(short(run.title(model))) for model in (one.better, one.worse))
        lines.append(f"- {one.evaluator}: {better} is ahead of {worse} by {number(one.size)}")
    lines += [f"- {p['severity']}: {_cell(short(p['description']))}" for p in run.problems]
    for one in content["clusters"]:
        lines.append(f"- {one['count']} answers fail together: {' + '.join(one['names'])}")
    return lines


def _evaluator(section: Section, run: RunData) -> list[str]:
    data = section.data
    lines = [f"## {data.name}", "", str(data.about.get("description") or ""), ""]
    if section.grade:
        lines += [f"Agreement with labels of people: {section.grade}.", ""]
    models = " | ".join(_cell(short(model.title)) for model in run.models)
    lines += [f"| metric | {models} |", "|---|" + "---|" * len(run.models)]
    for block in section.metrics:
        by_model = {row["figure"].model: row["figure"] for row in block["rows"]}
        figures = [by_model.get(model.key) for model in run.models]
        cells = " | ".join("no value" if one is None else _short(one) for one in figures)
        lines.append(f"| {block['metric'].key} | {cells} |")
    if section.hardest:
        lines += ["", "Hardest questions:", ""]
    for row in section.hardest:
        lines.append(f"- {number(row['mean'])} {_cell(short(row['question']))}")
    return lines


PARTS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "summary": _summary,
    "metrics": _metrics,
    "not-judged": _not_judged,
    "findings": _findings,
}
"""The parts of a run that are Markdown, too."""


def _of_model(verdict: ModelVerdict, run: RunData) -> list[str]:
    lines = [f"## {_cell(run.title(verdict.model))}: {verdict.light}", ""]
    for light in ("fails", "unclear"):
        lines += [
            f"- {light}: {check.data.name} ({check.figure.metric.key}): {check.why}"
            for check in verdict.checks
            if check.light == light
        ]
    return [*lines, ""]


def _headlines(headlines: Sequence[Mapping[str, Any]], run: RunData) -> list[str]:
    models = " | ".join(_cell(model.title) for model in run.models)
    lines = ["## Headline metrics", "", f"| evaluator | metric | {models} |"]
    lines.append("|---|---|" + "---|" * len(run.models))
    for row in headlines:
        cells = " | ".join(_short(cell["figure"]) for cell in row["cells"])
        lines.append(f"| {row['data'].name} | {row['metric'].key} | {cells} |")
    return lines


def _short(figure: Figure) -> str:
    if figure.value is None:
        return "no value"
    ends = "" if figure.interval is None else " ({:.3f} to {:.3f})".format(*figure.interval)
    return f"{figure.value:.3f}{ends}, {figure.judged} of {figure.cases}"


_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]<>#|!"} | {"\n": " ", "\r": " "})


def _cell(text: str) -> str:
    """Return a text of the lab that Markdown shows as it is."""
    return text.translate(_MARKS)
