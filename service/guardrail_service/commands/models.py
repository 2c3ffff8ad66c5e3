"""The commands under `guardrail models` that need no training library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from guardrail_service.commands.console import (
    AsJson,
    PackOption,
    command,
    err,
    out,
    plain,
    settings_from,
)
from guardrail_service.commands.group import Commands

models_app = typer.Typer(
    cls=Commands, help="List, verify, export and archive model packs.", no_args_is_help=True
)


@models_app.command("list")
@command
def models_list(as_json: AsJson = False) -> None:
    """List the shipped model packs, their files and where they come from."""
    from guardrail_service.inference.pack import MANIFEST, read_manifest
    from guardrail_service.resources import packs_dir

    manifests = [read_manifest(path.parent) for path in sorted(packs_dir().glob(f"*/{MANIFEST}"))]
    if as_json:
        out.print_json(json.dumps([m.model_dump(mode="json") for m in manifests]))
        return
    table = Table("pack", "role", "model", "precision", "MB", "max tokens", "licence", "source")
    for manifest in manifests:
        for role, name in manifest.roles.items():
            model = manifest.models[name]
            size = f"{model.bytes / 1e6:.1f}"
            table.add_row(
                manifest.name,
                role,
                name,
                model.precision,
                size,
                str(model.max_tokens),
                model.source.license,
                model.source.name,
            )
    out.print(table)


@models_app.command("verify")
@command
def models_verify(pack: PackOption = None, as_json: AsJson = False) -> None:
    """Check every file of a pack against its hash, then run its golden rows on this machine.

    Ends with 2 if a file is missing, changed or truncated, or scores differ.
    """
    from guardrail_service.inference.pack import load_pack, resolve
    from guardrail_service.inference.session_kinds import open_sessions
    from guardrail_service.resources import packs_dir
    from guardrail_service.server.runtime import run_golden

    settings = settings_from(model_pack=pack)
    loaded = load_pack(resolve(settings.model_pack, packs_dir())).on(settings.providers)
    loaded.refuse_unserved()
    sessions = open_sessions(loaded)
    with err.status("running golden rows"):
        reports = run_golden(loaded, sessions, settings.workers)
    if as_json:
        rows = {role: report._asdict() for role, report in reports.items()}
        out.print_json(json.dumps({"pack": loaded.name, "golden": rows}))
        return
    for role, report in reports.items():
        out.print(
            f"[green]ok[/green] {loaded.name}/{role}: files match the manifest; "
            f"{report.rows} golden rows, largest difference {report.worst:.6f} "
            f"(tolerance {report.tolerance})"
        )


@models_app.command("bundle")
@command
def models_bundle(
    pack: Annotated[str, typer.Argument(help="Shipped model pack or a folder with a manifest.")],
    archive: Annotated[Path, typer.Argument(help="File to write.")],
) -> None:
    """Write a pack as one archive and print its checksum."""
    from guardrail_service.inference.bundle import bundle
    from guardrail_service.inference.pack import resolve
    from guardrail_service.resources import packs_dir

    digest = bundle(resolve(pack, packs_dir()), archive)
    out.print(f"{digest}  {plain(str(archive))}", highlight=False, soft_wrap=True)


@models_app.command("unbundle")
@command
def models_unbundle(
    archive: Annotated[Path, typer.Argument(help="Archive that `models bundle` wrote.")],
    folder: Annotated[Path, typer.Argument(help="Folder to make; must not exist.")],
    sha256: Annotated[str | None, typer.Option(help="Checksum that came with the archive.")] = None,
) -> None:
    """Check an archive, every file in it and the pack they make, and write the folder.

    Ends with 2 and writes nothing if anything differs. `models verify --pack FOLDER` runs it.
    """
    from guardrail_service.inference.bundle import unbundle

    unbundle(archive, folder, sha256)
    out.print(f"[green]ok[/green] {plain(str(folder))}: every file is the one that was bundled")
