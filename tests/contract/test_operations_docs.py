"""The commands of docs/operations.md run in their order, on the tiny pack."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail_service.commands.main import app

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text("utf-8")
PARTS = ("Keys", "Policies in versions", "Shadow and canary")
DIFFER = 1


def commands(part: str) -> list[str]:
    """Return the commands of a chapter that change or show keys and policies."""
    chapter = TEXT.split(f"\n## {part}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```bash\n(.*?)```", chapter, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if re.match(r"guardrail (keys|policies) ", line)]


def test_the_commands_of_the_page_run(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, from an empty folder with the two files that they name."""
    monkeypatch.chdir(tmp_path)
    for name, threshold in (("my", 0.4), ("fitted", 0.5)):
        content = {
            "evaluator_ids": ["groundedness"],
            "calibrated_thresholds": {"groundedness": {"groundedness": threshold}},
        }
        Path(f"{name}.json").write_text(json.dumps(content))
    ran = [command for part in PARTS for command in commands(part)]
    assert len(ran) >= 14
    for command in ran:
        arguments = shlex.split(command)[1:]
        done = CliRunner().invoke(app, arguments, env={"GUARDRAIL_MODEL_PACK": str(tiny)})
        expected = {0, DIFFER} if "diff" in arguments else {0}
        assert done.exit_code in expected, f"{command}: {done.output}"
