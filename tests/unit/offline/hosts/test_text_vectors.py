"""Vectors of a served embedding model, and the evaluators that compare texts by them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from guardrail_offline.api import evaluate
from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.configured import COMPARES, Configured, config_sha256, configure
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.hosts import errors
from guardrail_offline.hosts.endpoint import Patience
from guardrail_offline.hosts.errors import SILENT_AFTER
from guardrail_offline.hosts.opening import HostChoice
from guardrail_offline.hosts.text_vectors import BATCH, open_text_vectors
from guardrail_offline.judge.stand_in import FakeJudge
from guardrail_offline.report.run_data import read_run_data
from guardrail_offline.report.several_runs import side_by_side
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_offline.runs.run_comparison import compare
from guardrail_offline.runs.score_tables import about_json
from guardrail_offline.runs.worker import score
from guardrail_service.commands.main import app
from guardrail_service.errors import ConfigurationError, NotScorable
from guardrail_service.types import State
from tests.unit.offline.hosts.server import Reply, serving
from tests.unit.offline.stand_ins import Session

NEAR = {"Is it open?": [2.0, 0.0], "It is open.": [3.0, 4.0], "It opens.": [0.0, 0.5]}


def vectors(body: dict[str, Any]) -> Reply:
    """Reply with a vector for each text, the last one first."""
    rows = [
        {"index": place, "embedding": NEAR.get(text, [1.0, 1.0])}
        for place, text in enumerate(body["input"])
    ]
    return Reply({"data": rows[::-1]})


def choice(url: str, **options: Any) -> HostChoice:
    """Return a served model that `--embeddings` names."""
    return HostChoice(url, model="m", option="--embeddings", **options)


def results(
    cases: list[Case], name: str, chosen: HostChoice, *, configured: Configured | None = None
) -> list[Any]:
    """Return one evaluator's scores on some cases."""
    wanted = configured or configure([name], embeddings=chosen)[0]
    models = PackModels({"embedding": Session("embedding", ("en",))})
    models.text_vectors = open_text_vectors(chosen)
    found = score(list(enumerate(cases)), [wanted], models)
    return [found[place][name].scores[wanted.evaluator.spec.primary.key] for place in found]


def test_a_text_is_asked_once_and_in_batches() -> None:
    """Vectors have unit length, and the order of the texts."""
    with serving(answer=vectors) as server:
        model = open_text_vectors(choice(server.url))
        found = model.embed(["It is open.", "Is it open?", "It is open."])
        np.testing.assert_allclose(found, [[0.6, 0.8], [1.0, 0.0], [0.6, 0.8]])
        model.embed(["Is it open?"])
        assert [body["input"] for body in server.bodies] == [["It is open.", "Is it open?"]]
        model.embed([f"text {n}" for n in range(BATCH + 1)])
        assert [len(body["input"]) for body in server.bodies] == [2, BATCH, 1]
        with pytest.raises(NotScorable):
            model.embed([])


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([[1.0, 2.0, 3.0]], errors.BadReply),
        ([[]], errors.BadReply),
        ([], errors.BadReply),
        ([["x", 1.0]], errors.BadReply),
        ([[0.0, 0.0]], NotScorable),
    ],
    ids=["another-length", "empty", "none", "a-text", "zero"],
)
def test_anything_else_is_no_vector(rows: list[Any], error: type[Exception]) -> None:
    """A vector is as long as those before it, and has a length."""
    data = [{"index": n, "embedding": row} for n, row in enumerate(rows)]
    with serving(answer=vectors) as server:
        model = open_text_vectors(choice(server.url))
        model.embed(["It is open."])
        server.answer = lambda _body: Reply({"data": data})
        with pytest.raises(error):
            model.embed(["other"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("answer_semantic_similarity", 0.8),
        ("answer_semantic_sentence_similarity", 0.8),
        ("answer_relevancy", 0.6),
    ],
)
def test_evaluators_compare_by_the_vectors_of_a_host(name: str, value: float) -> None:
    """In one call for each case, and the pack's model is not asked."""
    case = Case("k", "Is it open?", "It is open.", expected="It opens.")
    with serving(answer=vectors) as server:
        (found,) = results([case], name, choice(server.url))
        assert (found.state, len(server.bodies)) == (State.EVALUATED, 1)
        assert found.value == pytest.approx(value)


