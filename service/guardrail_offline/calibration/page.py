"""One self-contained HTML page about a calibration: nothing is fetched, every text is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from guardrail_offline.calibration.explanation import explain
from guardrail_offline.calibration.measure import Rate

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border: 1px solid #bbb; padding: .2rem .6rem; text-align: left; font-size: .9rem; }
img { max-width: 100%; }
.warning { background: #fff3cd; padding: .3rem .6rem; }
"""


def page(
    content: Mapping[str, Any],
    images: Mapping[str, bytes],
    suspects: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the page.

    Args:
        content: The guardrail file.
        images: PNG bytes by file name.
        suspects: Labels worth a second look.
    """
    block = content["calibration"]
    name = f"{content['policy']['name']} {content['policy']['version']}"
    parts = [
        f"<h1>Calibration of {escape(name)}</h1>",
        *_sentences(explain(content)),
        "<h2>Slices</h2><p>Observed on the labelled answers. Intervals are exact, at 95 %, and "
        "take answers as independent. No bound is promised within a slice.</p>",
        _slices(block),
        *_images(images),
        "<h2>Labels worth a second look</h2>",
        _suspects(suspects),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>Calibration of {escape(name)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _sentences(sentences: Iterable[str]) -> Iterable[str]:
    for sentence in sentences:
        css = ' class="warning"' if sentence.startswith("Warning") else ""
        yield f"<p{css}>{escape(sentence)}</p>"


def _slices(block: Mapping[str, Any]) -> str:
    rows = [
        (
            entry["fact"],
            entry["value"],
            str(Rate(entry["false_flag"]["x"], entry["false_flag"]["n"])),
            str(Rate(entry["recall"]["x"], entry["recall"]["n"])),
        )
        for entry in block["slices"]
    ]
    return _table(("slice", "value", "good answers flagged", "bad answers caught"), rows)


def _images(images: Mapping[str, bytes]) -> Iterable[str]:
    titles = {
        "scores.png": "Scores and thresholds",
        "reliability.png": "Reliability of P(bad) read from one metric",
        "trade-off.png": "What each promise costs",
    }
    for name, data in images.items():
        title = escape(titles.get(name, name))
        text = base64.b64encode(data).decode("ascii")
        yield f'<h2>{title}</h2><img alt="{title}" src="data:image/png;base64,{text}">'


def _suspects(suspects: Sequence[Mapping[str, Any]]) -> str:
    if not suspects:
        return "<p>None stands out.</p>"
    note = (
        "<p>Their scores make these labels improbable. A detector's blind spot looks the same, so "
        "a person decides.</p>"
    )
    rows = [(s["case"], s["label"], f"{s['probability']:.3f}") for s in suspects]
    return note + _table(("case", "label", "probability of the label"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"
