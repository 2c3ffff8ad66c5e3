"""The commands that write labs: for another suite, with variants, with a system's answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail_offline.evaluation_commands import (
    EXIT_INCOMPLETE,
    LabArgument,
    MapOption,
    names_in,
    write_text,
)
from guardrail_service.commands.console import AsJson, command, late_progress_bar, out, plain
from guardrail_service.errors import ConfigurationError

if TYPE_CHECKING:
    from guardrail_offline.datasets.cases import Case
    from guardrail_offline.datasets.labs import LabSource
    from guardrail_offline.hosts.asking import Asked


@command
def convert(
    lab: LabArgument,
    out_file: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    to: Annotated[
        str,
        typer.Option(
            help="h2o, h2o-suite, deepeval, ragas, ragas-0.1, ragchecker, langsmith, llama_index, "
            "bedrock or open_rag_eval."
        ),
    ] = "h2o",
    map_: MapOption = None,
) -> None:
    """Write a lab as another suite reads it, and say which fields that suite has no place for."""
    from guardrail_offline.datasets.suite_files import SUITE_FORMATS, lost

    if to != "h2o" and to not in SUITE_FORMATS:
        raise ConfigurationError("--to", repr(to), f"h2o or one of {', '.join(SUITE_FORMATS)}")
    source = opened(lab, map_)
    cases = list(source.cases())
    without: list[str] = []
    if to == "h2o":
        write_lab(out_file, cases, source)
    else:
        suite = SUITE_FORMATS[to]
        if out_file.suffix != suite.ending:
            raise ConfigurationError("--out", repr(out_file.suffix), f"a {suite.ending} file")
        write_text("--out", out_file, suite.text(cases))
        without = lost(suite, cases)
    out.print(f"{len(cases)} cases in {plain(str(out_file))}")
    if without:
        out.print(f"[yellow]note[/yellow] {to} has no place for: {', '.join(without)}")


@command
def perturb(
    lab: LabArgument,
    out_file: Annotated[Path, typer.Option("--out", "-o", help="Lab to write, in H2O's JSON.")],
    by: Annotated[
        str, typer.Option(help="Perturbations with commas; + makes a chain: comma,qwerty+synonym.")
    ] = "random_keyboard_typos,comma,word_swap,synonym",
    intensity: Annotated[str, typer.Option(help="low, medium and high, with commas.")] = "medium",
    seed: Annotated[int, typer.Option(help="The same seed gives the same variants.")] = 0,
    lexicon: Annotated[
        str,
        typer.Option(
            help="Synonyms and opposites: shipped, wordnet (Debian's), or auto: WordNet if it is "
            "there."
        ),
    ] = "auto",
    map_: MapOption = None,
    as_json: AsJson = False,
) -> None:
    """Add perturbed variants of a lab's questions, linked to their sources, without answers.

    Let `guardrail ask` fill in the answers, or fill them in yourself, and evaluate: flips are
    reported.
    """
    from guardrail_offline.perturbation import lexicon as lexicons
    from guardrail_offline.perturbation import variants

    source = opened(lab, map_)
    levels = [level for level in variants.INTENSITIES if level in names_in(intensity)]
    if len(levels) != len(names_in(intensity)):
        expected = "low, medium or high, each once, with commas"
        raise ConfigurationError("--intensity", repr(intensity), expected)
    chains = [variants.parse(name) for name in names_in(by)]
    known = lexicons.named(lexicon)
    made = variants.perturb(source.cases(), chains, levels, seed, known)
    write_lab(out_file, made.cases, source)
    report = {
        "cases": len(made.cases),
        "added": made.added,
        "unchanged": list(made.unchanged),
        "present": list(made.present),
        "lexicon": known.name,
    }
    if as_json:
        out.print_json(json.dumps(report), ensure_ascii=True)
        return
    out.print(
        f"{made.added} variants added, {len(made.present)} were there already, "
        f"{len(made.unchanged)} had nothing to change; "
        f"{len(made.cases)} cases in {plain(str(out_file))} (words: {known.name})"
    )


@command
def ask(
    lab: LabArgument,
    out_file: Annotated[Path, typer.Option("--out", "-o", help="Lab to write, in H2O's JSON.")],
    target: Annotated[
        str,
        typer.Option(
            help="Who is asked: https://host/v1 (OpenAI-compatible), azure+https://..., "
            "ollama+http://..., assistants+https://..., bedrock:REGION, "
            "bedrock-rag:REGION?knowledge_base=ID, a template file (.json) for any other service, "
            "or python:MODULE:FUNCTION."
        ),
    ],
    target_model: Annotated[
        str | None,
        typer.Option(help="The model's name on the host; deployment, assistant's id, ARN."),
    ] = None,
    target_kind: Annotated[
        str | None,
        typer.Option(
            help="The host's protocol, where the address does not say it: openai, azure, ollama, "
            "assistants, bedrock, bedrock-rag, template or python."
        ),
    ] = None,
    target_settings: Annotated[
        Path | None,
        typer.Option(help="JSON object with fields of every request, sent as they are."),
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the key that is sent.")
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(help="JSON with prices per million tokens, by model: fills in the cost."),
    ] = None,
    for_: Annotated[
        str | None, typer.Option("--for", help="Ask only for the cases of this model of the lab.")
    ] = None,
    contexts: Annotated[bool, typer.Option(help="Give the lab's passages to the target.")] = True,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Questions at a time.")] = 4,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Requests a second at most.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds of one try.")] = 60.0,
    retries: Annotated[int, typer.Option(min=0, max=20, help="Tries after a failed one.")] = 4,
    map_: MapOption = None,
    as_json: AsJson = False,
) -> None:
    """Ask a system the questions of a lab that have no answer, and write the lab with its answers.

    Every answer is kept at once in a file beside the lab, its name with `.answers.jsonl` behind it;
    the same command asks only what is not there. Ends with 3 if questions are left without an
    answer.
    """
    from guardrail_offline.hosts.asking import Journal, ask_cases
    from guardrail_offline.hosts.endpoint import Patience
    from guardrail_offline.hosts.opening import HostChoice, read_host_settings
    from guardrail_offline.hosts.prices import calls_meta, price_of, read_prices
    from guardrail_offline.hosts.targets import open_target

    source = opened(lab, map_)
    cases = list(source.cases())
    limits = Patience(timeout, retries, rate)
    settings = read_host_settings(target_settings, "--target-settings")
    price = None if prices is None else price_of(read_prices(prices), target_model)
    choice = HostChoice(target, target_kind, target_model, key_env, settings, limits)
    asked_one = open_target(choice)
    journal = Journal(out_file.with_name(f"{out_file.name}.answers.jsonl"))
    with late_progress_bar("asking") as (begin, advance):
        begin(sum(case.answer is None for case in cases))
        found = ask_cases(
            cases,
            asked_one,
            journal,
            concurrency=concurrency,
            contexts=contexts,
            model=for_,
            price=price,
            advance=advance,
        )
    meta = {} if found.model is None else {found.model: calls_meta(found.calls)}
    write_lab(out_file, found.cases, source, meta)
    _show_asked(found, out_file, as_json=as_json)
    raise typer.Exit(EXIT_INCOMPLETE if found.failed else 0)


def opened(lab: Path, mapping: Sequence[str] | None = None) -> LabSource:
    """Return a lab to read, its columns named as `--map` says."""
    from guardrail_offline.datasets.labs import open_lab
    from guardrail_offline.datasets.suites import RecordReader, mapping_of

    return open_lab(lab, RecordReader(mapping_of(mapping or ())))


def write_lab(
    path: Path,
    cases: Iterable[Case],
    source: LabSource,
    meta: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write cases of a lab, some of them new or answered now, in H2O's JSON.

    Args:
        path: Of the file.
        cases: All.
        source: The lab they are from.
        meta: What the models' calls came to, by the model's key: `llm_model_meta`.
    """
    from guardrail_offline.datasets.cases import Lab, models_of
    from guardrail_offline.datasets.h2o_labs import lab_json
    from guardrail_offline.datasets.labs import beside

    located = tuple(beside(case, path) for case in cases)
    figures = meta or {}
    models = tuple(
        replace(model, details={**model.details, "llm_model_meta": dict(figures[model.key])})
        if model.key in figures
        else model
        for model in models_of(located, source.models)
    )
    lab = Lab(located, models, source.name)
    write_text("--out", path, json.dumps(lab_json(lab), indent=1) + "\n")


def _show_asked(found: Asked, out_file: Path, *, as_json: bool) -> None:
    from guardrail_offline.hosts.prices import calls_meta

    left = sum(found.failed.values())
    if as_json:
        counts = {"answered": found.answered, "remembered": found.remembered, "left": left}
        more = {"failed": dict(found.failed), "stopped": found.stopped}
        out.print_json(json.dumps({**counts, **more, "calls": calls_meta(found.calls)}))
        return
    out.print(
        f"{found.answered} questions answered, {found.remembered} were before, {left} are left; "
        f"{len(found.cases)} cases in {plain(str(out_file))}"
    )
    if (cost := calls_meta(found.calls).get("cost")) is not None:
        out.print(f"cost {cost:.4g}")
    for code, count in found.failed.items():
        out.print(f"[yellow]note[/yellow] {count} x {code}")
    if found.stopped:
        out.print(f"[yellow]note[/yellow] stopped: {plain(found.stopped)}", soft_wrap=True)