def test_a_host_that_fails_is_a_reason_and_no_score() -> None:
    """After a few calls without a reply, or at once with a wrong key, nobody is asked any more."""
    cases = [Case(f"k{n}", "q?", f"Answer {n}.", expected="It opens.") for n in range(5)]
    told = [
        (503, SILENT_AFTER, "host_unavailable"),
        (401, 1, "wrong_key"),
        (400, 5, "host_refused"),
    ]
    for status, asked, reason in told:
        with serving(Reply({}, status=status)) as server:
            limits = Patience(retries=0)
            found = results(cases, "answer_semantic_similarity", choice(server.url, limits=limits))
            assert {(one.state, one.value, one.reason) for one in found} == {
                (State.ERROR, None, reason)
            }
            assert len(server.bodies) == asked


def test_only_what_compares_takes_it_and_says_so() -> None:
    """Runs with other embeddings have another hash, no fitted cut and no grade."""
    names = [*COMPARES, "context_mrr"]
    plain = configure(names)
    served = configure(names, embeddings=choice("http://a/v1"))
    other = configure(names, embeddings=choice("http://b/v1"))
    assert {one.id for one in served if one.embeddings is not None} == COMPARES
    assert len({config_sha256(one, {}) for one in (plain, served, other)}) == 3
    for before, after in zip(plain, served, strict=True):
        about, was = about_json(after, {}), about_json(before, {})
        if after.id not in COMPARES:
            assert about == was
            continue
        assert about["embeddings"] == {"address": "http://a/v1", "model": "m"}
        assert (about["same_as"], about["grade"]) == ({}, "not measured: not with these embeddings")
        assert about_json(replace(after, embeddings=None), {}) == was
    with pytest.raises(ConfigurationError, match=r"--embeddings: .*answer_relevancy"):
        configure(["bleu"], embeddings=choice("http://a/v1"))


ROWS = [
    {
        "key": f"k{n}",
        "question": "Is it open?",
        "answer": "It is open.",
        "ground_truth": "It opens.",
    }
    for n in range(2)
]


def test_the_python_api_takes_it_with_a_judge_and_without() -> None:
    """The judge's questions are compared by the host's vectors, all of a case in one call."""
    says = {"question_of_answer": {"question": "It opens.", "noncommittal": "no"}}
    with serving(answer=vectors) as server:
        served = choice(server.url)
        found = evaluate(ROWS, ["answer_semantic_similarity"], embeddings=served)
        assert found["answer_similarity"] == pytest.approx(0.8)
        server.bodies.clear()
        judged = evaluate(
            ROWS,
            ["answer_relevancy"],
            judge=FakeJudge(says),
            judge_for=["answer_relevancy"],
            embeddings=served,
        )
        assert judged["answer_relevancy"] == pytest.approx(0.0)
        assert [body["input"] for body in server.bodies] == [["Is it open?", "It opens."]]


def test_evaluate_takes_it_and_never_mixes_two(tmp_path: Path) -> None:
    """A run says whose vectors it has; others neither go on nor compare."""
    lab = tmp_path / "lab.jsonl"
    lab.write_text("\n".join(map(json.dumps, ROWS)))
    asked = ["evaluate", str(lab), "-e", "answer_semantic_similarity", "--workers", "1"]
    asked += ["--no-report", "--step-limit", "60"]

    def run(folder: str, *words: str) -> Any:
        return CliRunner().invoke(app, [*asked, "-o", str(tmp_path / folder), *words])

    with serving(answer=vectors) as server:
        named = ["--embeddings", server.url, "--embeddings-model"]
        assert run("a", *named, "m").exit_code == 0
        calls = len(server.bodies)
        assert run("a", *named, "m").exit_code == 0
        assert len(server.bodies) == calls
        assert run("a", *named, "other").exit_code == 2
        configured = configure(
            ["answer_semantic_similarity"], embeddings=HostChoice(server.url, model="other")
        )
        evaluate_lab(open_lab(lab), configured, RunOptions(tmp_path / "b"))
        assert run("c", "--embeddings-model", "m").exit_code == 2
        server.answer = lambda _body: Reply({}, status=401)
        assert run("d", *named, "m").exit_code != 0
    (board,) = json.loads((tmp_path / "a" / "leaderboards.json").read_text())
    assert board["embeddings"] == {"address": server.url, "model": "m"}
    assert "Embeddings: m." in (tmp_path / "a" / "leaderboards.md").read_text()
    with pytest.raises(ConfigurationError, match="another backend"):
        compare(tmp_path / "a", tmp_path / "b")
    two = [read_run_data(tmp_path / folder) for folder in ("a", "b")]
    with pytest.raises(ConfigurationError, match="one embedding model"):
        side_by_side(two)
    assert not two[0].evaluators["answer_semantic_similarity"].cuts
