"""A real small language model answers generated questions; `.ci/grammar` has it.

It is wired, and no more: a model of 135M parameters is often wrong. Truth, passages and blame do
not depend on how good it is.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.test_grammar_example import EXAMPLE, guardrail

pytestmark = [
    pytest.mark.timeout(1500),
    # The command leaves its connection to the end of its process, and here that goes on.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
QUESTIONS = 6
SYSTEM = "Answer from the passages, in a few words."


def test_a_small_model_is_asked_scored_and_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The encoder finds the passages, the model reads them, and every wrong answer has a reason."""
    from tests.vendors.senders import model_server

    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setenv("COMPANY", str(tmp_path))
    import company_rag  # type: ignore[import-not-found]
    import make_company  # type: ignore[import-not-found]

    make_company.write(tmp_path)
    for cached in ("documents", "vectors", "swapped"):
        getattr(company_rag, cached).cache_clear()
    database, labels = tmp_path / "company.db", ("--labels", tmp_path / "labels.json")
    templates, lab = tmp_path / "templates.json", tmp_path / "lab.jsonl"
    guardrail("grammar", "templates", database, *labels, "--joins", 0, "-o", templates)
    words = ("--cases", QUESTIONS, "-t", templates, "-o", lab)
    guardrail("grammar", "generate", database, *labels, *words)
    cases = [json.loads(line) for line in lab.read_text("utf-8").splitlines()]
    found = [{**case, "context": company_rag.find(case["input"])} for case in cases]
    lab.write_text("".join(json.dumps(case) + "\n" for case in found), "utf-8")
    user = {"role": "user", "content": "{contexts}\n\nQuestion: {question}"}
    body = {"messages": [{"role": "system", "content": SYSTEM}, user], "max_tokens": 40}
    asked, target = tmp_path / "asked.json", tmp_path / "target.json"
    with model_server() as address:
        url = f"{address}/v1/chat/completions"
        answer = "choices.0.message.content"
        content = {"url": url, "body": {**body, "temperature": 0}, "answer": answer}
        target.write_text(json.dumps(content))
        words = ("--target", target, "-o", asked, "--timeout", 300, "--concurrency", 1)
        guardrail("ask", lab, *words)
    guardrail("grammar", "score", asked, "-o", tmp_path / "run")
    (model,) = json.loads((tmp_path / "run" / "grammar.json").read_text("utf-8"))["models"]
    assert (model["cases"], model["unanswered"]) == (QUESTIONS, 0)
    assert model["retrieval"]["accuracy"] == 1.0
    wrong = sum(rung["wrong"] for rung in model["levels"].values())
    blamed = {name: n for kind in model["blame"].values() for name, n in kind.items() if n}
    assert blamed == ({"language_model": wrong} if wrong else {})
