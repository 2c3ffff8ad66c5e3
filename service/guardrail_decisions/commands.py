"""The commands under `guardrail decisions`: look at a store, and look after it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from guardrail_service.commands.console import AsJson, command, out, plain
from guardrail_service.commands.group import Commands
from guardrail_service.errors import ConfigurationError
from guardrail_service.settings import DecisionSettings

if TYPE_CHECKING:
    from guardrail_decisions.reading import Decisions, Filters
    from guardrail_decisions.rows import StoredDecision

decisions_app = typer.Typer(
    cls=Commands, no_args_is_help=True, help="Look at stored decisions, and look after them."
)
Url = Annotated[
    str | None, typer.Option("--url", help="The store; GUARDRAIL_DECISIONS_URL if unset.")
]
KeysFile = Annotated[
    Path | None,
    typer.Option("--keys-file", help="Its keys; GUARDRAIL_DECISIONS_KEYS_FILE if unset."),
]
Since = Annotated[str | None, typer.Option(help="Decided then or later: an ISO 8601 time.")]
Until = Annotated[str | None, typer.Option(help="Decided before: an ISO 8601 time.")]
PolicyOption = Annotated[str | None, typer.Option("--policy", help="Name of the policy.")]
CallerOption = Annotated[str | None, typer.Option("--caller", help="Id of the key.")]
DecisionOption = Annotated[str | None, typer.Option("--decision", help="pass or flag.")]
DetectorOption = Annotated[str | None, typer.Option("--detector", help="Flagged by it.")]
Viewer = Annotated[
    str | None, typer.Option(help="Also the texts; the store notes that this person read them.")
]
NOTHING_PROVED = 1
"""Exit status of `verify` where the store is not what was written."""


def opened(url: str | None, keys_file: Path | None) -> Decisions:
    """Return the store that options and environment name.

    Raises:
        ConfigurationError: If none is named, or it cannot be opened.
    """
    from guardrail_decisions.reading import open_decisions

    settings = DecisionSettings()
    found = url or (settings.url.get_secret_value() if settings.url is not None else None)
    if found is None:
        raise ConfigurationError("--url", "no store", "one, or GUARDRAIL_DECISIONS_URL")
    return open_decisions(
        found,
        keys_file or settings.keys_file,
        settings.texts,
        named_by="--url" if url else "GUARDRAIL_DECISIONS_URL",
    )


def moment(text: str | None, option: str) -> datetime | None:
    """Return a time that somebody wrote; without a zone it is UTC.

    Raises:
        ConfigurationError: If it is none.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigurationError(option, repr(text), "a time such as 2026-11-23T18:00") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


