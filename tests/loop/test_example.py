"""The example runs from production to the next policy, and what it leaves says so."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 1500


@pytest.mark.timeout(PATIENCE_S + 60)
def test_the_whole_loop_by_commands(tmp_path: Path) -> None:
    """200 checks, 50 labels, a fitted policy replayed, shadowed and live; the chain holds."""
    folder = tmp_path / "loop"
    own = {"PYTHON": sys.executable, "GUARDRAIL": str(Path(sys.executable).parent / "guardrail")}
    done = subprocess.run(
        ["/bin/sh", str(ROOT / "examples" / "feedback_loop" / "run.sh"), str(folder)],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "50 labels stored" in done.stdout
    fitted = json.loads((folder / "fitted.json").read_text("utf-8"))
    assert fitted["calibration"]["target"]["alpha"] == 0.2
    with (folder / "replay.csv").open(encoding="utf-8") as file:
        replayed = list(csv.DictReader(file))
    assert len(replayed) == 200
    assert {row["source"] for row in replayed} == {"scores"}
    live = json.loads((folder / "policies" / "support" / "live").read_text("utf-8"))
    assert live["live"] == "2"
    page = (folder / "report.html").read_text("utf-8")
    assert "support@1" in page
    assert "support@2" in page
    assert "Shadow policies" in page
    assert "labels speak against it" in page  # those of the second draw
