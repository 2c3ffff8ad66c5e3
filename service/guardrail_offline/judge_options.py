"""The options of commands that name a judge, and the choice of backends that they make."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail_service.commands.console import err, plain
from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_offline.evaluators.backends import BackendChoice
    from guardrail_offline.hosts.opening import HostChoice
    from guardrail_offline.judge.judge_settings import JudgeSettings
    from guardrail_offline.runs.judge_runs import JudgeProgress

_TOLD_EVERY_S = 10.0
JudgeUrl = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="URL",
        help="Host of a judge: https://host/v1 (OpenAI-compatible), azure+https://..., "
        "ollama+http://..., bedrock:REGION, python:MODULE:FUNCTION ... Its key: "
        "GUARDRAIL_JUDGE_API_KEY, else OPENAI_API_KEY.",
    ),
]
JudgeModel = Annotated[str | None, typer.Option(help="The judge's name on its server.")]
JudgeFor = Annotated[
    str | None,
    typer.Option(help="Evaluators that the judge computes, with commas; all for all it can."),
]
BackendOption = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        metavar="[EVALUATOR=]judge|nli|surrogate",
        help="How an evaluator, or every one that can, gets its numbers; repeatable.",
    ),
]
JudgeStore = Annotated[
    Path | None,
    typer.Option(help="File of the judge's transcripts; in the folder of the run if unset."),
]
JudgeMode = Annotated[
    str,
    typer.Option(help="read-write; replay asks nobody; off keeps nothing beyond the run."),
]
Budget = Annotated[
    float | None, typer.Option(min=0, help="Most the judge may cost, in the currency of --prices.")
]
Prices = Annotated[
    Path | None,
    typer.Option(help='JSON per million tokens: {"MODEL": {"input": .15, "output": .6}}.'),
]
JudgeFile = Annotated[
    Path | None,
    typer.Option(
        "--judge-settings", help="JSON: url, model, options, concurrency, limits, time-outs."
    ),
]
JudgeKind = Annotated[
    str | None,
    typer.Option(
        help="Kind of the judge's host, where its address does not say it: openai, azure, ollama, "
        "llamacpp, assistants, bedrock, bedrock-rag, template or python."
    ),
]
RequestsPerMinute = Annotated[
    float | None, typer.Option("--rpm", help="Most requests to the judge in a minute.")
]
TokensPerMinute = Annotated[
    float | None,
    typer.Option("--tpm", help="Most tokens in a minute, sent to the judge and received."),
]
JudgeTimeout = Annotated[
    float | None, typer.Option(help="Seconds for one try of a question; 60 if unset.")
]
LanguageModelUrl = Annotated[
    str | None,
    typer.Option(
        "--language-model",
        metavar="URL",
        help="Served model for perplexity and GPTScore: https://host/v1 with completions that "
        "echo, or llamacpp+http://host:port. Its key: GUARDRAIL_LANGUAGE_MODEL_API_KEY.",
    ),
]
LanguageModelName = Annotated[
    str | None, typer.Option(help="The language model's name on its server.")
]
EmbeddingsUrl = Annotated[
    str | None,
    typer.Option(
        "--embeddings",
        metavar="URL",
        help="Served embedding model for answer similarity and answer relevancy: https://host/v1, "
        "azure+, ollama+ or llamacpp+. Its key: GUARDRAIL_EMBEDDINGS_API_KEY.",
    ),
]
EmbeddingsModel = Annotated[
    str | None, typer.Option(help="The embedding model's name on its server.")
]
Redact = Annotated[bool, typer.Option("--redact", help="Keep no text in the judge's transcripts.")]


def judge_settings(url: str | None, model: str | None, **options: Any) -> JudgeSettings | None:
    """Return the judge that options name, as `named_judge` does; None if they name none.

    Raises:
        ConfigurationError: If there are options for a judge, and no judge.
    """
    if url is None and options.get("file") is None:
        given = {name for name, value in options.items() if value and value != "read-write"}
        given |= {"model"} if model is not None else set()
        if given:
            found = f"nothing, beside {', '.join(sorted(given))} of a judge"
            raise ConfigurationError("--judge", found, "its address, or --judge-settings")
        return None
    return named_judge(url, model, **options)


def named_judge(
    url: str | None,
    model: str | None,
    *,
    file: Path | None = None,
    store: Path | None = None,
    mode: str = "read-write",
    budget: float | None = None,
    prices: Path | None = None,
    redact: bool = False,
    kind: str | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    timeout: float | None = None,
) -> JudgeSettings:
    """Return the judge that options and a file of settings name; options come first.

    Raises:
        ConfigurationError: If one of them cannot be used.
    """
    from guardrail_offline.hosts.opening import parse_address
    from guardrail_offline.hosts.prices import read_prices
    from guardrail_offline.judge.judge_settings import read_settings

    found = read_settings(
        file,
        {} if prices is None else read_prices(prices),
        url=url,
        model=model,
        store=store,
        mode=mode,
        budget=budget,
        keep_texts=False if redact else None,
        kind=kind,
        requests_per_minute=rpm,
        tokens_per_minute=tpm,
        timeout_s=timeout,
    )
    if found.kind is not None:
        parse_address(found.url, found.kind, "--judge")
    return found


def language_model_choice(url: str | None, model: str | None) -> HostChoice | None:
    """Return the served language model that options name; None if they name none.

    Raises:
        ConfigurationError: If they name a model and no address.
    """
    from guardrail_offline.hosts.opening import served_choice

    if url is None:
        if model is not None:
            raise ConfigurationError("--language-model", "nothing", "the address of its server")
        return None
    return served_choice("--language-model", url, model, "--language-model-name")


def embeddings_choice(url: str | None, model: str | None) -> HostChoice | None:
    """Return the served embedding model that options name; None if they name none.

    Raises:
        ConfigurationError: If they name a model and no address.
    """
    from guardrail_offline.hosts.opening import served_choice

    if url is None:
        if model is not None:
            raise ConfigurationError("--embeddings", "nothing", "the address of its server")
        return None
    return served_choice("--embeddings", url, model)


def backend_choice(
    judge: JudgeSettings | None, judge_for: str | None, backends: list[str] | None
) -> BackendChoice:
    """Return the backend of each evaluator, as options choose it.

    Raises:
        ConfigurationError: If an evaluator or backend is unknown, or there is no judge to ask.
    """
    from guardrail_offline.evaluators.backends import choice_of

    names = [name.strip() for name in (judge_for or "").split(",") if name.strip()]
    return choice_of(judge, names, backends or ())


def progress_line(progress: JudgeProgress) -> str:
    """Return how far a judge is, for people."""
    cost = "" if progress.cost is None else f", cost so far {progress.cost:.4g}"
    return f"judge: {progress.cases} of {progress.of} cases, {progress.calls} calls{cost}"


class JudgeTeller:
    """Tells a person how far the judge is and what it has cost: every few seconds, and at the end.

    Reasons for which nobody is asked any more are told once.
    """

    def __init__(self) -> None:
        self._next, self._stopped = 0.0, False

    def __call__(self, progress: JudgeProgress) -> None:
        """Tell of one more case."""
        now = time.monotonic()
        if now >= self._next or progress.cases == progress.of:
            self._next = now + _TOLD_EVERY_S
            err.print(progress_line(progress), highlight=False, soft_wrap=True)
        if progress.stopped and not self._stopped:
            self._stopped = True
            told = f"the judge is not asked any more: {progress.stopped}"
            err.print(f"[yellow]note[/yellow] {plain(told)}", soft_wrap=True)


def judge_lines(folder: Path) -> Iterator[str]:
    """Yield what a judge was asked in a run, and how much of it has no answer."""
    path = folder / "judge.json"
    if not path.exists():
        return
    content = json.loads(path.read_text("utf-8"))
    for name, one in content["evaluators"].items():
        failed = {key: count for key, count in one["statuses"].items() if key != "ok"}
        told = ", ".join(f"{count} {status}" for status, count in failed.items()) or "all answered"
        tokens = one["prompt_tokens"] + one["completion_tokens"]
        cost = "" if one["cost"] is None else f", cost {one['cost']:.4g}"
        by = content["judge"]["model"]
        yield f"{name} by {by}: {one['calls']} calls, {told}, {tokens} tokens{cost}"


def prompts_text(evaluator_id: str) -> str:
    """Return what a judge is asked for an evaluator, prompt after prompt.

    Raises:
        ConfigurationError: If it has no form with a judge.
    """
    from guardrail_offline.evaluators.judge_forms import form_of
    from guardrail_service.errors import ConfigurationError

    form = form_of(evaluator_id)
    if form is None:
        found = f"{evaluator_id}, which has no form with a judge"
        raise ConfigurationError("--prompt", found, "an evaluator that a judge can compute")
    return "\n\n".join(f"# {task.name}\n\n{task.system()}" for task in form.tasks)
