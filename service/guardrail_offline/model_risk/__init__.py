"""The results of a workflow as documents: the model-risk report and what mends the system."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

from guardrail_offline.model_risk.step_data import WorkflowData
from guardrail_offline.runs.shards import whole_file

ReportFormat = Literal["html", "docx", "pdf"]
FORMATS: tuple[ReportFormat, ...] = get_args(ReportFormat)
ARTEFACTS = "artefacts"


def write_mrm_report(
    root: Path, kind: ReportFormat = "html", out: Path | None = None, day: date | None = None
) -> Path:
    """Write the model-risk report of a workflow and return its path.

    Args:
        root: The workflow's folder. Steps that are missing are said to be.
        kind: HTML needs nothing; DOCX needs python-docx; PDF LibreOffice, too.
        out: The file; `artefacts/mrm-report.KIND` in the folder if None.
        day: Of the report; today if None.

    Raises:
        ConfigurationError: If the folder is no workflow, or LibreOffice is missing.
        MissingExtra: If python-docx is missing.
    """
    from guardrail_offline.model_risk.docx_writer import write_docx, write_pdf
    from guardrail_offline.model_risk.html_writer import html_report
    from guardrail_offline.model_risk.mrm_report import mrm_report

    document = mrm_report(WorkflowData(root), day)
    path = out if out is not None else root / ARTEFACTS / f"mrm-report.{kind}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "html":
        with whole_file(path) as stream:
            stream.write(html_report(document))
    elif kind == "docx":
        write_docx(document, path)
    else:
        write_pdf(document, path)
    return path


def write_artefacts(root: Path) -> dict[str, str]:
    """Write what mends the system: guardrail configuration, corpus patch, prompt extension.

    Args:
        root: The workflow's folder; the files lie in `artefacts/` in it.

    Returns:
        Name of each artefact, with the file relative to the folder, or why there is none.

    Raises:
        ConfigurationError: If the folder is no workflow.
    """
    from guardrail_offline.model_risk.corpus_patch import corpus_patch, patch_text
    from guardrail_offline.model_risk.html_writer import patch_page
    from guardrail_offline.model_risk.prompt_rules import prompt_rules, prompt_text, rules_json
    from guardrail_offline.model_risk.served_thresholds import served_thresholds

    data = WorkflowData(root)
    served, patch, rules = served_thresholds(data), corpus_patch(data), prompt_rules(data)
    texts: dict[str, str] = {}
    without = data.missing("evaluation") or ("" if patch.entries else data.missing("failures"))
    found = {"corpus patch": f"none: {without}" if without else "corpus-patch.html"}
    if not without:
        texts["corpus-patch.json"] = patch_text(patch)
        texts["corpus-patch.html"] = patch_page(patch, data.definition["name"].text)
    if served.content is None:
        found["guardrail configuration"] = _without(served.left_out, data.missing("calibration"))
    else:
        texts["guardrail.json"] = _json(served.content)
        found["guardrail configuration"] = "guardrail.json"
    unknown = data.missing("weaknesses", "variations", "adversarial")
    found["system-prompt extension"] = f"none: {unknown or 'no weakness asks for a rule'}"
    if rules or not unknown:
        texts["system-prompt-extension.json"] = _json(rules_json(rules))
    if rules:
        texts["system-prompt-extension.md"] = prompt_text(rules)
        found["system-prompt extension"] = "system-prompt-extension.md"
    folder = root / ARTEFACTS
    for name in WRITTEN - texts.keys():
        (folder / name).unlink(missing_ok=True)
    for name, text in texts.items():
        with whole_file(folder / name) as stream:
            stream.write(text)
    return {k: f"{ARTEFACTS}/{v}" if v in texts else v for k, v in found.items()}


WRITTEN = frozenset(
    {
        "guardrail.json",
        "corpus-patch.json",
        "corpus-patch.html",
        "system-prompt-extension.json",
        "system-prompt-extension.md",
    }
)
"""Files that an earlier state of the workflow may have left, and that say nothing now."""


def _without(left_out: Mapping[str, str], missing: str) -> str:
    reasons = "; ".join(f"{metric}: {why}" for metric, why in left_out.items())
    return f"none: {reasons or missing or 'step 5 has no threshold'}"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
