"""One evaluation run: cut the lab, score the shards, put the results together. Resumable.

Every step writes whole files only. A run that is stopped, even by kill -9, and started again with
the same lab and settings goes on where it was, and ends with the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardrail_offline.datasets.labs import LabSource
from guardrail_offline.evaluators.configured import Configured, config_sha256
from guardrail_offline.hosts.chat import ChatHost
from guardrail_offline.hosts.log_probabilities import open_language_model
from guardrail_offline.hosts.text_vectors import open_text_vectors
from guardrail_offline.runs.fair_averages import in_averages, why_unanswered
from guardrail_offline.runs.grammar_groups import (
    GRAMMAR,
    GrammarGroups,
    grammar_markdown,
    grammar_problems,
)
from guardrail_offline.runs.insights import NotableCases, insights
from guardrail_offline.runs.judge_runs import (
    JudgeCounts,
    JudgeProgress,
    JudgeRun,
    manifest_digest,
    with_transcripts,
)
from guardrail_offline.runs.leaderboards import leaderboard, markdown
from guardrail_offline.runs.model_figures import ModelFigures
from guardrail_offline.runs.pool import Pool
from guardrail_offline.runs.problems import WorstCases, problems
from guardrail_offline.runs.rankings import CommonQuestions
from guardrail_offline.runs.result_files import ResultLayout
from guardrail_offline.runs.run_folder import SUMMARY, TIMINGS, is_cut, planned, sweep
from guardrail_offline.runs.sample_estimates import SAMPLE, SampleEstimates, sample_markdown
from guardrail_offline.runs.score_tables import (
    OPEN_RAG_EVAL,
    OpenRagEvalSheet,
    ResultFiles,
    long_table,
    runs_of,
)
from guardrail_offline.runs.several_answers import SEVERAL_ANSWERS
from guardrail_offline.runs.shard_tallies import tallies_of
from guardrail_offline.runs.shards import (
    JsonList,
    Layout,
    ScoredCase,
    ShardPlan,
    by_group,
    cut,
    in_order,
    read_scored,
    whole_file,
    write_json,
)
from guardrail_offline.runs.totals import EvaluatorTally, Missing
from guardrail_offline.runs.worker import embeddings_of, models_for, write_scores
from guardrail_service.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from guardrail_offline.runs.ray_engine import Cluster

SHARD_ROWS = 200


@dataclass(frozen=True)
class RunOptions:
    """The settings of a run; none of them moves a score that is computed.

    Attributes:
        out: Folder of the results; made if it is not there.
        pack: Model pack.
        workers: Processes; 1 scores in this one, unless there is a time limit.
        step_limit_s: Longest an evaluator may take for the cases of one question. One that takes
            longer is ended, and its cases of that shard get the state `error`. None sets none.
        shard_rows: Cases a shard has at least about; smaller shards lose less when stopped.
        texts: Whether question, answer and passages are kept.
        missing: What a missing answer counts on boards and in findings.
        asked: Told how far the judge is, after each case that it was asked about.
        host: Who answers for the judge, in the place of its address.
        cluster: The Ray cluster that scores; None for processes of this machine.
        advance: Called with the number of cases of each finished shard.
        begin: Called with the number of cases before the first.
        layout: Of the result files: `keys`, or `h2o` for the whole case in every row.
    """

    out: Path
    pack: str = "embedded"
    workers: int = 1
    shard_rows: int = SHARD_ROWS
    texts: bool = True
    step_limit_s: float | None = None
    begin: Callable[[int], None] = lambda _cases: None
    advance: Callable[[int], None] = lambda _cases: None
    layout: ResultLayout = "keys"
    missing: Missing = "both"
    asked: Callable[[JudgeProgress], None] = lambda _progress: None
    host: ChatHost | None = None
    cluster: Cluster | None = None


@dataclass(frozen=True)
class Summary:
    """The counts of a finished run.

    Attributes:
        cases: How many cases the lab has.
        computed: Of each evaluator, on how many cases it has at least one number.
        missing: Of each evaluator, the reasons for missing primary metrics with their counts.
        declined: Evaluators without any number.
        errors: Of each evaluator that failed on some cases, on how many.
        unanswered: Of each model that did not answer some cases, how many for which reason.
    """

    cases: int
    computed: Mapping[str, int]
    missing: Mapping[str, Mapping[str, int]]
    problems: int = 0
    flips: int = 0
    declined: tuple[str, ...] = field(default=())
    errors: Mapping[str, int] = field(default_factory=dict)
    unanswered: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def evaluate_lab(lab: LabSource, configured: Sequence[Configured], options: RunOptions) -> Summary:
    """Run evaluators over a lab and write everything under `options.out`.

    A finished run whose shards were deleted is not computed again: what it found is returned.

    Raises:
        ConfigurationError: If the lab is empty or wrong, or the folder holds another run or
            anything else.
        MissingExtra: If a library of rag-guardrail-offline is not installed.
    """
    layout = Layout(options.out)
    configured = with_transcripts(configured, layout)
    fingerprints = fingerprints_of(configured, options.pack)
    manifest = _manifest(lab, configured, options, fingerprints)
    plan = planned(lab, layout, manifest)
    sweep(layout, plan, configured)
    options.begin(plan.cases)
    if not is_cut(layout, plan):
        if (layout.out / SUMMARY).exists():
            options.advance(plan.cases)
            return _stored(layout.out / SUMMARY)
        cut(lab, layout, options.shard_rows, plan.shards)
    run = manifest_digest(manifest)
    asking = JudgeRun(layout, plan, configured, run, options.host)
    if options.cluster is None or asking.is_replay:
        asking.ask(options.asked)
    summary = finished(layout, plan, configured, fingerprints, options, run)
    asking.close()
    return summary


def finished(
    layout: Layout,
    plan: ShardPlan,
    configured: Sequence[Configured],
    fingerprints: Mapping[str, str],
    options: RunOptions,
    run: str = "",
) -> Summary:
    """Score the shards that have no scores, put the results together and return the counts."""
    _score(layout, plan, configured, options, fingerprints, run)
    write_json(layout.out / TIMINGS, _timings(layout, plan))
    return _assemble(layout, plan, configured, fingerprints, options)


def fingerprints_of(configured: Sequence[Configured], pack: str) -> dict[str, str]:
    """Return what the scores depend on beside the parameters; only what is used of the pack."""
    from guardrail_offline.runs.worker import needs_models
    from guardrail_service.detectors.registry import REGISTRY
    from guardrail_service.policy.fingerprints import rule_versions
    from guardrail_service.server.runtime import pack_at_hand, serving_for
    from guardrail_service.text.segmentation.sentences import SEGMENTER_VERSION

    if not needs_models(one.evaluator.spec for one in configured):
        return {"segmenter": SEGMENTER_VERSION, **rule_versions(REGISTRY.specs())}
    return dict(serving_for(pack_at_hand(pack)).fingerprints)


def _manifest(
    lab: LabSource,
    configured: Sequence[Configured],
    options: RunOptions,
    fingerprints: Mapping[str, str],
) -> dict[str, Any]:
    mapping = {"mapping": dict(lab.reader.mapping)} if lab.reader.mapping else {}
    return {
        "schema_version": "1",
        "lab": {"name": lab.name, "sha256": lab.sha256, **mapping},
        "evaluators": {one.id: one.as_json() for one in configured},
        "config_sha256": config_sha256(configured, fingerprints),
        "fingerprints": dict(fingerprints),
        "shard_rows": options.shard_rows,
        "texts": options.texts,
        **({"layout": options.layout} if options.layout != "keys" else {}),
        **({"missing": options.missing} if options.missing != "both" else {}),
        **({} if lab.size is None else {"sample": asdict(lab.size)}),
    }


def _stored(path: Path) -> Summary:
    """Return the summary of a finished run."""
    try:
        content = json.loads(path.read_text("utf-8"))
        return Summary(**content | {"declined": tuple(content["declined"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            str(path), "no summary of a run", "the file of evaluate"
        ) from error


def _score(
    layout: Layout,
    plan: ShardPlan,
    configured: Sequence[Configured],
    options: RunOptions,
    fingerprints: Mapping[str, str],
    run: str,
) -> None:
    """Score the shards that have no scores yet: here, in a pool of processes or on a cluster."""
    left = []
    for shard in range(plan.shards):
        if layout.scores(shard).exists():
            with layout.scores(shard).open("rb") as lines:
                options.advance(sum(1 for _ in lines))
        else:
            left.append(shard)
    workers = min(options.workers, len(left))
    if not left:
        return
    _say_something(configured)
    if options.cluster is not None:
        from guardrail_offline.runs.ray_engine import RayPool

        far = RayPool(
            layout, configured, options.pack, options.step_limit_s, fingerprints, run,
            options.cluster,
        )  # fmt: skip
        far.asked = options.asked
        for cases in far.score(left):
            options.advance(cases)
        return
    if workers == 1 and options.step_limit_s is None:
        models = models_for(configured, options.pack)
        for shard in left:
            options.advance(write_scores(layout, shard, configured, models))
        return
    pool = Pool(layout, configured, options.pack, workers, options.step_limit_s)
    for cases in pool.score(left):
        options.advance(cases)


def _timings(layout: Layout, plan: ShardPlan) -> dict[str, dict[str, float]]:
    """Return by evaluator the processor seconds, over how many cases; the slowest first.

    Shards of version 0.1.0 say nothing about it.
    """
    found: dict[str, dict[str, float]] = {}
    for shard in range(plan.shards):
        if not layout.times(shard).exists():
            continue
        times = json.loads(layout.times(shard).read_text("utf-8"))
        for name, seconds in times["cpu_s"].items():
            entry = found.setdefault(name, {"cpu_s": 0.0, "cases": 0})
            entry["cpu_s"] += seconds
            entry["cases"] += times["cases"]
    return dict(sorted(found.items(), key=lambda item: -item[1]["cpu_s"]))


def _say_something(configured: Sequence[Configured]) -> None:
    """Ask served models once, so that one that cannot be asked stops the run at once.

    Raises:
        HostError: If one does not say how likely a text is, or does not embed it.
    """
    served = next((one.language_model for one in configured if one.language_model), None)
    if served is not None:
        open_language_model(served).log_probabilities("", "This is a sentence.")
    compared = embeddings_of(configured)
    if compared is not None:
        open_text_vectors(compared).embed(["This is a sentence."])


def _assemble(
    layout: Layout,
    plan: ShardPlan,
    configured: Sequence[Configured],
    fingerprints: Mapping[str, str],
    options: RunOptions,
) -> Summary:
    tallies = tallies_of(layout, plan, configured)
    boards = [
        leaderboard(one, plan.models, options.missing, tallies.unanswered)
        for one in tallies.evaluators
    ]
    write_json(layout.out / "leaderboards.json", boards)
    with whole_file(layout.out / "leaderboards.md") as stream:
        stream.write(markdown(boards))
    asked = JudgeCounts(configured)
    files = ResultFiles(
        layout.out / "results",
        configured,
        fingerprints,
        texts=options.texts,
        layout=options.layout,
    )
    with long_table(layout.out / "scores.parquet") as table:
        for scored in in_order(layout, plan.shards):
            files.add(scored)
            table.add(scored)
            asked.add(scored.results)
    files.close(plan.models)
    if asked.is_judged:
        write_json(layout.out / "judge.json", asked.as_json())
    return _findings(layout, plan, configured, tallies.evaluators, options.missing)


def _findings(
    layout: Layout,
    plan: ShardPlan,
    configured: Sequence[Configured],
    tallies: Sequence[EvaluatorTally],
    missing: Missing,
) -> Summary:
    """Write what takes the cases of a question together, then problems, insights and summary."""
    flips, notes = _flip_tally(configured), NotableCases(configured)
    grammar, runs = GrammarGroups(), 1
    worst, figures = WorstCases(configured), ModelFigures()
    common = [CommonQuestions(tally, missing) for tally in tallies]
    silent: dict[str, Counter[str]] = {}
    told = plan.sample and SampleEstimates(configured, plan.models, plan.sample)
    with ExitStack() as lists:
        several = [
            kind(configured, lists.enter_context(JsonList(layout.out / name)).add)
            for name, kind in SEVERAL_ANSWERS.items()
        ]
        for whole in _groups(layout, plan):
            flips.add(whole)
            grammar.add(whole)
            group = [in_averages(scored, configured) for scored in whole]
            worst.add(group)
            figures.add(group)
            for answers in several:
                answers.add(group)
            notes.add(group)
            if told:
                told.add(group)
            for one in common:
                one.add(group)
            for scored in group:
                if reason := why_unanswered(scored):
                    silent.setdefault(scored.case.model, Counter())[reason] += 1
            runs = max(runs, runs_of(group))
    if {evaluator for evaluator, _ in OPEN_RAG_EVAL.values()} & {one.id for one in configured}:
        with whole_file(layout.out / "open_rag_eval.csv") as stream:
            sheet = OpenRagEvalSheet(stream, runs, several_models=len(plan.models) > 1)
            for group in _groups(layout, plan):
                sheet.add(group)
    from guardrail_offline.runs.flips import flip_problems

    flipped = flips.as_json()
    found = [*problems(tallies, plan.models, worst, figures), *flip_problems(flipped)]
    found += _grammar(layout, plan, grammar)
    if told:
        content = told.as_json()
        write_json(layout.out / SAMPLE, content)
        primary = {one.id: one.evaluator.spec.primary.key for one in configured}
        _append(layout.out / "leaderboards.md", sample_markdown(content, primary))
    write_json(layout.out / "flips.json", flipped)
    write_json(layout.out / "problems.json", found)
    write_json(layout.out / "insights.json", insights(common, plan.models, notes))
    counts = _summary(plan, tallies, len(found), len(flipped["flips"]))
    by_model = {model: dict(sorted(reasons.items())) for model, reasons in silent.items()}
    summary = replace(counts, unanswered=by_model)
    write_json(layout.out / SUMMARY, asdict(summary))
    return summary


def _grammar(layout: Layout, plan: ShardPlan, groups: GrammarGroups) -> list[dict[str, Any]]:
    """Write what is known of groups of generated cases, where there are any; return problems."""
    content = groups.as_json(plan.models)
    if content is None:
        return []
    write_json(layout.out / GRAMMAR, content)
    _append(layout.out / "leaderboards.md", grammar_markdown(content))
    return list(grammar_problems(content))


def _append(path: Path, text: str) -> None:
    """Add a part to a Markdown file, whole or not at all."""
    before = path.read_text("utf-8")
    with whole_file(path) as stream:
        stream.write(f"{before}\n{text}")


def _flip_tally(configured: Sequence[Configured]) -> Any:
    try:
        from guardrail_offline.runs.flips import FlipTally
    except ImportError as error:  # scipy
        raise MissingExtra("rag-guardrail-offline") from error
    return FlipTally(configured)


def _groups(layout: Layout, plan: ShardPlan) -> Iterator[list[ScoredCase]]:
    for shard in range(plan.shards):
        scored = {one.index: one for one in read_scored(layout, shard)}
        for group in by_group((one.index, one.case) for one in scored.values()):
            yield [scored[index] for index, _ in group]


def _summary(plan: ShardPlan, tallies: Sequence[EvaluatorTally], found: int, flips: int) -> Summary:
    missing: dict[str, dict[str, int]] = {}
    for tally in tallies:
        reasons: dict[str, int] = {}
        for metrics in tally.metrics.values():
            for reason, count in metrics[tally.evaluator.spec.primary.key].missing.items():
                reasons[reason] = reasons.get(reason, 0) + count
        missing[tally.configured.id] = dict(sorted(reasons.items()))
    computed = {tally.configured.id: tally.computed for tally in tallies}
    declined = tuple(name for name, count in computed.items() if not count)
    errors = {tally.configured.id: tally.errors for tally in tallies if tally.errors}
    return Summary(plan.cases, computed, missing, found, flips, declined, errors)
