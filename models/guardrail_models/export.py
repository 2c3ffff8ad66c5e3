"""One reference model from its repository into a pack: export, quantise, verify, describe."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from guardrail_models import fetch, heads
from guardrail_models.export_files import card, write_golden
from guardrail_models.graph import OPSET, export_graph
from guardrail_models.original import Original, Text, load
from guardrail_models.quantise import ONE_ROW, PRECISION, Quantisation, quantise
from guardrail_models.recipes import Recipe
from guardrail_models.verify import (
    LIMITS,
    Export,
    Verification,
    compare,
    load_texts,
    refuse_wrong,
    rows_for,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.inference.models.session import METADATA_KEY, feeds
from guardrail_service.inference.pack import (
    MANIFEST,
    Manifest,
    ModelFile,
    Pack,
    Padding,
    Source,
    content_hash,
    read_manifest,
    write_manifest,
)
from guardrail_service.inference.session_kinds import derived_kind

NAMES = ("model.onnx", "tokenizer.json", "golden.json", "MODEL_CARD.md")
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of one export.

    Attributes:
        out: Folder of the pack; a new one is begun, another model of the role is replaced.
        quantisation: Precision.
        local: The original as a local folder instead of from the hub.
        foundation: The foundation's files as a local folder.
        texts: JSON lines to verify on; None: the shipped texts.
        threshold: Where a verdict flips.
        limits: Largest and mean difference; None: the precision's own.
        max_flips: Share of scores that may change sides at the threshold.
        trust_remote_code: Run code that the repository brings.
        pack_name: Name of a new pack.
    """

    out: Path
    quantisation: Quantisation = "int8-dynamic"
    local: Path | None = None
    foundation: Path | None = None
    texts: Path | None = None
    threshold: float = 0.5
    limits: tuple[float, float] | None = None
    max_flips: float = 0.10
    trust_remote_code: bool = False
    pack_name: str = "reference"


@dataclass(frozen=True, slots=True)
class Exported:
    """A written model: its name in the pack, its entry, and its distance from the original."""

    name: str
    file: ModelFile
    verification: Verification

    def as_json(self) -> dict[str, Any]:
        """Return name, manifest entry and how scores compare."""
        entry = self.file.model_dump(mode="json")
        return {"name": self.name, "entry": entry, "verification": self.verification.as_json()}

    def summary(self, out: Path) -> str:
        """Return one line for people, after `exported`."""
        found, role = self.verification, Path(self.file.path).parts[0]
        return (
            f"{self.name} as {role} into {out}: {found.rows} rows of at most {found.longest} "
            f"tokens, largest difference {found.largest:.4f}, mean {found.mean:.5f}, "
            f"{found.flips} of {found.scores} scores flip at {found.threshold:g}, "
            f"{self.file.bytes / 1e6:.1f} MB"
        )


def export_model(
    recipe: Recipe, options: ExportOptions, progress: Progress = lambda _: None
) -> Exported:
    """Export one model, verify it against its original and put it into a pack.

    Nothing is written before the export has been verified.

    Args:
        recipe: Which model and what is declared about it.
        options: How and where to.
        progress: Told each step that begins.

    Raises:
        ConfigurationError: If the original cannot be had, or is not what the recipe declares.
        ExportFailed: If its scores are not the original's.
    """
    existing = _existing(options)
    with tempfile.TemporaryDirectory(prefix="rag-guardrail-") as scratch:
        progress("loading the original")
        trust = options.trust_remote_code
        folder, base = fetch.originals(
            recipe, options.local, options.foundation, Path(scratch), code=trust
        )
        original = load(recipe, folder, base, trust_remote_code=trust)
        work = Path(scratch) / "pack"
        target = work / recipe.role
        target.mkdir(parents=True)
        _write_tokenizer(original, target / "tokenizer.json")
        progress("exporting the graph")
        plain = Path(scratch) / "plain.onnx"
        export_graph(original, plain, Path(scratch))
        made = finish(original, plain, work, options, progress)
        _install(work, made, existing, options)
    return made


def finish(
    original: Original,
    plain: Path,
    work: Path,
    options: ExportOptions,
    progress: Progress = lambda _: None,
) -> Exported:
    """Quantise and verify a graph and write everything of its entry below `work`.

    Args:
        original: What to compare with.
        plain: The fp32 graph.
        work: A folder with `<role>/tokenizer.json`, in which the rest is written.
        options: How.
        progress: Told each step that begins.

    Raises:
        ExportFailed: If its scores are not the original's.
    """
    recipe, how = original.recipe, options.quantisation
    name = f"{recipe.name}-{how}" if how != "none" else f"{recipe.name}-fp32"
    target = work / recipe.role
    shutil.copyfile(plain, target / "model.onnx")
    first = Export(_pack(work, name, _entry(original, work, options)), recipe.role)
    rows = rows_for(recipe.role, load_texts(options.texts), first.tokens, recipe.max_tokens)
    progress("quantising")
    quantise(plain, target / "model.onnx", how, lambda: _activations(first, rows))
    _note(target / "model.onnx", _entry(original, work, options))
    progress("verifying against the original")
    pack = _pack(work, name, _entry(original, work, options))
    export = Export(pack, recipe.role)
    found = compare(export, original.scores(rows), rows, options.threshold)
    refuse_wrong(found, export, options.limits or LIMITS[how], options.max_flips)
    write_golden(target / "golden.json", export, pack, rows, how)
    entry = _entry(original, work, options)
    (target / "MODEL_CARD.md").write_text(card(name, recipe, entry, found), encoding="utf-8")
    return Exported(name, entry, found)


