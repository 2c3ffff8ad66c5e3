"""`guardrail evaluate` on the example lab and the embedded pack, and what survives kill -9."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.report.page import write_report
from guardrail_offline.runs.execution import RunOptions, Summary, evaluate_lab
from guardrail_offline.runs.result_files import read_run
from guardrail_service.errors import ConfigurationError
from guardrail_service.inference.pack import read_manifest
from guardrail_service.policy.file import shipped_thresholds
from guardrail_service.resources import packs_dir
from tests import tiny_language
from tests.integration.conftest import COMMAND, until

pytestmark = pytest.mark.timeout(600)
"""The whole lab with every model takes about 20 s of processor time; a busy machine needs more."""
LAB = Path(__file__).parents[2] / "examples" / "lab" / "lab.json"
ANSWERS = Path(__file__).parents[2] / "models" / "thresholds" / "answers.jsonl"
DECLINE = {spec.id for spec in CATALOGUE.specs() if spec.needs_judge}
LANGUAGE = {spec.id for spec in CATALOGUE.specs() if "causal_lm" in spec.roles}


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded pack with a language model beside its own models."""
    folder = tmp_path_factory.mktemp("pack") / "with-language-model"
    shutil.copytree(packs_dir() / "embedded", folder)
    tiny_language.add(folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, pack: Path) -> tuple[Path, Summary]:
    """Every evaluator on the whole lab, once for all tests here."""
    out = tmp_path_factory.mktemp("lab") / "out"
    options = RunOptions(out, str(pack), shard_rows=25)
    return out, evaluate_lab(open_lab(LAB), configure(["all"]), options)


def test_without_a_judge_every_evaluator_computes_but_the_agent_and_the_own_prompt(
    run: tuple[Path, Summary],
) -> None:
    """Where the pack has every role."""
    _, summary = run
    computed = {name for name, count in summary.computed.items() if count}
    without = {spec.id for spec in CATALOGUE.specs() if spec.needs_judge}
    # The lab does not say which passages are relevant, and no question comes from a database.
    without_labels = {"retrieval_labels", "context_match", "grammar"}
    assert set(summary.declined) == without | without_labels
    assert without >= DECLINE
    assert computed | without | without_labels == {spec.id for spec in CATALOGUE.specs()}
    assert summary.cases == 73


def test_the_shipped_pack_declines_what_asks_a_language_model(tmp_path: Path) -> None:
    """With the role it lacks, on every case."""
    summary = evaluate_lab(open_lab(LAB), configure(sorted(LANGUAGE)), RunOptions(tmp_path / "out"))
    assert LANGUAGE
    assert set(summary.declined) == LANGUAGE
    assert summary.missing == {name: {"missing_role:causal_lm": 73} for name in LANGUAGE}
    roles = read_manifest(packs_dir() / "embedded").roles
    lacking = {spec.id for spec in CATALOGUE.specs() if not spec.roles <= set(roles)}
    assert lacking == LANGUAGE


def test_no_case_of_the_lab_is_in_error(run: tuple[Path, Summary]) -> None:
    """Except for what the lab breaks on purpose: nothing."""
    for results in read_run(run[0]).values():
        states = {score.state.value for row in results.rows for score in row.scores.values()}
        assert "error" not in states, results.evaluator


def values(run: tuple[Path, Summary], evaluator: str, metric: str) -> dict[str, float | None]:
    """Return a metric by case."""
    rows = read_run(run[0])[evaluator].rows
    return {row.key: row.scores[metric].value for row in rows}


@pytest.mark.parametrize(
    ("evaluator", "metric", "better", "worse"),
    [
        ("faithfulness", "faithfulness", "storm-heron", "storm-magpie"),
        ("hallucination", "hallucination", "founder-heron", "railway-magpie"),
        ("groundedness", "groundedness", "bread-heron", "railway-magpie"),
        ("answer_correctness", "answer_correctness", "tools-heron", "tools-magpie"),
        ("answer_semantic_similarity", "answer_similarity", "tools-heron", "tools-magpie"),
        ("bertscore", "bertscore_f1", "storm-heron", "storm-magpie"),
        ("rouge", "rouge_l", "tickets-heron", "founder-magpie"),
        ("bleu", "bleu_1", "storm-heron", "storm-magpie"),
        ("citations", "citation_f1", "boats-heron", "boats-magpie"),
        ("text_matching", "model_passes", "founder-heron", "founder-magpie"),
        ("nuggets", "nugget_all", "storm-heron", "storm-magpie"),
        ("summarization", "faithfulness_zs", "pool-heron", "pool-magpie"),
        ("summarization", "faithfulness_conv", "pool-heron", "pool-magpie"),
        ("summarization_judge", "model_passes", "pool-heron", "pool-magpie"),
        ("json_schema", "model_passes", "json-heron", "json-magpie"),
        ("pii", "model_passes", "contact-heron", "contact-magpie"),
        ("contact_information", "model_passes", "contact-heron", "contact-magpie"),
        ("secrets", "model_passes", "boats-heron", "key-magpie"),
        ("encoding", "model_passes", "encoded-heron", "encoded-magpie"),
        ("language_mismatch", "model_passes", "storm-heron", "language-magpie"),
        ("looping", "unique_sentences", "storm-heron", "loop-magpie"),
        ("sexism", "model_passes", "nurse-heron", "nurse-magpie"),
        ("stereotypes", "model_passes", "nurse-heron", "nurse-magpie"),
        ("classification", "accuracy", "class-1-heron", "class-5-magpie"),
        ("consistency", "rouge_l_mean", "tools-heron", "tools-magpie"),
        ("agent_sanity_check", "agent_sanity", "agent-1-heron", "agent-2-magpie"),
        ("no_answer", "answered", "swim-heron", "swim-magpie"),
        ("rag_triad", "triad_groundedness", "storm-heron", "storm-magpie"),
        ("ragchecker", "f1", "tools-heron", "tools-magpie"),
    ],
)
def test_the_good_answer_scores_better_than_the_faulty_one(
    run: tuple[Path, Summary], evaluator: str, metric: str, better: str, worse: str
) -> None:
    """On cases written so that people would say so; a missing value is not better."""
    found = values(run, evaluator, metric)
    good, bad = found[better], found[worse]
    assert good is not None
    assert good > (bad if bad is not None else -1.0)


