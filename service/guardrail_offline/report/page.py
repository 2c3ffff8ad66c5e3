"""Renders a run as one HTML page that fetches nothing and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from guardrail_offline.report.content import DOMAIN_ORDER, page_content
from guardrail_offline.report.eye import eye
from guardrail_offline.report.figures import RunFigures, in_words
from guardrail_offline.report.run_data import RunData, read_run_data, short
from guardrail_offline.report.sections import Section
from guardrail_offline.report.several_runs import side_by_side
from guardrail_offline.report.shown_cases import embedded, shown_cases
from guardrail_offline.report.verdicts import LIGHTS, TOLERATED
from guardrail_offline.runs.shards import whole_file
from guardrail_service import __version__
from guardrail_service.errors import ConfigurationError, choices

REPORT = "report.html"
MOST_CASES = 20_000
"""A larger run has its report on demand only: the page needs all scores in memory."""
LIGHT_WORDS = {"fails": "fails", "unclear": "open", "passes": "passes", "unknown": "no threshold"}
LIGHT_MARKS = {"fails": "✕", "unclear": "?", "passes": "✓", "unknown": "-"}
TALLY_WORDS = {
    "fails": "failed", "unclear": "open", "passes": "passed", "unknown": "without threshold",
}  # fmt: skip
CALLS = {
    "fails": "Should not go live as it is.",
    "unclear": "Not clear yet.",
    "passes": "Nothing that was checked speaks against it.",
    "unknown": "Cannot be said: no threshold means anything for it.",
}
ORIGIN_WORDS = {"fitted": "fitted", "yours": "set for this run", "rule": "the rule's own"}
PARTS = (
    ("summary", "Summary"),
    ("metrics", "Metrics"),
    ("not-judged", "Not judged"),
    ("eye", "Eval eye"),
    ("evaluators", "Evaluators"),
    ("findings", "Findings"),
    ("cases", "Cases"),
    ("data", "Data"),
    ("run", "Run"),
)
FRAGMENTS = ("summary", "metrics", "not-judged", "evaluators", "findings", "data", "run")
"""Parts that need no script."""


def write_report(folders: Iterable[Path], out: Path, tolerated: float = TOLERATED) -> None:
    """Write the page of one run, or of several side by side, whole or not at all.

    Raises:
        ConfigurationError: If a folder holds no finished run.
    """
    run = side_by_side([read_run_data(folder) for folder in folders])
    with whole_file(out) as stream:
        stream.write(report_page(run, tolerated))


def report_page(run: RunData, tolerated: float = TOLERATED) -> str:
    """Return the page; the same run gives the same bytes.

    Args:
        run: A finished run.
        tolerated: Share of failing answers that is accepted, 0 to 1.
    """
    figures = RunFigures(run)
    content = page_content(figures, tolerated)
    shown = shown_cases(figures)
    data = {
        **shown.content,
        "eye": eye(figures, tolerated), "words": LIGHT_WORDS, "marks": LIGHT_MARKS,
    }  # fmt: skip
    script = _asset("report.js") + _asset("eye.js")
    return environment().get_template("report.html.j2").render(
        **_words(content) | frame(script),
        shown=shown,
        parts=PARTS,
        script=Markup(script),  # noqa: S704 - files of this package
        content_json=Markup(embedded(data)),  # noqa: S704 - escaped by `embedded`
    )  # fmt: skip


def html_fragment(content: Mapping[str, Any], part: str, home: str) -> str:
    """Return one part of the page for another page, with its own style and without a script.

    Args:
        content: From `page_content`.
        part: One of `FRAGMENTS`, or an evaluator.
        home: Address of the whole page, for links.

    Raises:
        ConfigurationError: If there is no such part, or it needs the script.
    """
    section = section_of(content, part)
    template = "evaluator.html.j2" if section else f"{part.replace('-', '_')}.html.j2"
    body = environment().get_template(template).render(
        **_words(content) | {"home": home}, s=section
    )  # fmt: skip
    style = _style().replace(":root", ":scope").replace("\nbody {", "\n:scope {")
    scoped = f"<style>@scope (.guardrail-report) {{\n{style}}}</style>"
    return f'<div class="guardrail-report">{scoped}\n{body}</div>\n'


def section_of(content: Mapping[str, Any], part: str) -> Section | None:
    """Return the evaluator of a part, None for a part of the whole run.

    Raises:
        ConfigurationError: If there is no such part.
    """
    found: dict[str, Section] = {one.data.id: one for one in content["sections"]}
    if part not in found and part not in FRAGMENTS:
        names = (*FRAGMENTS, *found)
        raise ConfigurationError("--part", repr(part), choices(part, names, "part"))
    return found.get(part)


def frame(script: str = "", more: str = "") -> dict[str, Any]:
    """Return what every page's head needs: style, and the policy that allows it and a script.

    Args:
        script: The page's only script.
        more: Further directives.
    """
    style = _style()
    return {
        "style": Markup(style),  # noqa: S704 - a file of this package
        "policy": _policy(style, script) + more,
        "version": __version__,
    }


def _words(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with the words that templates show."""
    run: RunData = content["run"]
    return {
        **content,
        "home": "",
        "lights": LIGHTS,
        "light_words": LIGHT_WORDS,
        "light_marks": LIGHT_MARKS,
        "tally_words": TALLY_WORDS,
        "calls": CALLS,
        "origin_words": ORIGIN_WORDS,
        "title": lambda model: short(run.title(model)),
        "version": __version__,
    }


