"""What an export is refused for, and the options the message names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import typer

from guardrail_models.verify import ExportFailed, Verification, refuse_wrong
from guardrail_service.commands.main import app


def test_the_options_that_accept_more_exist() -> None:
    """Whoever follows the message must not be told that there is no such option."""
    found = Verification(
        rows=9, longest=5, largest=0.4, mean=0.3, flips=5, scores=9, threshold=0.5, batch=0.0,
        batch_flips=0,
    )  # fmt: skip
    export: Any = SimpleNamespace(file=SimpleNamespace(path="m.onnx", batch_rule="one_row"))
    with pytest.raises(ExportFailed) as refused:
        refuse_wrong(found, export, (0.1, 0.05), 0.1)
    named = {word.rstrip(".,") for word in str(refused.value).split() if word.startswith("--")}
    export_command: Any = typer.main.get_command(app)
    context = typer.Context(export_command, info_name="guardrail")
    for name in ("models", "export"):
        export_command = export_command.get_command(context, name)
        context = typer.Context(export_command, parent=context, info_name=name)
    known = {option for parameter in export_command.params for option in parameter.opts}
    assert named == {"--largest", "--mean", "--max-flips"}
    assert named <= known
