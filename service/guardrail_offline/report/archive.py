"""A run as one file in the layout of H2O Eval Studio's archive, and the way back.

Nothing is unpacked to a name that stands in the archive: members are read by the names that are
expected, and written under our own.
"""

from __future__ import annotations

import io
import lzma
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from guardrail_offline.datasets.cases import model_json
from guardrail_offline.evaluators.result import dumps, json_number
from guardrail_offline.report.content import page_content
from guardrail_offline.report.exports import report_json, results_csv, scores_csv
from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.page import html_fragment, report_page
from guardrail_offline.report.run_data import RunData, read_run_data
from guardrail_offline.report.run_log import evaluator_log
from guardrail_offline.runs.leaderboards import markdown
from guardrail_offline.runs.result_files import EvaluatorResults, ResultRow, column, read_run
from guardrail_service.errors import ConfigurationError

RESULTS = "global_llm_eval_results/application_json/explanation.json"
BOARD = "global_llm_heatmap_leaderboard"
OURS = "rag_guardrail"
OUR_FILES = ("manifest.json", "summary.json", "leaderboards.json", "problems.json",
             "insights.json", "flips.json", "timings.json", "run_consistency.json",
             "grammar.json", "open_rag_eval.csv")  # fmt: skip
_DAMAGED = (
    OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
    NotImplementedError,  # a method of compression that Python lacks
    RuntimeError,  # an encrypted member
)  # fmt: skip
MOST_BYTES = 4 * 2**30
"""Unpacked; a small archive may hold a large bomb."""
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The same run gives the same bytes."""


def write_archive(folder: Path, out: Path) -> None:
    """Write a finished run as one archive: results with texts in every row, findings, the page.

    Raises:
        ConfigurationError: If the folder holds no finished run.
    """
    run = read_run_data(folder)
    results = read_run(folder)
    content = page_content(RunFigures(run))
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, found in results.items():
                _add_evaluator(archive, found, run)
                _add_shown(archive, run, content, name, _folder(found, run.manifests[0]))
            _add(archive, "interpretation.html", report_page(run))
            _add(archive, "interpretation.json", dumps(report_json(run)))
            table = io.StringIO(newline="")
            scores_csv(run, table)
            _add(archive, "scores.csv", table.getvalue())
            for name in OUR_FILES:
                if (folder / name).exists():
                    _add(archive, f"{OURS}/{name}", (folder / name).read_text("utf-8"))
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    info = zipfile.ZipInfo(name, _WHEN)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, text.encode("utf-8", "backslashreplace"))


def _add_shown(
    archive: zipfile.ZipFile, run: RunData, content: Mapping[str, Any], name: str, where: str
) -> None:
    """Add what people and spreadsheets read of one evaluator: fragment, table and log."""
    data = run.evaluators[name]
    if data.has_values:
        fragment = html_fragment(content, name, "../../../interpretation.html")
        _add(archive, f"{where}/global_html_fragment/text_html/explanation.html", fragment)
    table = io.StringIO(newline="")
    results_csv(run, data, table)
    _add(archive, f"{where}/global_llm_eval_results/text_csv/explanation.csv", table.getvalue())
    log = "".join(f"{line}\n" for line in evaluator_log(run, data))
    _add(archive, f"{where}/log/explainer_run_{where[-36:]}.log", log)


def _add_evaluator(archive: zipfile.ZipFile, results: EvaluatorResults, run: RunData) -> None:
    boards = run.evaluators[results.evaluator].boards
    where = _folder(results, run.manifests[0])
    rows = [_h2o_row(row) for row in results.rows]
    models = [model_json(model) for model in results.models]
    content = {"results": rows, "models": models, "evaluator": results.about}
    _add(archive, f"{where}/{RESULTS}", dumps(content))
    for number, board in enumerate(boards):
        _add(archive, f"{where}/{BOARD}/application_json/leaderboard_{number}.json", dumps(board))
    if boards:
        _add(archive, f"{where}/{BOARD}/application_json/explanation.json", dumps(list(boards)))
        _add(archive, f"{where}/{BOARD}/text_markdown/explanation.md", markdown(boards))
    for kind, found in (("problems", run.problems), ("insights", run.insights)):
        own = [one for one in found if _evaluator_of(one) == results.evaluator]
        _add(archive, f"{where}/{kind}/{kind}_and_actions.json", dumps(own))


def _folder(results: EvaluatorResults, manifest: Mapping[str, Any]) -> str:
    """Return an evaluator's folder, as H2O names it; the id depends on what was run only."""
    name = (results.h2o_id or f"rag_guardrail.{results.evaluator}").replace(".", "_")
    seed = f"{manifest.get('config_sha256')}/{results.evaluator}"
    return f"explainer_{name}_{uuid.uuid5(uuid.NAMESPACE_URL, seed)}"


def _evaluator_of(finding: Mapping[str, Any]) -> str | None:
    attributes = finding.get("problem_attrs") or finding.get("attrs") or {}
    return attributes.get("evaluator")


def _h2o_row(row: ResultRow) -> dict[str, Any]:
    """Return a row with its case, a number or null per metric, and why null."""
    numbers = {column(key): json_number(score.value) for key, score in row.scores.items()}
    missing = {
        key: {"state": score.state.value, "reason": score.reason}
        for key, score in row.scores.items()
        if score.value is None
    }
    return {**row.record, **numbers, "missing": missing}


@contextmanager
def opened_run(path: Path) -> Iterator[Path]:
    """Open a run's folder, or an archive as one.

    Raises:
        ConfigurationError: If an archive is damaged, too large, or holds no run of ours.
    """
    if path.suffix.lower() != ".zip" or path.is_dir():
        yield path
        return
    with TemporaryDirectory() as place:
        folder = Path(place) / path.stem
        (folder / "results").mkdir(parents=True)
        try:
            with zipfile.ZipFile(path) as archive:
                _unpack(archive, folder, str(path))
        except _DAMAGED as error:
            raise ConfigurationError(
                str(path), type(error).__name__, "an archive of a run"
            ) from error
        yield folder


def _unpack(archive: zipfile.ZipFile, folder: Path, where: str) -> None:
    if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
        raise ConfigurationError(where, "over 4 GB unpacked", "an archive of a run")
    names = [name for name in archive.namelist() if name.endswith(f"/{RESULTS}")]
    for number, name in enumerate(sorted(names)):
        (folder / "results" / f"{number:04d}.json").write_bytes(archive.read(name))
    for name in OUR_FILES:
        if f"{OURS}/{name}" in archive.namelist():
            (folder / name).write_bytes(archive.read(f"{OURS}/{name}"))
