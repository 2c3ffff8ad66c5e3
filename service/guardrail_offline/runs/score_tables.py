"""The files of a run with a row per case: result files, a long table, Open RAG Eval's CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from guardrail_offline.datasets.cases import Model, model_json
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.description import judge_free, tags_of
from guardrail_offline.runs.result_files import (
    CASES,
    CaseWriter,
    ResultLayout,
    ResultWriter,
    metric_json,
    row_json,
)
from guardrail_offline.runs.several_answers import query_id
from guardrail_offline.runs.shards import ScoredCase, whole_file
from guardrail_service.errors import MissingExtra

_PARQUET_ROWS = 20_000  # rows of the long table written at a time
LONG = ("key", "model_key", "group", "evaluator", "metric", "value", "state", "reason")


class ResultFiles:
    """One result file per evaluator, written row by row, and where they need it the cases."""

    def __init__(
        self,
        folder: Path,
        configured: Sequence[Configured],
        fingerprints: Mapping[str, str],
        *,
        texts: bool,
        layout: ResultLayout = "keys",
    ) -> None:
        self._configured = [one for one in configured if one.common.save_llm_result]
        self._fingerprints = fingerprints
        self._texts = texts
        self._layout: ResultLayout = layout
        self._stack = ExitStack()
        self._writers = {
            one.id: ResultWriter(
                self._stack.enter_context(whole_file(folder / f"{one.id}.json")), layout
            )
            for one in self._configured
        }
        self._cases: CaseWriter | None = None
        if layout == "keys":
            stream = self._stack.enter_context(whole_file(folder.parent / CASES))
            self._cases = CaseWriter(stream, texts=texts)

    def add(self, scored: ScoredCase) -> None:
        """Write one case's row to every file."""
        if self._cases is not None:
            self._cases.add(scored.case)
        for one in self._configured:
            result = scored.results[one.id]
            row = row_json(scored.case, result, texts=self._texts, layout=self._layout)
            self._writers[one.id].add(row)

    def close(self, models: Sequence[Model]) -> None:
        """Write what follows the rows and put the files in their places."""
        known = [model_json(model) for model in models]
        for one in self._configured:
            self._writers[one.id].close(known, about_json(one, self._fingerprints))
        self._stack.close()


def about_json(one: Configured, fingerprints: Mapping[str, str]) -> dict[str, Any]:
    """Return the `evaluator` object of a result file."""
    spec = one.evaluator.spec
    cuts = one.thresholds()
    support = {"embedding", "grounding", "nli"} if spec.needs_support else set()
    used = {"segmenter", "evidence", f"detector:{spec.id}"} | spec.roles | support
    return {
        "id": spec.h2o_id or spec.id,
        "name": spec.id,
        "h2o_id": spec.h2o_id,
        "display_name": spec.name,
        "description": spec.summary,
        "surrogate": spec.surrogate or None,
        "judge_free": judge_free(spec),
        "same_as": one.same_as(),
        "grade": one.grade(),
        "model_types": ["rag"] if "contexts" in spec.inputs else ["llm", "rag"],
        "keywords": sorted(
            [
                *tags_of(spec),
                f"run-class-{spec.run_class}",
                f"problem-{spec.problem}",
            ]
        ),
        "metrics_meta": [
            metric_json(replace(metric, threshold=cuts[metric.key]), primary=metric is spec.primary)
            for metric in spec.metrics
        ],
        **one.as_json(),
        "fingerprints": {key: value for key, value in fingerprints.items() if key in used},
    }