def test_a_rude_answer_is_more_toxic_and_more_harmful(run: tuple[Path, Summary]) -> None:
    """The classifiers of the pack; a critique's harmfulness is the same score."""
    toxic, harm = values(run, "toxicity", "toxicity"), values(run, "aspect_critique", "harmfulness")
    assert (toxic["rude-magpie"] or 0) > (toxic["rude-heron"] or 0)
    assert harm == toxic
    malice = values(run, "aspect_critique", "maliciousness")
    assert (malice["rude-magpie"] or 0) > (malice["rude-heron"] or 0)
    correct = values(run, "aspect_critique", "correctness")
    assert (correct["storm-heron"], correct["storm-magpie"]) == (1.0, 0.0)
    biased = values(run, "bias", "gender")
    assert (biased["nurse-magpie"] or 0) > (biased["nurse-heron"] or 0)


def test_a_wrong_order_of_steps_needs_edits(run: tuple[Path, Summary]) -> None:
    """The good procedure has none."""
    edits = values(run, "step_alignment", "edits")
    assert edits["clean-heron"] == 0.0
    assert (edits["clean-magpie"] or 0) >= 3.0
    assert edits["tent-magpie"] == 4.0


CLAIMS = {"hallucination": None, "groundedness": None, "faithfulness": 0.5}
"""Evaluators that judge claims, with the threshold of those that are no detector."""


def test_a_supported_claim_is_never_called_contradicted(tmp_path: Path) -> None:
    """On labelled answers, in the files: on the good side of its threshold a claim is supported."""
    rows = map(json.loads, ANSWERS.read_text("utf-8").splitlines())
    keys = ("question", "contexts", "answer")
    cases = [{"key": r["id"], "model": "m", **{k: r[k] for k in keys}} for r in rows][::3]
    lab = tmp_path / "lab.jsonl"
    lab.write_text("".join(json.dumps(case) + "\n" for case in cases))
    evaluate_lab(open_lab(lab), configure([*CLAIMS, "facts"]), RunOptions(tmp_path / "out"))
    seen: Counter[tuple[str, str]] = Counter()
    for name, threshold in CLAIMS.items():
        cut = threshold or shipped_thresholds()[name][name]
        for span in spans_of(tmp_path / "out", name):
            assert (span["score"] >= cut) == (span["label"] == "supported")
            seen[name, span["label"]] += 1
    for span in spans_of(tmp_path / "out", "facts"):
        assert (span["label"] == "contradicted") <= (span["score"] < 0.5)
    assert all(seen[name, "supported"] > 50 for name in CLAIMS)
    assert seen["hallucination", "contradicted"] > 0
    assert seen["faithfulness", "contradicted"] > 10


def spans_of(out: Path, evaluator: str) -> list[Any]:
    """Return the parts of answers in an evaluator's file."""
    rows = _json(out / "results" / f"{evaluator}.json")["results"]
    return [span for row in rows for span in row.get("actual_output_meta") or ()]


def test_the_best_model_leads_and_perturbations_flip(run: tuple[Path, Summary]) -> None:
    """Leaderboards, problems, insights and flips are all there."""
    out, summary = run
    boards = {board["evaluator"]: board for board in _json(out / "leaderboards.json")}
    assert boards["faithfulness"]["rows"][0]["model"] == "heron"
    assert boards["classification"]["kind"] == "classification"
    assert boards["classification"]["confusion"]["magpie"]
    assert "## Faithfulness" in (out / "leaderboards.md").read_text("utf-8")
    kinds = {insight["type"] for insight in _json(out / "insights.json")}
    assert {"best_model", "fastest_model", "cheapest_model", "hardest_question"} <= kinds
    assert {"weak_point", "least_grounded_sentence"} <= kinds
    flips = _json(out / "flips.json")
    variants = {flip["variant"] for flip in flips["flips"] if flip["evaluator"] == "text_matching"}
    assert "boats-magpie-word_swap" not in variants
    assert {"founder-heron-keyboard_typos", "lasttrain-heron-comma"} <= variants
    assert summary.flips == len(flips["flips"])
    assert summary.problems == len(_json(out / "problems.json"))


