"""A lab's questions are asked of a small model behind llama.cpp's OpenAI-compatible server."""

from __future__ import annotations

from pathlib import Path

from guardrail_offline.datasets.cases import Case
from guardrail_offline.hosts.asking import Journal, ask_cases
from guardrail_offline.hosts.endpoint import Endpoint, Patience
from guardrail_offline.hosts.openai_compatible import OpenAICompatible
from guardrail_offline.hosts.targets import ChatTarget
from guardrail_service.types import Passage
from tests.integration.conftest import PATIENCE_S
from tests.vendors.senders import model_server

PASSAGE = Passage("The boat house opens at nine and lends rowing boats for eight euros an hour.")
QUESTIONS = ("When does the boat house open?", "What does a boat cost?", "Who lends boats?")


def test_a_model_that_runs_here_answers_a_lab_once(tmp_path: Path) -> None:
    """Every answer is text with its time, and a second run asks nothing."""
    cases = [Case(f"k{n}", text, contexts=(PASSAGE,)) for n, text in enumerate(QUESTIONS)]
    with model_server() as address:
        endpoint = Endpoint(f"{address}/v1", limits=Patience(timeout_s=PATIENCE_S, retries=1))
        model = OpenAICompatible(endpoint, "smollm2")
        said = model.chat([{"role": "user", "content": "Say hello."}], max_tokens=4, temperature=0)
        assert said.finish in ("stop", "length")
        assert said.tokens is not None
        assert 1 <= said.tokens[1] <= 4
        target = ChatTarget(model, options={"temperature": 0, "max_tokens": 24})
        path = tmp_path / "answers.jsonl"
        first = ask_cases(cases, target, Journal(path), concurrency=2)
        second = ask_cases(cases, target, Journal(path), concurrency=2)
        endpoint.close()
    assert (first.answered, first.failed, second.remembered) == (3, {}, 3)
    assert all(case.answer and case.duration_s for case in first.cases)
    assert second.cases == first.cases