@contextmanager
def long_table(path: Path) -> Iterator[LongTable]:
    """Open `scores.parquet`: a row per case, evaluator and metric.

    Raises:
        MissingExtra: If pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("rag-guardrail-offline") from error
    types = {"value": pa.float64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in LONG])
    temporary = path.with_name(f".{path.name}.tmp")
    with parquet.ParquetWriter(temporary, schema, compression="zstd") as writer:
        table = LongTable(lambda rows: writer.write_table(pa.Table.from_pylist(rows, schema)))
        yield table
        table.flush()
    temporary.replace(path)


class LongTable:
    """Collects rows and hands them on in blocks."""

    def __init__(self, write: Any) -> None:
        self._write = write
        self._rows: list[dict[str, Any]] = []

    def add(self, scored: ScoredCase) -> None:
        """Add every metric of one case."""
        self._rows += long_rows(scored)
        if len(self._rows) >= _PARQUET_ROWS:
            self.flush()

    def flush(self) -> None:
        """Hand on what was collected."""
        if self._rows:
            self._write(self._rows)
        self._rows = []


def long_rows(scored: ScoredCase) -> list[dict[str, Any]]:
    """Return a case's rows of the long table."""
    case = scored.case
    known = {
        "key": _writable(case.key),
        "model_key": _writable(case.model),
        "group": _writable(case.group),
    }
    return [
        {
            **known,
            "evaluator": evaluator,
            "metric": key,
            "value": score.value,
            "state": score.state.value,
            "reason": score.reason,
        }
        for evaluator, result in scored.results.items()
        for key, score in result.scores.items()
    ]


def _writable(text: str) -> str:
    """Return text as UTF-8 can hold it: a lone surrogate is escaped, as in the JSON files."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


OPEN_RAG_EVAL: Mapping[str, tuple[str, str]] = {
    "retrieval_score_mean_umbrela_score": ("umbrela", "umbrela"),
    "generation_score_vital_nuggetizer_score": ("nuggets", "nugget_vital"),
    "generation_score_hallucination_score": ("hallucination", "hallucination"),
    "generation_score_citation_f1_score": ("citations", "citation_f1"),
}
_UMBRELA, _NO_ANSWER = "retrieval_score_umbrela_scores", "generation_score_no_answer_score"
MAX_RUNS = 10


class OpenRagEvalSheet:
    """Open RAG Eval's CSV: a row per query id and model, the runs side by side.

    With one run the columns have no prefix, else `run_1_` and so on. A value that could not be
    computed is an empty cell. A question with more than ten runs keeps the first ten here. Where
    there are several models, a column names the row's.
    """

    def __init__(self, stream: IO[str], runs: int, *, several_models: bool = False) -> None:
        self._named = ["model"] if several_models else []
        self._runs = max(1, min(runs, MAX_RUNS))
        self._writer = csv.writer(stream)
        names = [_UMBRELA, *OPEN_RAG_EVAL, _NO_ANSWER]
        prefixes = [""] if self._runs == 1 else [f"run_{n}_" for n in range(1, self._runs + 1)]
        columns = [f"{prefix}{name}" for prefix in prefixes for name in names]
        self._width = len(names)
        self._writer.writerow(["query_id", "query", *self._named, *columns])

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Write the rows of one group."""
        for (_, name), found in _runs(group).items():
            cells = [cell for scored in found[: self._runs] for cell in _cells(scored)]
            cells += [""] * (self._width * self._runs - len(cells))
            case = found[0].case
            models = [case.model] if self._named else []
            self._writer.writerow([name, case.question, *models, *cells])


def runs_of(group: Sequence[ScoredCase]) -> int:
    """Return the largest number of answers of one model to one query."""
    return max(map(len, _runs(group).values()), default=1)


def _runs(group: Sequence[ScoredCase]) -> dict[tuple[str, str], list[ScoredCase]]:
    """Return the cases of a group that are runs of one query, by model and query id.

    Where no model is named, another query id is another query, and not another run.
    """
    runs: dict[tuple[str, str], list[ScoredCase]] = {}
    names: dict[tuple[str, str], str] = {}
    for scored in group:
        case = scored.case
        own = query_id(scored)
        name = names.setdefault((case.model, case.question), own) if case.model else own
        runs.setdefault((case.model, name), []).append(scored)
    return runs


def _cells(scored: ScoredCase) -> list[str]:
    results = scored.results
    umbrela = results["umbrela"].details.get("umbrela_scores") if "umbrela" in results else None
    values = [
        results[evaluator].scores[key].value if evaluator in results else None
        for evaluator, key in OPEN_RAG_EVAL.values()
    ]
    answered = results["no_answer"].scores["answered"].value if "no_answer" in results else None
    return [
        "" if umbrela is None else json.dumps({str(n): s for n, s in enumerate(umbrela, 1)}),
        *("" if value is None else repr(value) for value in values),
        "" if answered is None else json.dumps({"query_answered": "yes" if answered else "no"}),
    ]
