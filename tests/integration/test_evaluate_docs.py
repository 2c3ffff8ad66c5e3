"""The pages about evaluation say what is so: examples run, the table is the registry's."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from typer.testing import CliRunner

from guardrail_offline.evaluators.description import markdown
from guardrail_service.commands.main import app

DOCS = Path(__file__).parents[2] / "docs"


def test_the_examples_of_the_page_run() -> None:
    """Ragas' quickstart and H2O's test lab, on the embedded pack."""
    found = doctest.testfile(str(DOCS / "evaluation.md"), module_relative=False)
    assert found.attempted >= 14
    assert found.failed == 0


def test_the_table_of_evaluators_is_current() -> None:
    """Write it anew with `guardrail evaluators list --markdown > docs/evaluators.md`."""
    assert (DOCS / "evaluators.md").read_text("utf-8") == markdown()


def test_the_commands_of_the_page_exist() -> None:
    """With the options they are shown with."""
    shown = re.findall(r"^guardrail (.+)$", (DOCS / "evaluation.md").read_text("utf-8"), re.M)
    assert len(shown) >= 6
    for line in shown:
        words = line.split()
        names = words[:2] if words[0] == "evaluators" else words[:1]
        text = CliRunner().invoke(app, [*names, "--help"], env={"COLUMNS": "300"}).output
        for option in [word for word in words if word.startswith("-")]:
            assert option in text, line
