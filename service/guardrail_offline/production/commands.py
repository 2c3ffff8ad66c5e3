"""The commands `guardrail replay` and `guardrail decisions report`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from guardrail_service.commands.console import (
    EXIT_FLAGGED,
    AsJson,
    PackOption,
    command,
    out,
    plain,
    settings_from,
)
from guardrail_service.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from guardrail_decisions import StoredDecision
    from guardrail_offline.production.replay import Judge, Replay
    from guardrail_service.policy.decide import Policy

P = ParamSpec("P")
EXIT_UNKNOWN = 3
"""More decisions cannot be replayed than may change."""
Source = Annotated[
    str,
    typer.Argument(
        envvar="GUARDRAIL_DECISIONS_URL",
        help="A store, as GUARDRAIL_DECISIONS_URL, or JSON lines that were exported.",
        show_envvar=False,
    ),
]
Since = Annotated[str | None, typer.Option(help="ISO date or time: decisions from then on.")]
Until = Annotated[str | None, typer.Option(help="ISO date or time: decisions before it.")]
OfPolicy = Annotated[
    str | None, typer.Option("--of", help="Decisions of the policy of this name only.")
]
KeysFile = Annotated[
    Path | None,
    typer.Option(envvar="GUARDRAIL_DECISIONS_KEYS_FILE", help="Keys of encrypted texts."),
]
Viewer = Annotated[str, typer.Option(help="Who reads texts; the store notes it.")]


def _reads_decisions(function: Callable[P, None]) -> Callable[P, None]:
    """Make a command of a function, and name what brings a library that is missing."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except ModuleNotFoundError as error:
            brings = {
                "guardrail_decisions": "rag-guardrail-decisions",
                "sqlalchemy": "rag-guardrail-decisions",
                "scipy": "rag-guardrail-offline",
                "jinja2": "rag-guardrail-offline",
            }.get((error.name or "").partition(".")[0])
            if brings is None:
                raise
            raise MissingExtra(brings) from error

    return command(run)