def _policy(style: str, script: str) -> str:
    """Return what a browser may do on the page: show it, and run these two texts."""
    scripts = f"'{_hash(script)}'" if script else "'none'"
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src {scripts}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _style() -> str:
    return _asset("colours.css") + _asset("report.css")


def _asset(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text("utf-8")


@lru_cache
def environment() -> Environment:
    """Return the templates of all pages; whatever they show is escaped."""
    environment = Environment(
        loader=PackageLoader("guardrail_offline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "num": number,
        "small": _small,
        "reasons": _reasons,
        "domain_order": _in_order,
        "case_link": lambda key: "#case=" + quote(short(str(key)), safe="", errors="replace"),
        "short": lambda name: short(str(name)),
        "plain_json": lambda value: json.dumps(value, ensure_ascii=False, default=str)[:2000],
        "command_line": command_line,
    }
    return environment


def _small(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else "below 0.001"


def _in_order(groups: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return sorted(groups, key=lambda group: DOMAIN_ORDER.index(group[0]))


def number(value: Any) -> str:
    """Return a number as short as it can be read: three digits behind the point at most."""
    if value is None:
        return "no value"
    if isinstance(value, str):
        return value
    if value != value or abs(value) == float("inf"):
        return "∞" if value > 0 else "-∞" if value < 0 else "no value"
    if float(value).is_integer() and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}" if abs(value) >= 1000 else f"{value:.3f}"


def _reasons(missing: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {in_words(reason)}" for reason, n in list(missing.items())[:3]) or "none"


def command_line(manifest: Mapping[str, Any]) -> str:
    """Return the command that gives a run again, without what has its default anyway."""
    words = ["guardrail", "evaluate", str(manifest.get("lab", {}).get("name") or "LAB")]
    for column, name in (manifest.get("lab", {}).get("mapping") or {}).items():
        words += ["--map", f"{column}={name}"]
    words += ["--evaluators", ",".join(manifest.get("evaluators") or ())]
    words += [] if manifest.get("texts", True) else ["--no-texts"]
    words += ["--layout", str(manifest["layout"])] if "layout" in manifest else []
    words += ["--missing", str(manifest["missing"])] if "missing" in manifest else []
    if drawn := manifest.get("sample"):
        words += ["--sample", str(drawn.get("cases")), "--seed", str(drawn.get("seed"))]
    return shlex.join([*words, "--out", "OUT"])
