"""Baselines beside toxicity and bias."""

from __future__ import annotations

import pytest

from guardrail_bench import safety_baselines
from guardrail_bench.safety_baselines import baselines, linear_model, word_list


def test_a_listed_word_counts_as_a_word_only() -> None:
    """Scunthorpe is a town."""
    texts = ["You IDIOTS!", "Scunthorpe and Essex", "the class is assigned", "kill -9"]
    assert word_list(texts, "toxicity") == [1.0, 0.0, 0.0, 1.0]


def test_the_linear_model_learns_each_metric_apart() -> None:
    """A metric without enough examples of both classes has no model."""
    train = [("rude words here", {"toxicity": True})] * 8
    train += [("kind words there", {"toxicity": False})] * 8
    score = linear_model(train, ["toxicity", "threat"])
    found = score(["rude", "kind"], "toxicity")
    assert found is not None
    assert found[0] > 0.5 > found[1]
    assert score(["rude"], "threat") is None


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline that is left out silently would look as if there were none."""
    monkeypatch.setattr(safety_baselines, "find_spec", lambda _name: None)
    found, notes = baselines([("a", {"toxicity": True})], ["toxicity"])
    assert [one.name for one in found] == ["word_list"]
    assert notes == [safety_baselines.NO_PROFANITY, safety_baselines.NO_SKLEARN]
    assert baselines([], ["toxicity"])[1][-1] == safety_baselines.NO_TRAINING


def test_another_tool_is_asked_only_about_what_it_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing about threats or bias."""

    class Module:
        @staticmethod
        def predict_prob(texts: list[str]) -> list[float]:
            """Return a probability for each text."""
            return [0.25 for _ in texts]

    monkeypatch.setattr(safety_baselines, "import_module", lambda _name: Module)
    assert safety_baselines.profanity_check(["a", "b"], "toxicity") == [0.25, 0.25]
    assert safety_baselines.profanity_check(["a"], "fairness_bias") is None
