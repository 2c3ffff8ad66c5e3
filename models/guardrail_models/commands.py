"""`guardrail models recipes` and `guardrail models export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from guardrail_service.commands.console import (
    AsJson,
    command,
    err,
    out,
    plain,
)
from guardrail_service.errors import MissingExtra


@command
def models_recipes(as_json: AsJson = False) -> None:
    """List the reference models that `models export` knows by name."""
    from guardrail_models.recipes import shipped_recipes

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
    str | None, typer.Option(help="model_type of a hub repository; a local folder names its own.")
]
MaxTokens = Annotated[int | None, typer.Option(help="Tokens of the longest row.")]
StartToken = Annotated[str | None, typer.Option(help="First token (causal_lm).")]
Licence = Annotated[str | None, typer.Option(help="Licence of the weights.")]
Language = Annotated[list[str] | None, typer.Option(help="ISO 639-1 code, repeatable; none: any.")]
Texts = Annotated[
    Path | None, typer.Option(help="JSON lines to verify on, also .gz; see docs/models.md.")
]
Threshold = Annotated[float, typer.Option(help="Score at which a verdict flips.")]
Largest = Annotated[float | None, typer.Option(help="Largest difference of a score to accept.")]
Mean = Annotated[float | None, typer.Option(help="Mean difference to accept.")]
MaxFlips = Annotated[float, typer.Option(help="Share of scores that may flip.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code the repository brings.")
]


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

    Needs rag-guardrail-models[export]. The revision is pinned, labels are declared, and nothing is
    written unless the export gives the original's scores.
    """
    try:
        from guardrail_models.export import ExportOptions, export_model
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    from guardrail_models.quantise import quantisation
    from guardrail_models.recipes import DeclaredModel, recipe_for
    from guardrail_models.verify import LIMITS

    how = quantisation(quantise)
    declared = DeclaredModel(
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
    options = ExportOptions(
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
