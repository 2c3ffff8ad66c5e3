"""The commands under `guardrail models`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from guardrail_service.console import (
    AsJson,
    PackOption,
    command,
    err,
    out,
    plain,
    settings_from,
)

models_app = typer.Typer(help="Look at model packs, make them, carry them.", no_args_is_help=True)


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
    from guardrail_service.resources import packs_dir
    from guardrail_service.runtime import open_sessions, run_golden

    settings = settings_from(model_pack=pack)
    loaded = load_pack(resolve(settings.model_pack, packs_dir()))
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


@models_app.command("recipes")
@command
def models_recipes(as_json: AsJson = False) -> None:
    """List the reference models that `models export` knows by name."""
    from guardrail_models.recipe import shipped_recipes

    recipes = shipped_recipes().values()
    if as_json:
        out.print_json(json.dumps([recipe.model_dump(mode="json") for recipe in recipes]))
        return
    table = Table("name", "role", "architecture", "repository", "revision", "licence")
    for recipe in recipes:
        pin = f"sha256 {recipe.checkpoint.sha256}" if recipe.checkpoint else recipe.revision or ""
        hub = recipe.hub or (recipe.checkpoint.url.split("/")[4] if recipe.checkpoint else "")
        table.add_row(recipe.name, recipe.role, recipe.architecture, hub, pin[:16], recipe.license)
    out.print(table)


Asked = Annotated[
    str, typer.Argument(help="Name from `models recipes`, hub repository, or local folder.")
]
RoleOption = Annotated[str | None, typer.Option(help="Role in the pack; a named model has one.")]
Output = Annotated[Path, typer.Option("--out", help="Folder of the pack.")]
Quantise = Annotated[
    str, typer.Option(help="none, fp16, int8-dynamic, int8-static or weight-only.")
]
Revision = Annotated[str | None, typer.Option(help="Commit of the repository.")]
Local = Annotated[
    Path | None, typer.Option("--from", help="Local copy of the repository; no network.")
]
Foundation = Annotated[
    Path | None, typer.Option(help="Local copy of the foundation's configuration.")
]
Label = Annotated[
    list[str] | None,
    typer.Option(help="OURS=THEIRS, repeatable, in the order to export; not for named models."),
]
OriginalLabel = Annotated[
    list[str] | None,
    typer.Option(help="Every label of the original, repeatable, in its own order."),
]
Activation = Annotated[str | None, typer.Option(help="sigmoid or softmax.")]
Pooling = Annotated[str | None, typer.Option(help="mean or cls (embedding).")]
Architecture = Annotated[
    str | None, typer.Option(help="Of a hub repository; a folder's config.json says it.")
]
MaxTokens = Annotated[int | None, typer.Option(help="Longest row, at most positions.")]
StartToken = Annotated[str | None, typer.Option(help="First token (causal_lm).")]
Licence = Annotated[str | None, typer.Option(help="Licence of the weights.")]
Language = Annotated[list[str] | None, typer.Option(help="ISO 639-1 code, repeatable; none: any.")]
Texts = Annotated[
    Path | None, typer.Option(help="JSON lines to verify on, also .gz; see docs/models.md.")
]
Threshold = Annotated[float, typer.Option(help="Where a verdict flips.")]
Largest = Annotated[float | None, typer.Option(help="Largest difference of a score to accept.")]
Mean = Annotated[float | None, typer.Option(help="Mean difference to accept.")]
MaxFlips = Annotated[float, typer.Option(help="Share of scores that may flip.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code the repository brings.")
]


@models_app.command("export")
@command
def models_export(
    model: Asked,
    role: RoleOption = None,
    output: Output = Path("reference"),
    quantise: Quantise = "int8-dynamic",
    revision: Revision = None,
    local: Local = None,
    foundation: Foundation = None,
    label: Label = None,
    original_label: OriginalLabel = None,
    activation: Activation = None,
    pooling: Pooling = None,
    architecture: Architecture = None,
    max_tokens: MaxTokens = None,
    start_token: StartToken = None,
    licence: Licence = None,
    language: Language = None,
    texts: Texts = None,
    threshold: Threshold = 0.5,
    largest: Largest = None,
    mean: Mean = None,
    max_flips: MaxFlips = 0.10,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
) -> None:
    """Export, quantise and verify a model, and put it into a pack.

    Needs the extra `export`. The revision is pinned, labels are declared, and nothing is written
    unless the export gives the original's scores.
    """
    from guardrail_models.export import Options, export_model
    from guardrail_models.quantise import quantisation
    from guardrail_models.targets import Declared, recipe_for
    from guardrail_models.verify import LIMITS

    how = quantisation(quantise)
    declared = Declared(
        role=role,
        revision=revision,
        labels=label,
        original_labels=original_label,
        activation=activation,
        pooling=pooling,
        architecture=architecture,
        max_tokens=max_tokens,
        start_token=start_token,
        license=licence,
        languages=language,
    )
    recipe, folder = recipe_for(model, declared, local)
    default = LIMITS[how]
    options = Options(
        out=output,
        quantisation=how,
        local=folder,
        foundation=foundation,
        texts=texts,
        threshold=threshold,
        limits=(
            default[0] if largest is None else largest,
            default[1] if mean is None else mean,
        ),
        max_flips=max_flips,
        trust_remote_code=trust_remote_code,
    )
    with err.status("exporting") as status:
        made = export_model(recipe, options, lambda step: status.update(plain(step)))
    if as_json:
        out.print_json(json.dumps(made.as_json()))
    else:
        out.print(f"[green]exported[/green] {plain(made.summary(output))}")


@models_app.command("bundle")
@command
def models_bundle(
    pack: Annotated[str, typer.Argument(help="Shipped model pack or a folder with a manifest.")],
    archive: Annotated[Path, typer.Argument(help="File to write.")],
) -> None:
    """Write a pack as one archive and print its checksum."""
    from guardrail_service.inference.pack import resolve
    from guardrail_models.bundle import bundle
    from guardrail_service.resources import packs_dir

    digest = bundle(resolve(pack, packs_dir()), archive)
    out.print(f"{digest}  {plain(str(archive))}", highlight=False, soft_wrap=True)


@models_app.command("unbundle")
@command
def models_unbundle(
    archive: Annotated[Path, typer.Argument(help="What `models bundle` wrote.")],
    folder: Annotated[Path, typer.Argument(help="Folder to make; must not exist.")],
    sha256: Annotated[str | None, typer.Option(help="Checksum the archive came with.")] = None,
) -> None:
    """Check an archive, every file in it and the pack they make, and write the folder.

    Ends with 2 and writes nothing if anything differs. `models verify --pack FOLDER` runs it.
    """
    from guardrail_models.bundle import unbundle

    unbundle(archive, folder, sha256)
    out.print(f"[green]ok[/green] {plain(str(folder))}: every file is the one that was bundled")