@decisions_app.command("list")
@command
def decisions_list(
    url: Url = None,
    keys_file: KeysFile = None,
    since: Since = None,
    until: Until = None,
    policy: PolicyOption = None,
    caller: CallerOption = None,
    decision: DecisionOption = None,
    detector: DetectorOption = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List decisions, the latest first."""
    from guardrail_decisions.reading import to_json

    filters = _filters(since, until, policy, caller, decision, detector)
    with opened(url, keys_file) as store:
        found = list(store.decisions(filters, newest_first=True, limit=limit))
    if as_json:
        out.print_json(json.dumps([to_json(one) for one in found]))
        return
    table = Table("key", "time", "request id", "caller", "policy", "decision", "flagged", "labels")
    for one in found:
        table.add_row(*map(plain, _cells(one)))
    out.print(table)


@decisions_app.command("show")
@command
def decisions_show(
    request_id: Annotated[str, typer.Argument(help="As in the reply.")],
    item: Annotated[int | None, typer.Option(help="Place in the request.")] = None,
    viewer: Viewer = None,
    url: Url = None,
    keys_file: KeysFile = None,
) -> None:
    """Print one decision as JSON."""
    from guardrail_decisions.reading import to_json

    with opened(url, keys_file) as store:
        found = store.get(request_id, item, viewer=viewer)
    if found is None:
        raise ConfigurationError("request id", "no stored decision", "one that `list` shows")
    out.print_json(json.dumps(to_json(found)))


@decisions_app.command("export")
@command
def decisions_export(
    file: Annotated[Path, typer.Argument(help="New file: .jsonl (everything), .csv or .parquet.")],
    url: Url = None,
    keys_file: KeysFile = None,
    since: Since = None,
    until: Until = None,
    policy: PolicyOption = None,
    caller: CallerOption = None,
    decision: DecisionOption = None,
    detector: DetectorOption = None,
    viewer: Viewer = None,
) -> None:
    """Write decisions into a file, in the order in which they were stored."""
    from guardrail_decisions.exporting import export

    filters = _filters(since, until, policy, caller, decision, detector)
    with opened(url, keys_file) as store:
        count = export(store.decisions(filters, viewer=viewer), file)
    out.print(f"{count} decisions in {plain(str(file))}", soft_wrap=True)


@decisions_app.command("delete")
@command
def decisions_delete(
    request_id: Annotated[str | None, typer.Option(help="Every decision with this id.")] = None,
    caller: CallerOption = None,
    until: Until = None,
    url: Url = None,
    keys_file: KeysFile = None,
) -> None:
    """Delete decisions with their texts, feedback and views; tombstones stay in the chain."""
    from guardrail_decisions.reading import Filters

    filters = Filters(request_id=request_id, caller=caller, until=moment(until, "--until"))
    if filters == Filters():
        raise ConfigurationError("delete", "no filter", "--request-id, --caller or --until")
    with opened(url, keys_file) as store:
        out.print(f"{store.delete(filters)} decisions deleted")


@decisions_app.command("purge")
@command
def decisions_purge(
    older_than: Annotated[str, typer.Option(help="Age in days, such as 30d.")],
    url: Url = None,
    keys_file: KeysFile = None,
) -> None:
    """Delete the decisions that are older than so many days."""
    number = older_than.removesuffix("d")
    if number == older_than or not number.isdecimal() or len(number) > len("999999"):
        raise ConfigurationError("--older-than", repr(older_than), "days, such as 30d")
    with opened(url, keys_file) as store:
        out.print(f"{store.purge(int(number))} decisions deleted")


@decisions_app.command("verify")
@command
def decisions_verify(
    head: Annotated[
        str | None, typer.Option(help="A head that was noted earlier, PLACE:HASH.")
    ] = None,
    url: Url = None,
    keys_file: KeysFile = None,
    as_json: AsJson = False,
) -> None:
    """Check that nothing stored was changed, moved, added or removed; 1 if something was."""
    with opened(url, keys_file) as store:
        report = store.verify(head)
    if as_json:
        shown: dict[str, Any] = {
            "intact": report.intact,
            "entries": report.entries,
            "decisions": report.decisions,
            "deleted": report.deleted,
            "sealed": report.sealed,
            "head": report.head,
            "faults": [{"place": fault.seq, "what": fault.what} for fault in report.faults],
        }
        out.print_json(json.dumps(shown))
    else:
        for fault in report.faults:
            out.print(f"place {fault.seq}: {plain(fault.what)}", soft_wrap=True)
        seal = {True: "sealed", False: "wrongly sealed", None: "seal not checked"}[report.sealed]
        out.print(
            f"{report.decisions} decisions as they were written, {report.deleted} entries deleted "
            f"with a tombstone, {len(report.faults)} faults, {seal}\nhead {report.head}",
            soft_wrap=True,
        )
    if not report.intact:
        raise typer.Exit(NOTHING_PROVED)


@decisions_app.command("rotate")
@command
def decisions_rotate(url: Url = None, keys_file: KeysFile = None) -> None:
    """Put everything encrypted under the first key of the file; the others may go afterwards."""
    with opened(url, keys_file) as store:
        out.print(f"{store.rotate()} texts are under the first key")


@decisions_app.command("migrate")
@command
def decisions_migrate(url: Url = None) -> None:
    """Make the tables, or bring those of an earlier release to this one's."""
    from guardrail_decisions.database import LATEST, Database
    from guardrail_decisions.store import make_private

    settings = DecisionSettings()
    found = url or (settings.url.get_secret_value() if settings.url is not None else None)
    if found is None:
        raise ConfigurationError("--url", "no store", "one, or GUARDRAIL_DECISIONS_URL")
    database = Database(found)
    make_private(found)
    database.migrate()
    database.close()
    out.print(f"version {LATEST}")


@decisions_app.command("new-key")
@command
def decisions_new_key() -> None:
    """Print a new key, for the first line of GUARDRAIL_DECISIONS_KEYS_FILE."""
    from guardrail_decisions.keys import new_key

    out.print(new_key(), highlight=False)


def _filters(
    since: str | None,
    until: str | None,
    policy: str | None,
    caller: str | None,
    decision: str | None,
    detector: str | None,
) -> Filters:
    from guardrail_decisions.reading import Filters

    if decision not in (None, "pass", "flag"):
        raise ConfigurationError("--decision", repr(decision), "pass or flag")
    return Filters(
        since=moment(since, "--since"),
        until=moment(until, "--until"),
        policy=policy,
        caller=caller,
        decision="flag" if decision == "flag" else "pass" if decision else None,
        detector=detector,
    )


def _cells(found: StoredDecision) -> tuple[str, ...]:
    record = found.record
    item = f" #{record.item}" if record.item else ""
    return (
        str(found.key),
        record.time.isoformat(timespec="seconds"),
        record.request_id + item,
        record.caller,
        f"{record.policy}@{record.policy_version}",
        record.decision,
        ", ".join(found.flagged),
        ", ".join(word.label for word in found.feedback),
    )
