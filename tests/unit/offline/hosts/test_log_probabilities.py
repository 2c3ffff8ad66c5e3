"""Two protocols give a text's log probabilities; a server that gives none is told apart."""

from __future__ import annotations

import math
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.hosts import errors
from guardrail_offline.hosts.endpoint import Patience
from guardrail_offline.hosts.errors import SILENT_AFTER
from guardrail_offline.hosts.log_probabilities import open_language_model
from guardrail_offline.hosts.opening import HostChoice
from guardrail_offline.runs.worker import score
from guardrail_service.errors import ConfigurationError, RowFailed
from tests.unit.offline.hosts.server import Reply, serving

LIKELY = {"Nile": -0.5, "Congo": -3.0, "banana": -9.0}


def pieces(text: str) -> list[str]:
    """Return the tokens of a text: words with the space before them."""
    found = text.replace(" ", "\n ").split("\n")
    return [piece for piece in found if piece]


def value_of(token: str) -> float:
    """Return how likely a token is, wherever it stands."""
    return LIKELY.get(token.strip(" ."), -1.0)


def echo(body: dict[str, Any]) -> Reply:
    """Reply as vLLM does: the prompt and one token more."""
    tokens = [*pieces(body["prompt"]), " more"]
    starts = [sum(map(len, tokens[:n])) for n in range(len(tokens))]
    values: list[Any] = [None, *map(value_of, tokens[1:])]
    told = {"tokens": tokens, "token_logprobs": values, "text_offset": starts}
    return Reply({"choices": [{"text": "", "logprobs": told}]})


class LlamaCpp:
    """A server that forgets nothing: tokens are numbers of words it met."""

    def __init__(self) -> None:
        self.words = ["<s>"]

    def __call__(self, method: str, path: str, body: dict[str, Any]) -> Reply:
        """Reply as llama.cpp does."""
        if path == "/props":
            return Reply({"bos_token": "<s>"})
        if path == "/tokenize":
            found = [body["content"]] if body["parse_special"] else pieces(body["content"])
            self.words += [word for word in found if word not in self.words]
            return Reply({"tokens": [self.words.index(word) for word in found]})
        ((token, _),) = body["logit_bias"]
        row = {"id": token, "logprob": value_of(self.words[token])}
        return Reply({"completion_probabilities": [row]})


def case(answer: str) -> Case:
    """Return a case with an answer."""
    return Case("k", "q", answer)


def test_an_echo_gives_the_texts_tokens_only() -> None:
    """Not those of the prompt, not the one that was written, and not the first of all."""
    with serving(answer=echo) as server:
        model = open_language_model(HostChoice(server.url, model="m"))
        assert model.log_probabilities("It is", " the Nile.").tolist() == [-1.0, -0.5]
        assert model.log_probabilities("", "It is Congo").tolist() == [-1.0, -3.0]
        assert model.log_probabilities("It i", "s the").tolist() == [-1.0, -1.0]
        with pytest.raises(RowFailed):
            model.log_probabilities("", "It")
    assert server.paths[0] == "/v1/completions"
    assert server.bodies[0] == {
        "model": "m", "prompt": "It is the Nile.", "max_tokens": 1, "temperature": 0,
        "echo": True, "logprobs": 1,
    }  # fmt: skip


def test_llama_cpp_writes_the_text_token_after_token() -> None:
    """Rows begin with its first token; only a text's first request reads the prompt anew."""
    with serving(route=LlamaCpp()) as server:
        address = server.url.removesuffix("/v1")
        model = open_language_model(HostChoice(f"llamacpp+{address}"))
        assert model.log_probabilities("It is", " the Nile.").tolist() == [-1.0, -0.5]
        with pytest.raises(RowFailed):
            model.log_probabilities("It", "")
        other = open_language_model(HostChoice(f"llamacpp+{address}?start=<eos>"))
        other.log_probabilities("", "It")
    asked = [body for body in server.bodies if "logit_bias" in body]
    assert [body["prompt"] for body in asked] == [[0, 1, 2], [0, 1, 2, 3], [5]]
    assert [body["cache_prompt"] for body in asked] == [False, True, False]


@pytest.mark.parametrize("kind", ["echo", "llamacpp"])
def test_perplexity_comes_from_a_served_model(kind: str) -> None:
    """With the evaluators of the pack's role, which the pack here does not have."""
    how: Any = {"answer": echo} if kind == "echo" else {"route": LlamaCpp()}
    with serving(**how) as server:
        choice = HostChoice(server.url, model="m")
        if kind == "llamacpp":
            choice = HostChoice(f"llamacpp+{server.url.removesuffix('/v1')}")
        chosen = configure(["perplexity", "bleu"], language_model=choice)
        assert {one.id: one.language_model for one in chosen} == {
            "perplexity": choice,
            "bleu": None,
        }
        perplexity = [one for one in chosen if one.id == "perplexity"]
        models = PackModels({})
        models.language_model = open_language_model(choice)
        found = [
            score([(0, case(f"It is the {name}."))], perplexity, models)[0]["perplexity"]
            for name in LIKELY
        ]
    values = [one.scores["perplexity"].value for one in found]
    count = 3 if kind == "echo" else 4
    assert values == pytest.approx(
        [math.exp((count - 1 - logprob) / count) for logprob in LIKELY.values()]
    )


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [{"text": " x", "logprobs": {"content": []}}]},  # llama.cpp asked to echo
        {"choices": []},
        {"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": [], "text_offset": [0]}}]},
        {"choices": [{"logprobs": {
            "tokens": ["a", "b"], "token_logprobs": [None, 0.5], "text_offset": [0, 1]}}]},
        {"choices": [{"logprobs": {
            "tokens": ["a", "b"], "token_logprobs": [None, "x"], "text_offset": [0, 1]}}]},
        [],
    ],
)  # fmt: skip
def test_anything_else_is_no_log_probability(value: Any) -> None:
    """And a probability above 1 is none."""
    with serving(Reply(value)) as server, pytest.raises(errors.BadReply):
        open_language_model(HostChoice(server.url, model="m")).log_probabilities("", "ab")


def test_a_model_that_cannot_be_asked_is_not_asked_for_every_case() -> None:
    """After a few texts without a reply, or at once with a wrong key, each case says why."""
    patience = Patience(retries=0)
    chosen = configure(["perplexity"])
    for status, asked, reason in ((503, SILENT_AFTER, "host_unavailable"), (401, 1, "wrong_key")):
        with serving(Reply({}, status=status)) as server:
            models = PackModels({})
            choice = HostChoice(server.url, model="m", limits=patience)
            models.language_model = open_language_model(choice)
            cases = [(n, Case(f"k{n}", "q", f"Answer {n}.")) for n in range(5)]
            found = score(cases, chosen, models)
            reasons = {one["perplexity"].scores["perplexity"].reason for one in found.values()}
            assert (reasons, len(server.bodies)) == ({reason}, asked)


def test_only_some_hosts_give_log_probabilities() -> None:
    """The others are refused by their names."""
    with pytest.raises(ConfigurationError, match=r"--lm: found ollama; expected .*llamacpp"):
        open_language_model(HostChoice("ollama+http://h", model="m", option="--lm"))
    with pytest.raises(ConfigurationError, match="--lm-name"):
        open_language_model(HostChoice("http://h", option="--lm", model_option="--lm-name"))