def unverified(original: Original, plain: Path, work: Path, options: ExportOptions) -> None:
    """Write a pack whose scores nobody compared; for measuring speed and nothing else."""
    recipe, how = original.recipe, options.quantisation
    target = work / recipe.role
    target.mkdir(parents=True)
    _write_tokenizer(original, target / "tokenizer.json")
    shutil.copyfile(plain, target / "model.onnx")
    quantise(plain, target / "model.onnx", how, partial(_shipped_activations, original, work))
    entry = _entry(original, work, options)
    _note(target / "model.onnx", entry)
    noted = entry.model_copy(update=describe(target / "model.onnx", work))
    write_manifest(work, _pack(work, recipe.name, noted).manifest.model_dump(mode="json"))


def describe(path: Path, root: Path) -> dict[str, Any]:
    """Return the manifest's path, hash and size of a file."""
    digest = content_hash(path)
    return {
        "path": path.relative_to(root).as_posix(),
        "sha256": digest,
        "bytes": path.stat().st_size,
    }


def _entry(original: Original, work: Path, options: ExportOptions) -> ModelFile:
    """Return the manifest's entry for the files as they lie there."""
    recipe, how = original.recipe, options.quantisation
    target = work / recipe.role
    golden = target / "golden.json"
    graph = onnx.load(str(target / "model.onnx"), load_external_data=False).graph
    return ModelFile(
        **describe(target / "model.onnx", work),
        tokenizer=describe(target / "tokenizer.json", work),
        golden=describe(golden if golden.exists() else target / "tokenizer.json", work),
        card=f"{recipe.role}/MODEL_CARD.md",
        kind=derived_kind(recipe.role, reads_states=False),
        architecture=recipe.architecture,
        precision=PRECISION[how],
        opset=OPSET,
        inputs=tuple(value.name for value in graph.input),
        outputs={value.name: _shape(value) for value in graph.output},
        max_tokens=recipe.max_tokens,
        batch_rule="one_row" if how in ONE_ROW else "token_budget",
        languages=recipe.languages,
        source=_source(original),
        labels=tuple(recipe.labels) if recipe.labels else None,
        activation=recipe.activation,
        template=recipe.template,
        start_token=recipe.start_token,
        padding=_padding(original),
    )


def _shape(value: onnx.ValueInfoProto) -> tuple[str | int, ...]:
    return tuple(d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim)


def _source(original: Original) -> Source:
    recipe = original.recipe
    digest = content_hash(original.weights)
    commit = f"{recipe.revision}, " if recipe.revision else ""
    return Source(
        name=recipe.hub or (recipe.checkpoint.url if recipe.checkpoint else recipe.name),
        revision=f"{commit}{original.weights.name} sha256 {digest}",
        license=recipe.license,
    )


def _padding(original: Original) -> Padding:
    tokenizer = original.tokenizer
    pad = tokenizer.pad_token_id
    return Padding(
        side=tokenizer.padding_side, id=pad if pad is not None else tokenizer.eos_token_id
    )


def _write_tokenizer(original: Original, target: Path) -> None:
    """Write the original's tokenizer without truncation and padding."""
    content = json.loads(original.tokenizer.backend_tokenizer.to_str())
    content["truncation"] = None
    content["padding"] = None
    target.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


def _note(path: Path, entry: ModelFile) -> None:
    """Write into the graph what its manifest entry declares."""
    model = onnx.load(str(path))
    heads.describe(model, METADATA_KEY, json.dumps(entry.declared(), ensure_ascii=False))
    onnx.save(model, str(path))


def _activations(export: Export, rows: list[Text]) -> Iterable[dict[str, Any]]:
    for row in rows:
        yield dict(feeds([export.encoded(row)[0]], export.file))


def _shipped_activations(original: Original, work: Path) -> Iterable[dict[str, Any]]:
    """Yield the inputs of a few shipped texts for the fp32 graph that lies in `work`."""
    recipe = original.recipe
    entry = _entry(original, work, ExportOptions(out=work, quantisation="none"))
    export = Export(_pack(work, recipe.name, entry), recipe.role)
    rows = [row for row in load_texts(None)[5:13] if export.tokens(row) <= recipe.max_tokens]
    return _activations(export, rows)


def _pack(work: Path, name: str, entry: ModelFile) -> Pack:
    role = Path(entry.path).parts[0]
    manifest = Manifest.model_validate(
        {
            "schema_version": "1",
            "name": "export",
            "version": "1",
            "models": {name: entry.model_dump(mode="json")},
            "roles": {role: name},
        }
    )
    return Pack(work, manifest)


def _existing(options: ExportOptions) -> Manifest | None:
    """Return the manifest of the pack to add to, if there is one; refuses a folder of others."""
    if (options.out / MANIFEST).is_file():
        return read_manifest(options.out)
    if options.out.exists() and any(options.out.iterdir()):
        raise ConfigurationError(
            f"--out {options.out}", "files that are no pack", "a pack, or a new folder"
        )
    return None


def _install(work: Path, made: Exported, existing: Manifest | None, options: ExportOptions) -> None:
    """Move the files into the pack and write its manifest, which names them last."""
    role = Path(made.file.path).parts[0]
    content = existing.model_dump(mode="json") if existing else {}
    models = {**content.get("models", {})}
    roles = {**content.get("roles", {}), role: made.name}
    models[made.name] = made.file.model_dump(mode="json")
    used = set(roles.values())
    used |= {models[name]["encoder"] for name in used if models[name]["encoder"]}
    content = {
        "schema_version": "1",
        "name": content.get("name", options.pack_name),
        "version": content.get("version", "1"),
        "models": {name: models[name] for name in models if name in used},
        "roles": roles,
    }
    (options.out / role).mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        shutil.move(work / role / name, options.out / role / name)
    write_manifest(options.out, content)
