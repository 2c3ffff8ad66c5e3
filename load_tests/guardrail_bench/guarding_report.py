"""Shows what `guarding` measured: tables for a terminal, a part of a page, lists of failures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from guardrail_bench.output import markdown_table, replace_part, write_json
from guardrail_service.commands.console import err, out, plain

SIDES = {"bad": "bad answers stopped", "good": "good answers shown unchanged"}
MOST_REASONS = 4
"""Detectors that a cell names; the JSON report has all."""


def part(sealed: bool) -> str:
    """Return the name of the part of a page that a report replaces."""
    return "bench guarding sealed" if sealed else "bench guarding"


def publish(report: Mapping[str, Any], json_file: Path | None, doc: Path | None) -> None:
    """Write a report to its file and page, and show it unless its JSON was printed."""
    write_json(json.dumps(report, indent=2, ensure_ascii=False), json_file)
    if doc is not None:
        replace_part(doc, part(report["openings"] is not None), markdown(report))
    if str(json_file) != "-":
        out.print(render(report))
        out.print(render_failures(report), markup=False, highlight=False, soft_wrap=True)
    if report["openings"] is not None:
        err.print(f"The sealed half has now been opened {report['openings']} times.")


def rows(report: Mapping[str, Any], side: str) -> list[list[str]]:
    """Return a row per class and one for all: counts and shares by policy, and who did it."""
    policies = report["policies"]
    first = next(iter(policies.values()))[side]
    found = []
    for name, figures in first.items():
        shares = [_share(policy[side][name]) for policy in policies.values()]
        found.append([name, str(figures["n"]), *shares, _by(figures["by"])])
    return found


def headings(report: Mapping[str, Any], side: str) -> list[str]:
    """Return the headings of those rows."""
    names = list(report["policies"])
    doing = "stopped by" if side == "bad" else "lost to"
    return ["class", "n", *names, f"{doing}, under {names[0]}"]


def _share(figures: Mapping[str, Any]) -> str:
    share = figures["share"]
    low, high = 100 * share["low"], 100 * share["high"]
    return f"{figures['right']} ({100 * share['value']:.1f} %, {low:.1f} to {high:.1f})"


def _by(counts: Mapping[str, int]) -> str:
    named = [f"{name} {count}" for name, count in list(counts.items())[:MOST_REASONS]]
    return ", ".join([*named, *(["..."] if len(counts) > MOST_REASONS else [])])


def totals(report: Mapping[str, Any]) -> list[str]:
    """Return a sentence per policy."""
    return [
        f"{name}: {_total(policy)} Median of a check whose passages are known: "
        f"{policy['median_ms']:.0f} ms on this machine."
        for name, policy in report["policies"].items()
    ]


def _total(policy: Mapping[str, Any]) -> str:
    parts = []
    if bad := policy["bad"].get("all"):
        parts.append(f"{bad['right']} of {bad['n']} bad answers stopped.")
    if good := policy["good"].get("all"):
        lost, bound = good["n"] - good["right"], 100 * good["wrong_at_most"]
        parts.append(
            f"{lost} of {good['n']} good answers lost ({100 * lost / good['n']:.1f} %; "
            f"one-sided upper 95 % bound {bound:.1f} %)."
        )
    return " ".join(parts)


def render(report: Mapping[str, Any]) -> Group:
    """Return tables and totals for a terminal."""
    tables = []
    for side, title in _sides(report).items():
        table = Table(*headings(report, side), title=title)
        for row in rows(report, side):
            table.add_row(*map(plain, row))
        tables.append(table)
    return Group(*tables, *totals(report))


def render_failures(report: Mapping[str, Any]) -> str:
    """Return the cases that came out wrong, a line each, with texts where the report has them."""
    found = []
    for name, policy in report["policies"].items():
        for row in policy.get("failures", ()):
            behind = f" by {', '.join(row['by'])}" if row["by"] else ""
            found.append(f"{name} {row['id']}: {row['outcome']}{behind}")
            found += [f"    {row[key]!r}" for key in ("question", "answer") if key in row]
    return "\n".join(found)


def markdown(report: Mapping[str, Any]) -> str:
    """Return the part of a page."""
    parts = [f"Measured on {report['date']}, commit {report['commit']}, without a deadline."]
    if report["openings"] is not None:
        parts.append(f"The sealed half has been opened {report['openings']} times, this included.")
    for side, title in _sides(report).items():
        head = f"Number and share of {title}, with exact 95 % intervals:"
        parts += [head, markdown_table(headings(report, side), rows(report, side))]
    return "\n\n".join([*parts, "\n".join(f"- {line}" for line in totals(report))])


def _sides(report: Mapping[str, Any]) -> dict[str, str]:
    first = next(iter(report["policies"].values()))
    return {side: title for side, title in SIDES.items() if first[side]}