def test_the_tables_hold_every_metric(run: tuple[Path, Summary]) -> None:
    """Parquet in the long form, CSV with Open RAG Eval's columns, runs side by side."""
    out, _ = run
    table = parquet.read_table(out / "scores.parquet")
    metrics = sum(len(spec.metrics) for spec in CATALOGUE.specs())
    assert table.num_rows == 73 * metrics
    assert table.filter(table["value"].is_null())["reason"].null_count == 0
    header = (out / "open_rag_eval.csv").read_text("utf-8").splitlines()[0].split(",")
    assert header[:4] == ["query_id", "query", "model", "run_1_retrieval_score_umbrela_scores"]
    assert "run_3_generation_score_citation_f1_score" in header


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


TIME = re.compile(rb"[0-9.]+ s of processor time")
PLAIN = "rouge,bleu,looping,text_matching,classification"


ENDLESS = [sys.executable, str(Path(__file__).with_name("endless.py"))]


def command(out: Path, *options: str, start: Sequence[str] = COMMAND) -> list[str]:
    """Return the command line of a deterministic run in small shards."""
    plain = ["-e", PLAIN, "--shard-rows", "4"]
    return [*start, "evaluate", str(LAB), "-o", str(out), *plain, *options]


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a run by its name, without the times that are written in its page."""
    return {
        str(path.relative_to(folder)): TIME.sub(b"", path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(("timings", "times"))
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that nobody stopped, in one process."""
    out = tmp_path_factory.mktemp("plain") / "out"
    evaluate_lab(open_lab(LAB), configure(PLAIN.split(",")), RunOptions(out, shard_rows=4))
    write_report([out], out / "report.html")
    return contents(out)


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_bytes(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    """kill -9 of the command and its workers after the first finished shard."""
    out = tmp_path / "out"
    endless = command(out, "--workers", "2", start=ENDLESS)
    process = subprocess.Popen(endless, start_new_session=True)
    try:
        until(lambda: any((out / "work").glob("scores-*.jsonl")), "a shard is finished")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (out / "summary.json").exists()
    again = subprocess.run(command(out, "--workers", "1"), capture_output=True)
    assert again.returncode == 0, again.stderr
    assert contents(out) == undisturbed


def test_two_processes_write_the_same_bytes_as_one(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    """Shards do not know who scores them."""
    out = tmp_path / "out"
    options = RunOptions(out, workers=2, shard_rows=4)
    evaluate_lab(open_lab(LAB), configure(PLAIN.split(",")), options)
    write_report([out], out / "report.html")
    assert contents(out) == undisturbed


def test_ranks_of_retrieval_are_those_that_are_asked_for(tmp_path: Path) -> None:
    """In results, boards and tables of a run whose workers have the evaluator by its id."""
    configured = configure(["umbrela"], ["umbrela.k_values=[2]", "umbrela.max_dataset_rows=4"])
    evaluate_lab(open_lab(LAB), configured, RunOptions(tmp_path, workers=1))
    keys = ("umbrela", "mrr", "precision_at_2", "average_precision_at_2")
    assert tuple(read_run(tmp_path)["umbrela"].metrics) == keys
    (board,) = json.loads((tmp_path / "leaderboards.json").read_text("utf-8"))
    assert set(board["rows"][0]["metrics"]) == set(keys)
    table = parquet.read_table(tmp_path / "scores.parquet", columns=["metric"])
    assert set(table["metric"].to_pylist()) == set(keys)


def test_a_folder_with_another_run_is_refused(tmp_path: Path) -> None:
    """Results of two settings must not mix."""
    lab, out = open_lab(LAB), tmp_path / "out"
    evaluate_lab(lab, configure(["bleu"]), RunOptions(out))
    with pytest.raises(ConfigurationError, match="another config_sha256, other evaluators"):
        evaluate_lab(lab, configure(["rouge"]), RunOptions(out))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="other files"):
        evaluate_lab(lab, configure(["rouge"]), RunOptions(tmp_path / "other"))


def test_a_named_evaluator_that_declines_leaves_the_run_incomplete(tmp_path: Path) -> None:
    """And are named with their reason."""
    start = [sys.executable, "-m", "guardrail_service.commands.main", "evaluate", str(LAB)]
    options = [
        "-o",
        str(tmp_path / "out"),
        "-e",
        "fact_check,rouge",
        "--workers",
        "1",
        "--no-judge",
    ]
    ended = subprocess.run([*start, *options], capture_output=True, text=True)
    assert ended.returncode == 3
    assert "73 needs_judge" in ended.stdout
    assert "1 of 2 evaluators computed" in ended.stdout
