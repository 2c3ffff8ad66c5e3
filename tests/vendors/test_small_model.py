"""A small real model behind llama.cpp: what it finds likely, and what a judge's questions get.

Its verdicts are worth nothing; that every question has a state and a transcript is what counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.hosts.errors import ContextTooLong
from guardrail_offline.hosts.log_probabilities import open_language_model
from guardrail_offline.hosts.opening import HostChoice, open_chat
from guardrail_offline.runs.worker import score
from guardrail_service.commands.main import app
from tests.vendors.senders import model_server

NAMES = ("Nile", "Congo", "banana")
QUESTION = "Which river is the longest in Africa?"
SOURCE = "The Nile is the longest river in Africa and flows north into the sea."
START = "?start=<|endoftext|>"
"""The token between documents in this model's training text; its own first one begins a chat."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The model's server."""
    with model_server() as served:
        yield served


@pytest.fixture(scope="module")
def models(address: str) -> PackModels:
    """Models of which one is served."""
    models = PackModels({})
    models.language_model = open_language_model(HostChoice(f"llamacpp+{address}{START}"))
    return models


def values(models: PackModels, evaluator: str, metric: str, question: str) -> list[float]:
    """Return a metric for each river."""
    cases = [
        (n, Case(f"k{n}", question, f"The longest river in Africa is the {name}.", SOURCE))
        for n, name in enumerate(NAMES)
    ]
    scored = score(cases, configure([evaluator]), models)
    found = [scored[n][evaluator].scores[metric] for n in range(len(NAMES))]
    assert all(one.value is not None for one in found), [one.reason for one in found]
    return [float(one.value or 0) for one in found]


def test_known_answer_52_the_right_river_surprises_least(models: PackModels) -> None:
    """Nile < Congo < banana, and again the same numbers."""
    first = values(models, "perplexity", "perplexity", QUESTION)
    assert 1 < first[0] < first[1] < first[2]
    assert values(models, "perplexity", "perplexity", QUESTION) == first


def test_known_answer_52_gptscore_orders_summaries_by_their_source(models: PackModels) -> None:
    """After the source as a prompt, too."""
    name = "summarization_without_reference_gptscore"
    found = values(models, name, "factuality", SOURCE)
    assert found == sorted(found)
    assert len(set(found)) == len(NAMES)


def test_a_text_that_is_too_long_is_said_to_be(address: str) -> None:
    """By its log probabilities and as a message; nothing is cut."""
    long = "The river is long. " * 1000
    with pytest.raises(ContextTooLong):
        open_language_model(HostChoice(f"llamacpp+{address}")).log_probabilities(long, "Yes.")
    host = open_chat(HostChoice(f"llamacpp+{address}", model="smollm2"))
    with pytest.raises(ContextTooLong):
        host.chat([{"role": "user", "content": long}], max_tokens=2)


def lab(folder: Path) -> Path:
    """Write a lab of two cases."""
    path = folder / "lab.jsonl"
    record = {"input": QUESTION, "actual_output": "The Nile.", "context": [SOURCE]}
    other = {"input": QUESTION, "actual_output": "The Rhine.", "context": [SOURCE]}
    path.write_text("\n".join(map(json.dumps, (record, other))))
    return path


def test_a_run_asks_the_served_model(address: str, tmp_path: Path) -> None:
    """By the command, whose manifest names it."""
    options = ["--language-model", f"llamacpp+{address}{START}", "--no-report", "--workers", "1"]
    run = tmp_path / "run"
    told = ["evaluate", str(lab(tmp_path)), "-e", "perplexity", "-o", str(run), *options]
    done = CliRunner().invoke(app, told)
    assert done.exit_code == 0, done.output
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["evaluators"]["perplexity"]["language_model"]["address"].startswith("llamacpp+")
    summary = json.loads((run / "summary.json").read_text())
    assert summary["computed"] == {"perplexity": 2}


def test_a_judge_of_135_million_parameters_leaves_states_and_transcripts(
    address: str, tmp_path: Path
) -> None:
    """Whatever it says. A second run in replay asks nobody and finds the same."""
    run, store = tmp_path / "run", tmp_path / "transcripts.sqlite"
    judge = ["--judge", f"llamacpp+{address}", "--judge-model", "smollm2"]
    kept = ["--judge-store", str(store), "--judge-for", "byop"]
    asked = ["evaluate", str(lab(tmp_path)), "-e", "byop", "--no-report", "--workers", "1"]
    told = ["--set", "byop.prompt=Does {answer} answer {question}?"]
    done = CliRunner().invoke(app, [*asked, *told, *judge, *kept, "-o", str(run)])
    assert done.exit_code in (0, 3), done.output
    counts = json.loads((run / "judge.json").read_text())["evaluators"]["byop"]
    assert sum(counts["statuses"].values()) == counts["cases"] == 2
    assert set(counts["statuses"]) <= {"ok", "parse_failure"}
    assert store.stat().st_size > 0
    again = tmp_path / "again"
    replay = [*asked, *told, *judge, *kept, "--judge-mode", "replay", "-o", str(again)]
    CliRunner().invoke(app, replay)
    first, second = ((one / "scores.parquet").read_bytes() for one in (run, again))
    assert first == second
