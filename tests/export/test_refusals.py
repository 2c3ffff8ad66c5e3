"""Originals that are not what was declared, or bring more than weights: each is refused."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail_models.export import ExportOptions, export_model
from guardrail_models.original import load
from guardrail_models.recipes import shipped_recipes
from guardrail_service.errors import ConfigurationError

Build = Callable[[str], Path]
NLI = "nli-distilroberta-base"


class Code:
    """A pickle that would run a command."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Run it."""
        return exec, ("raise SystemExit('the pickle ran')",)


@pytest.fixture
def folder(stand_in: Build, tmp_path: Path) -> Path:
    """A copy of a cross-encoder's repository to damage."""
    return Path(shutil.copytree(stand_in(NLI), tmp_path / "original"))


def edit(folder: Path, **changed: Any) -> None:
    """Change the repository's configuration."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def refused(folder: Path, message: str, name: str = NLI) -> None:
    """Expect a refusal."""
    with pytest.raises(ConfigurationError, match=message):
        load(shipped_recipes()[name], folder, folder)


def test_another_label_order_is_refused(folder: Path) -> None:
    """What the repository says and what was declared must be the same order."""
    edit(folder, id2label={"0": "entailment", "1": "contradiction", "2": "neutral"})
    refused(folder, "labels: found the order.*entailment.*contradiction.*as declared")


def test_truncated_weights_are_refused(folder: Path) -> None:
    """Found by the format itself."""
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    refused(folder, "damaged or truncated")


def test_weights_without_the_head_are_refused(folder: Path) -> None:
    """A head that is not in the file would be random."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    kept = {k: v for k, v in load_file(path).items() if not k.startswith("classifier")}
    save_file(kept, path)
    refused(folder, "no weights.*classifier")


def test_another_architecture_is_refused(folder: Path) -> None:
    """Before any weight is read."""
    edit(folder, model_type="bert")
    refused(folder, "model_type: found 'bert'")


def test_code_of_the_repositorys_own_needs_the_flag(folder: Path) -> None:
    """By default nothing of it runs."""
    edit(folder, auto_map={"AutoModel": "modeling.Own"})
    refused(folder, "auto_map.*--trust-remote-code")


def test_a_pickle_with_code_does_not_run(folder: Path) -> None:
    """It is loaded weights-only."""
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Code()))
    refused(folder, "weights alone")


def test_a_checkpoint_with_code_does_not_run(stand_in: Build, tmp_path: Path) -> None:
    """Detoxify's own loader would run it."""
    name = "detoxify-original"
    folder = Path(shutil.copytree(stand_in(name), tmp_path / "original"))
    (folder / f"{name}.ckpt").write_bytes(pickle.dumps({"config": Code(), "state_dict": {}}))
    refused(folder, "weights alone", name)


def test_a_checkpoint_cannot_name_any_class(stand_in: Build, tmp_path: Path) -> None:
    """It names the class to build; only classifiers are built."""
    import torch

    name = "detoxify-original"
    folder = Path(shutil.copytree(stand_in(name), tmp_path / "original"))
    path = folder / f"{name}.ckpt"
    content = torch.load(path, weights_only=True)
    content["config"]["arch"]["args"]["model_name"] = "Trainer"
    torch.save(content, path)
    refused(folder, "ForSequenceClassification", name)


def test_a_damaged_tensorflow_file_is_named(stand_in: Build, tmp_path: Path) -> None:
    """With what was expected."""
    name = "bias-detection-model"
    folder = Path(shutil.copytree(stand_in(name), tmp_path / "original"))
    path = folder / "tf_model.h5"
    path.write_bytes(path.read_bytes()[:1000])
    refused(folder, "no readable HDF5", name)


def test_a_folder_with_other_files_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    """A pack is begun in a new folder or added to."""
    with pytest.raises(ConfigurationError, match="files that are no pack"):
        export_model(shipped_recipes()[NLI], ExportOptions(out=folder, local=folder))
