"""What a model costs: measured on its own graph, kept so that a run can go on."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from guardrail_bench import model_cost
from guardrail_service.commands.main import app
from guardrail_service.errors import PackError
from guardrail_service.resources import packs_dir
from tests import tiny_pack

COST: dict[str, Any] = {
    "name": "m",
    "role": "nli",
    "precision": "fp32",
    "speeds": {"32": 3.14159, "128": 2.0, "512": None},
    "load_s": 1.26,
    "memory_mb": 99.6,
    "disk_mb": 90.2,
    "machine": "a processor",
}
MINILM = "all-minilm-l6-v2 none"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder where the shipped encoder has been measured and one pack is built."""
    model_cost.keep(tmp_path, {"embedded": COST})
    place = tmp_path / "packs" / MINILM.replace(" ", "-")
    shutil.copytree(packs_dir() / "embedded", place)
    return tmp_path


def bench(work: Path, *options: str) -> Result:
    """Run `guardrail bench models` over one architecture in one precision."""
    only = ["--only", "all-minilm-l6-v2", "--quantise", "none", "--quick"]
    asked = ["bench", "models", "--folder", str(work), *only, *options]
    return CliRunner(env={"COLUMNS": "300", "GUARDRAIL_MODEL_PACK": "embedded"}).invoke(app, asked)


def test_a_cost_is_measured_for_each_length_the_model_reads(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer rows than it reads have no speed, rather than a speed of something shorter."""
    monkeypatch.setattr(model_cost, "LEAST_S", 0.0)
    monkeypatch.setattr(model_cost, "LAST_ID", 40)
    found = model_cost.measure(tiny, "embedding", 1)
    speed = found.speeds["32"]
    assert speed is not None
    assert speed > 0
    assert (found.speeds["128"], found.speeds["512"]) == (None, None)
    sizes = [(tiny / name).stat().st_size for name in ("model.onnx", "tokenizer.json")]
    assert found.disk_mb == pytest.approx(sum(sizes) / 1e6)
    assert found.load_s > 0


def test_a_model_on_anothers_states_is_not_measured_alone(tiny: Path, tmp_path: Path) -> None:
    """It reads no tokens, so tokens per millisecond would mean nothing."""
    folder = Path(shutil.copytree(tiny, tmp_path / "tiny"))
    tiny_pack.add_branch(folder, roles=["toxicity"], labels=["toxicity"])
    with pytest.raises(PackError, match="reads tiny"):
        model_cost.measure(folder, "toxicity", 1)


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    """A run that was ended goes on where it stopped."""
    assert model_cost.read_results(tmp_path / "new") == {}
    model_cost.keep(tmp_path / "new", {"m none": COST})
    assert model_cost.read_results(tmp_path / "new") == {"m none": COST}
    table = model_cost.render({"m none": COST})
    cells = [list(column.cells) for column in table.columns]
    assert [column[0] for column in cells] == [
        "m", "nli", "fp32", "3.14", "2.00", "-", "1.3", "100", "90"
    ]  # fmt: skip


def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    """Its last line, not a number."""
    (tmp_path / "manifest.json").write_text(json.dumps({}))
    with pytest.raises(PackError, match=r"measuring ended with 1: .*manifest\.json"):
        model_cost.measured_apart(tmp_path, "embedding", 1)


def test_what_is_built_is_measured_without_building(work: Path) -> None:
    """Where there may be no torch; a second run has nothing to do, unless told to do it again."""
    assert bench(work, "--build-only").exit_code == 0
    assert set(model_cost.read_results(work)) == {"embedded"}
    shown = bench(work, "--json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)[MINILM]
    assert found["speeds"]["32"] > 0
    kept = {"embedded": COST, MINILM: COST}
    model_cost.keep(work, kept)
    assert json.loads(bench(work, "--json").stdout) == kept
    again = json.loads(bench(work, "--again", "--json").stdout)
    assert again[MINILM]["role"] == "embedding"
    assert again["embedded"]["role"] == "embedding"


def test_building_needs_the_extra(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is named; that is no reason to write down that a model cannot be built."""
    shutil.rmtree(work / "packs")
    monkeypatch.setitem(sys.modules, "torch", None)
    shown = bench(work)
    assert shown.exit_code == 2
    assert "rag-guardrail-models[export]" in shown.output
    assert set(model_cost.read_results(work)) == {"embedded"}


def test_what_cannot_be_measured_stays_in_the_table(tmp_path: Path) -> None:
    """With the reason in place of numbers; the other rows are measured."""
    never = model_cost.cost_of(PackError("building ended with -9: killed"), "m", "nli", "fp16")
    broken = model_cost.cost_of(tmp_path, "m", "nli", "none", 1)
    assert "measuring ended with 1" in broken["refused"]
    model_cost.keep(tmp_path, {"m fp16": never, "m none": COST})
    table = model_cost.render(model_cost.read_results(tmp_path))
    cells = [list(column.cells) for column in table.columns]
    assert cells[3] == ["refused: building ended with -9: killed", "3.14"]


def test_a_page_gets_the_table_and_the_picture(work: Path) -> None:
    """What was refused stays, with its reason; the rest of the page as well."""
    refused = {"name": "q", "role": "bias", "precision": "fp16", "refused": "killed | by -9"}
    model_cost.keep(work, {"embedded": COST, MINILM: COST, "q fp16": refused})
    page = work / "models.md"
    page.write_text("before\n<!-- bench models -->\nold\n<!-- /bench models -->\nafter\n")
    shown = bench(work, "--doc", str(page))
    assert shown.exit_code == 0, shown.output
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "Measured on a processor." in lines
    assert lines.count("| `m` | nli | fp32 | 3.14 | 2.00 | - | 1.3 | 100 | 90 |") == 2
    assert "| q | bias | fp16 | refused: killed \\| by -9 |  |  |  |  |  |" in lines
    assert (work / "images" / "models-cost.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_without_the_part_is_refused_before_anything_is_measured(work: Path) -> None:
    """And nothing is written."""
    page = work / "models.md"
    page.write_text("no markers\n")
    shown = bench(work, "--doc", str(page))
    assert shown.exit_code == 2
    assert "<!-- bench models -->" in shown.output
    assert set(model_cost.read_results(work)) == {"embedded"}


def test_numbers_of_two_machines_are_not_one_table() -> None:
    """A reader would compare them."""
    other = COST | {"machine": "another"}
    text = model_cost.markdown({"a": COST, "b": other}, "images")
    assert text.startswith("**Caution.**")
    assert "a processor; another" in text
