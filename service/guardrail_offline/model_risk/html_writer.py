"""Writes a report as one HTML page: no script, nothing from the network, and it prints."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from guardrail_offline.model_risk.corpus_patch import CorpusPatch
from guardrail_offline.model_risk.drawings import svg_of
from guardrail_offline.model_risk.frameworks import in_words
from guardrail_offline.model_risk.report_blocks import (
    Block,
    Cell,
    Notes,
    ReportChart,
    ReportDocument,
    ReportRow,
    ReportSection,
    ReportTable,
    Subsection,
    TableSources,
    is_covered,
    table_sources,
)
from guardrail_offline.model_risk.step_data import ReportNumber

_NOTHING_ELSE = "base-uri 'none'; form-action 'none'"


def html_report(document: ReportDocument) -> str:
    """Return the page; the same document gives the same text."""
    writing = _Writing()
    return environment().get_template("mrm-report.html.j2").render(
        **_frame(),
        document=document,
        blocks=list(writing.blocks(document)),
        notes=writing.notes.places,
        words=in_words,
    )  # fmt: skip


def patch_page(patch: CorpusPatch, name: str) -> str:
    """Return a corpus patch as a page: questions and answers, as H2O's patch has them."""
    template = environment().get_template("corpus-patch.html.j2")
    return template.render(patch=patch, name=name, **_frame())


def _frame() -> dict[str, str]:
    """Return style and the policy that allows it, and nothing else."""
    style = (resources.files(__package__) / "templates" / "mrm-report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; {_NOTHING_ELSE}"
    return {"style": Markup(style), "policy": policy}  # noqa: S704 - a file of this package


@lru_cache
def environment() -> Environment:
    """Return the templates of this package; whatever they show is escaped."""
    return Environment(
        loader=PackageLoader("guardrail_offline.model_risk"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


class _Writing:
    """Turns blocks into what the template shows, and collects the notes."""

    def __init__(self) -> None:
        self.notes = Notes()

    def blocks(self, document: ReportDocument) -> Iterator[dict[str, Any]]:
        """Yield the blocks with their texts as markup."""
        for position, block in enumerate(document.blocks):
            yield {"kind": type(block).__name__, "block": block, "id": f"b{position}"} | self._more(
                block
            )

    def _more(self, block: Block) -> dict[str, Any]:
        if isinstance(block, ReportSection | Subsection):
            return {}
        if isinstance(block, ReportTable):
            return self._table(block)
        if isinstance(block, ReportChart):
            return {"picture": svg_of(block.drawing, block.alt)}
        if hasattr(block, "runs"):
            return {"text": self.cell(block.runs)}
        if hasattr(block, "items"):
            return {"items": [self.cell(item) for item in block.items]}
        return {}

    def _table(self, table: ReportTable) -> dict[str, Any]:
        sources = table_sources(table)
        has_sources = any(sources.fields)
        return {
            "fields": [pair for pair in zip(table.head, sources.fields, strict=True) if pair[1]],
            "has_sources": has_sources,
            "rows": [
                {
                    "cells": [self._covered(row, n, sources) for n in range(len(row.cells))],
                    "shades": [*row.shades, *([None] * (len(row.cells) - len(row.shades)))],
                    "source": source,
                }
                for row, source in zip(table.rows, sources.rows, strict=True)
            ],
        }

    def _covered(self, row: ReportRow, position: int, sources: TableSources) -> Markup:
        return self.cell(row.cells[position], noted=not is_covered(row, position, sources))

    def cell(self, cell: Cell, *, noted: bool = True) -> Markup:
        """Return runs as markup; a number has its place, and a note unless the table says it."""
        return Markup("").join(
            self._number(run, noted) if isinstance(run, ReportNumber) else run for run in cell
        )

    def _number(self, number: ReportNumber, noted: bool) -> Markup:
        of = "" if number.of is None else f" of {number.of[0]} {number.of[1]}"
        place = f"{number.file} {number.pointer}{of}"
        shown = Markup('<data value="{}" data-form="{}" title="{}">{}</data>').format(
            place, number.form, place, number.text
        )
        if not noted:
            return shown
        note = self.notes.of(number)
        return shown + Markup('<sup><a href="#note-{}">[{}]</a></sup>').format(note, note)