@_reads_decisions
def replay(
    decisions: Source,
    policy: Annotated[
        str, typer.Option(help="The new policy: a guardrail JSON, or name@version in --policies.")
    ],
    policies: Annotated[
        Path | None, typer.Option(envvar="GUARDRAIL_POLICIES", help="Folder of policy versions.")
    ] = None,
    since: Since = None,
    until: Until = None,
    of: OfPolicy = None,
    texts: Annotated[
        bool,
        typer.Option("--texts", help="Judge kept texts again where scores are not enough."),
    ] = False,
    keys_file: KeysFile = None,
    viewer: Viewer = "guardrail replay",
    fail_over: Annotated[
        str | None, typer.Option(help="Share of decisions that may change, such as 2% or 0.02.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--out", help="Also write every decision: .csv or .json.")
    ] = None,
    pack: PackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what a new policy would have decided, from stored scores: exactly, or why not.

    Ends with 0; with --fail-over 1 if a larger share changes, 3 if one might: what cannot be
    replayed may change, too. 2 on bad input.
    """
    from guardrail_decisions import records
    from guardrail_decisions.commands import moment

    limit = None if fail_over is None else _share(fail_over)
    if output is not None and output.suffix not in (".csv", ".json"):
        raise ConfigurationError("--out", repr(output.suffix), "one of .csv, .json")
    path = _policy_path(policy, policies)
    with _judge(path, pack) if texts else nullcontext() as judge:
        found = _replayed(
            records(
                decisions, moment(since, "--since"), moment(until, "--until"), of,
                keys_file=keys_file, viewer=viewer if texts else None,
            ),
            path, pack, judge,
        )  # fmt: skip
    if output is not None:
        everything = json.dumps(found.as_json(), indent=1) + "\n"
        _write(output, found.csv() if output.suffix == ".csv" else everything)
    if as_json:
        out.print_json(json.dumps(found.as_json()))
    else:
        _print(found)
        if output is not None:
            out.print(f"wrote {plain(str(output))}", soft_wrap=True)
    if limit is not None and (found.changed().share or 0.0) > limit:
        raise typer.Exit(EXIT_FLAGGED)
    if limit is not None and found.changed_at_most() > limit:
        raise typer.Exit(EXIT_UNKNOWN)


def _replayed(
    decisions: Iterator[StoredDecision], path: Path, pack: str | None, judge: Judge | None
) -> Replay:
    from guardrail_offline.calibration.command_parts import serving_at_hand
    from guardrail_offline.production.replay import Replay, replay_one

    serving, _ = serving_at_hand(pack, path)
    policy = _loaded(path, serving)
    return Replay(
        {"name": policy.name, "version": policy.version, "sha256": policy.sha256},
        tuple(
            replay_one(one.record, policy, serving.fingerprints, judge, one.text_mode)
            for one in decisions
        ),
    )


def _loaded(path: Path, serving: Any) -> Policy:
    from guardrail_service.policy.file import load_policies

    (policy,) = load_policies([path], serving).values()
    return policy


@contextmanager
def _judge(path: Path, pack: str | None) -> Iterator[Judge]:
    """Give what judges texts under a policy, without a deadline."""
    from guardrail_service.commands.sample_file import unqueued
    from guardrail_service.server.runtime import Runtime

    settings = settings_from(config=(path,), model_pack=pack)
    with closing(Runtime(unqueued(settings))) as runtime:
        policy = runtime.guard.policies[runtime.guard.default_policy]
        yield lambda sample: runtime.guard.judge(policy, sample, float("inf"))


def _policy_path(named: str, folder: Path | None) -> Path:
    """Return the file of a policy: a path, or a version in a folder of policies."""
    name, at, version = named.partition("@")
    if Path(named).is_file() or not at:
        return Path(named)
    if folder is None:
        raise ConfigurationError("--policy", repr(named), "a file, or --policies FOLDER beside it")
    from guardrail_service.policy.versions import checked_path, read_policy

    return checked_path(read_policy(folder, name).version(version))


def _share(text: str) -> float:
    """Return a share written as 2% or 0.02."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ConfigurationError("--fail-over", repr(text), "a share such as 2% or 0.02")
    return value


def _print(found: Replay) -> None:
    from rich.table import Table

    table = Table("", "would pass", "would be flagged")
    counts = found.table()
    for old, told in (("pass", "passed"), ("flag", "was flagged")):
        table.add_row(told, *(str(counts[f"{old}->{new}"]) for new in ("pass", "flag")))
    out.print(table)
    for sentence in found.sentences():
        out.print(plain(sentence), highlight=False, soft_wrap=True)


@_reads_decisions
def report(
    url: Annotated[
        str | None,
        typer.Option(
            "--url", help="The store, or exported JSON lines; GUARDRAIL_DECISIONS_URL if unset."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write it: .html, .json or .csv.")
    ] = None,
    since: Since = None,
    until: Until = None,
    policy: Annotated[str | None, typer.Option(help="Name of the policy.")] = None,
    texts: Annotated[
        int, typer.Option(min=0, help="Show so many flagged answers, where their texts are kept.")
    ] = 0,
    keys_file: KeysFile = None,
    viewer: Viewer = "guardrail decisions report",
    as_json: AsJson = False,
) -> None:
    """Tell what was flagged, by detector and week, whether scores drift and promises are kept.

    Ends with 0; 1 if a promise is broken or scores have moved; 2 on bad input.
    """
    from guardrail_decisions import records
    from guardrail_decisions.commands import moment
    from guardrail_offline.production.decisions_page import page
    from guardrail_offline.production.decisions_report import (
        alarms,
        as_csv,
        content,
        flagged_texts,
        sentences,
    )

    if output is not None and output.suffix not in (".html", ".csv", ".json"):
        raise ConfigurationError("--out", repr(output.suffix), "one of .html, .json, .csv")
    source = url or _set_url()
    wanted = moment(since, "--since"), moment(until, "--until"), policy
    read = records(source, *wanted, keys_file=keys_file, viewer=viewer if texts else None)
    examples = flagged_texts(read, texts) if texts else None
    found = content(records(source, *wanted), _findings(source, policy), examples)
    if output is not None:
        text = {".html": page, ".csv": as_csv}.get(output.suffix)
        _write(output, text(found) if text else json.dumps(found, indent=1) + "\n")
    if as_json:
        out.print_json(json.dumps(found))
    else:
        for sentence in sentences(found):
            out.print(plain(sentence), highlight=False, soft_wrap=True)
        if output is not None:
            out.print(f"wrote {plain(str(output))}", soft_wrap=True)
    raise typer.Exit(EXIT_FLAGGED if alarms(found) else 0)


def _set_url() -> str:
    from guardrail_service.settings import DecisionSettings

    found = DecisionSettings().url
    if found is None:
        raise ConfigurationError("--url", "no store", "one, or GUARDRAIL_DECISIONS_URL")
    return found.get_secret_value()


def _findings(source: str, policy: str | None) -> tuple[Any, ...]:
    """Return the promises and the drift of a store's policies; exported lines have neither."""
    if "://" not in source:
        return ()
    from guardrail_decisions import open_decisions
    from guardrail_decisions.monitor.watch import Watch

    watch = Watch()
    with open_decisions(source) as store:
        watch.refresh(store)
    return tuple(finding for finding in watch.findings if policy in (None, finding.policy))


def _write(path: Path, text: str) -> None:
    """Write a file for its owner only. A lone surrogate is written as JSON writes it: escaped.

    Raises:
        ConfigurationError: If it cannot be written.
    """
    from guardrail_offline.calibration.command_parts import write

    with suppress(OSError):  # whatever is wrong here is told below
        path.touch(mode=0o600)
        if path.is_file():
            path.chmod(0o600)  # it may have been there
    write(path, text)
