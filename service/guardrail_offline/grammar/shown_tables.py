"""Prints what the commands under `guardrail grammar` found, for people."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from guardrail_service.commands.console import err, out, plain

if TYPE_CHECKING:
    from guardrail_offline.grammar.fill import FillStatistics
    from guardrail_offline.grammar.schema import Schema
    from guardrail_offline.grammar.templates import TemplateSet


def note(texts: Iterable[str]) -> None:
    """Print notes on standard error, a line each."""
    for text in texts:
        err.print(f"[yellow]note[/yellow] {plain(text)}", soft_wrap=True, highlight=False)


def texts_of(found: TemplateSet) -> int:
    """Return how many texts the templates of a set have."""
    return sum(len(one.texts) for one in found.templates)


def show_schema(schema: Schema) -> None:
    """Print every column and what questions may be about, and what keeps them away."""
    table = Table("table", "column", "kind", "values", "phrase", "questions")
    for one in schema.tables:
        for column in one.columns:
            link = next((k for k in one.foreign_keys if k.column == column.name), None)
            told = one.hidden or column.hidden
            asked = (
                f"none: {told}" if told else "name rows by it" if column.identifies else "ask it"
            )
            where = f", names {link.to_table}.{link.to_column}" if link else ""
            nulls = f", {column.nulls} NULL" if column.nulls else ""
            table.add_row(
                plain(one.name),
                plain(column.name),
                column.kind,
                f"{column.distinct} of {one.rows}{nulls}",
                plain(column.phrase),
                plain(asked + where),
            )
    out.print(table)
    keys = sum(len(one.foreign_keys) for one in schema.tables)
    out.print(f"{len(schema.tables)} tables, {keys} foreign keys")
    if not keys and len(schema.tables) > 1:
        note(["no foreign keys: no question joins tables"])
    note(
        f"{one.name}: nothing names its rows; mark a column with `identifies` in the labels file"
        for one in schema.tables
        if not one.hidden and not one.identifiers and len(one.foreign_keys) < 2
    )


def show_templates(found: TemplateSet, path: Path) -> None:
    """Print the templates, and how many were refused for what."""
    from guardrail_offline.grammar.queries import MEANING
    from guardrail_offline.grammar.templates import counts_of

    table = Table("template", "texts", "fills of combinations", "one answer", "unknown", "edited")
    for one in found.templates:
        proof = one.proof
        table.add_row(
            plain(one.id),
            str(len(one.texts)),
            f"{proof.filled} of {proof.combinations}",
            str(proof.single),
            str(proof.unknown),
            "yes" if one.is_edited else "",
        )
    out.print(table)
    for criterion, count in counts_of(found).items():
        out.print(f"{count} refused: {MEANING[criterion]}", highlight=False)  # type: ignore[index]
    note(found.notes)
    if found.templates:
        place = plain(str(path))
        out.print(f"{len(found.templates)} templates, {texts_of(found)} texts in {place}")
    else:
        out.print("no template meets the criteria; nothing is written")


def show_statistics(statistics: FillStatistics, path: Path) -> None:
    """Print how many cases came out of each template, and what was left out."""
    table = Table("template", "combinations", "filled", "queries", "cases")
    for name, counts in statistics.templates.items():
        table.add_row(plain(name), *(str(n) for n in counts.values()))
    out.print(table)
    for reason, count in sorted(statistics.skipped.items()):
        if count:
            out.print(f"{count} filled queries left out: {reason}")
    if not statistics.cases:
        out.print("nothing came out; nothing is written")
        return
    unknown = (
        f", {statistics.unknown} of them unknown to the database" if statistics.unknown else ""
    )
    out.print(
        f"{statistics.queries} queries{unknown}, {statistics.cases} cases in {plain(str(path))}"
    )


def show_scores(content: dict[str, Any]) -> None:
    """Print what `grammar.json` holds, model by model."""
    for one in content["models"]:
        out.print(f"[bold]{plain(one['name'] or '(no model)')}[/bold]: {_counted(one)}")
        if not one["groups"]:
            continue
        table = Table("", "groups", "accuracy", "robustness", "gap", "robust", "non-robust")
        for name, scores in (("answers", one), ("retrieval", one["retrieval"])):
            kinds = (str(scores[kind]) for kind in ("gap", "robust", "non_robust"))
            table.add_row(name, str(one["groups"]), *_shares(scores), *kinds)
        for style in one["styles"]:
            counted = f"style {style['style'] or '(none)'}"
            table.add_row(plain(counted), str(style["groups"]), *_shares(style), "", "", "")
        out.print(table)
        for kind, blame in one["blame"].items():
            told = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in blame.items() if n)
            if told:
                out.print(f"wrong answers in {kind.replace('_', '-')} groups, to blame: {told}")
        rungs = ", ".join(f"{name} {n['right'] + n['wrong']}" for name, n in one["levels"].items())
        out.print(f"decided by: {rungs}", soft_wrap=True)


def _counted(one: dict[str, Any]) -> str:
    """Return how many cases a model has, and of which the groups say nothing."""
    told = f"{one['cases']} cases"
    if one["unanswered"]:
        told += f", {one['unanswered']} without an answer"
    if one["unknown"]["cases"]:
        told += f"; admits {one['unknown']['admitted']} of {one['unknown']['cases']} unknown ones"
    return told


def _shares(scores: dict[str, Any]) -> tuple[str, str]:
    found = []
    for name in ("accuracy", "robustness"):
        value, ends = scores[name], scores["intervals95"][name]
        shown = "-" if value is None else f"{value:.3f}"
        found.append(shown if ends is None else f"{shown} ({ends[0]:.3f} to {ends[1]:.3f})")
    return found[0], found[1]


def show_study(found: dict[str, Any], *, everything: bool) -> None:
    """Print every predictor; those that come first of their evaluator, unless all are wanted."""
    table = Table("predictor", "at", "precision", "recall", "area", "calls right", "unscored")
    for one in found["predictors"]:
        if not (one["primary"] or everything):
            continue
        called = one["right_called_right"] + one["wrong_called_right"]
        table.add_row(
            plain(one["metric"]),
            "-" if one["threshold"] is None else f"{one['threshold']:g}",
            _with_ends(one, "precision"),
            _with_ends(one, "recall"),
            "-" if one["area"] is None else f"{one['area']:.2f}",
            "-" if one["threshold"] is None else str(called),
            str(one["unscored"]),
        )
    out.print(table)
    share = _with_ends(found["all_called_right"], "precision")
    out.print(
        f"{found['answers']} answers to {found['groups']} questions, {found['right']} right: "
        f"whoever calls all of them right has precision {share} and recall 1"
    )


def _with_ends(one: dict[str, Any], name: str) -> str:
    if one[name] is None:
        return "-"
    low, high = one[f"{name}_95"]
    return f"{one[name]:.2f} ({low:.2f} to {high:.2f})"
