"""Packs for `guardrail bench models`: real-size architectures with random weights, unverified.

Speed, memory and disk do not depend on the weights. Nothing else may be read from these packs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from guardrail_models import stand_ins
from guardrail_models.export import ExportOptions, unverified
from guardrail_models.graph import export_graph
from guardrail_models.original import load
from guardrail_models.quantise import QUANTISATIONS, Quantisation, quantisation
from guardrail_models.recipes import Recipe, shipped_recipes
from guardrail_service.errors import ConfigurationError, MissingExtra, PackError
from guardrail_service.inference.pack import MANIFEST

LONGEST = 512
"""Every architecture reads rows this long, whatever its recipe cuts windows to."""
PACKS = "packs"


def distinct() -> dict[str, Recipe]:
    """Return a recipe per real-size architecture; models of one shape take the same time."""
    found: dict[tuple[str, stand_ins.NetworkShape], Recipe] = {}
    for recipe in shipped_recipes().values():
        found.setdefault((recipe.architecture, stand_ins.REAL[recipe.name]), recipe)
    return {recipe.name: recipe for recipe in found.values()}


def chosen(names: Sequence[str]) -> list[Recipe]:
    """Return the recipes of some names, or all.

    Raises:
        ConfigurationError: If a name is none of them.
    """
    known = distinct()
    for name in names:
        if name not in known:
            raise ConfigurationError("--only", repr(name), ", ".join(known))
    return [known[name] for name in names] if names else list(known.values())


def quantisations(names: Sequence[str]) -> list[Quantisation]:
    """Return the quantisations of some names, or all.

    Raises:
        ConfigurationError: If a name is none of them.
    """
    wanted = {quantisation(name) for name in names} or set(QUANTISATIONS)
    return [how for how in QUANTISATIONS if how in wanted]


def place(recipe: Recipe, folder: Path, how: Quantisation) -> Path:
    """Return where below `folder` a pack lies, or will."""
    return folder / PACKS / f"{recipe.name}-{how}"


def build(
    recipe: Recipe, folder: Path, wanted: Sequence[Quantisation]
) -> dict[Quantisation, Path | PackError]:
    """Return a pack per precision, or why it cannot be built; what is already there stays.

    Each architecture is built in a process of its own, which gives its memory back.

    Args:
        recipe: Whose architecture.
        folder: Where to work; the packs stay there, about twice the fp32 model's size.
        wanted: Precisions.

    Raises:
        MissingExtra: If there is no torch.
    """
    found: dict[Quantisation, Path | PackError] = {}
    while left := [
        how
        for how in QUANTISATIONS
        if how in wanted and how not in found and not _is_built(recipe, folder, how)
    ]:
        if not (find_spec("torch") and find_spec("transformers")):
            raise MissingExtra("rag-guardrail-models[export]")
        asked = [sys.executable, "-m", __name__, str(folder), recipe.name, *left]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode:  # at the first precision that is not there; the others are tried again
            failed = next(how for how in left if not _is_built(recipe, folder, how))
            last = done.stderr.strip().splitlines()[-1:] or ["no message"]
            found[failed] = PackError(f"building ended with {done.returncode}: {last[0]}")
    return {how: found.get(how) or place(recipe, folder, how) for how in wanted}


def _is_built(recipe: Recipe, folder: Path, how: Quantisation) -> bool:
    return (place(recipe, folder, how) / MANIFEST).is_file()


def build_here(recipe: Recipe, folder: Path, wanted: Sequence[Quantisation]) -> None:
    """Build packs in this process, one precision after the other; each appears when it is whole."""
    (folder / PACKS).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        source = stand_ins.build(recipe, Path(scratch) / "original", "real")
        original = load(recipe.model_copy(update={"max_tokens": LONGEST}), source, source)
        plain = Path(scratch) / "plain.onnx"
        export_graph(original, plain, Path(scratch))
        (Path(scratch) / "raw.onnx").unlink()
        original.model = None  # its weights are in the graph now
        for how in wanted:
            part = Path(scratch) / how
            unverified(original, plain, part, ExportOptions(out=part, quantisation=how))
            shutil.move(part, place(recipe, folder, how))


def main() -> None:
    """Build what the command line names, in this process."""
    folder, name, *hows = sys.argv[1:]
    build_here(distinct()[name], Path(folder), quantisations(hows))


if __name__ == "__main__":
    main()
