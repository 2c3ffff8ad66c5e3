"""Code of somebody else: a distribution as pip would have unpacked it, and an evaluator's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def unpack(
    folder: Path,
    name: str,
    points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
) -> Path:
    """Write a distribution's modules and metadata into a folder of the import path.

    Args:
        folder: Where it goes.
        name: Of the distribution.
        points: By group, what each entry point's name stands for.
        modules: Sources by module name.
    """
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source, "utf-8")
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    lines = []
    for group, entries in points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


NEW_EVALUATOR = '''
"""Does the answer greet? Added by a test."""

from __future__ import annotations

from collections.abc import Mapping

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import (
    Evaluator,
    EvaluatorSpec,
    NoParameters,
    evaluator,
)
from guardrail_service.types import MetricSpec


@evaluator
class Greets(Evaluator[NoParameters]):
    """Looks for one word."""

    spec = EvaluatorSpec(
        id="greets",
        name="Greets",
        summary="Does the answer say hello?",
        metrics=(MetricSpec("greets", boolean=True),),
        inputs=frozenset({"answer"}),
        run_class="D",
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return 1 if it does."""
        return {"greets": float("hello" in view.answer.casefold())}
'''
"""A file with an evaluator that looks for one word."""
