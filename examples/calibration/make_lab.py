"""Writes the example lab in both forms the commands read, from the project's labelled answers.

    make_lab.py FOLDER                 writes lab.json (for guardrail evaluate) and requests.jsonl
    make_lab.py FOLDER --label SAMPLE  writes labels.jsonl for the sampled cases and
                                       check_labels.jsonl for all other questions

The answers were written and labelled by this project's authors; see models/thresholds/README.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).resolve().parents[2] / "models" / "thresholds" / "answers.jsonl"
ANNOTATOR = "the authors"

Case = dict[str, Any]


def cases() -> list[Case]:
    """Return the labelled answers."""
    return [json.loads(line) for line in ANSWERS.read_text("utf-8").splitlines()]


def categories(case: Case) -> list[str]:
    """Return what slices are made of: the subject, and the fault of an answer that has one.

    The subject is the first word of the group's name.
    """
    fault = [f"fault:{case['reason']}"] if case["reason"] else []
    return [f"topic:{case['group'].split('-')[0]}", *fault]


def test_lab(answers: Iterable[Case]) -> dict[str, Any]:
    """Return the lab under the names of H2O Eval Studio's test labs."""
    inputs = [
        {
            "key": case["id"],
            "input": case["question"],
            "context": case["contexts"],
            "actual_output": case["answer"],
            "categories": categories(case),
            "relationships": [],
            "corpus": [],
            "expected_output": "",
            "model_key": "example",
            "group": case["group"],
        }
        for case in answers
    ]
    return {
        "name": "example calibration lab",
        "description": "Written and labelled by the authors of rag-guardrail.",
        "raw_dataset": {"inputs": []},
        "dataset": {"inputs": inputs},
        "models": [{"key": "example", "name": "example", "model_type": "rag"}],
        "llm_model_names": ["example"],
        "docs_cache": {},
    }


def request(case: Case) -> dict[str, Any]:
    """Return a body of /v1/check with the two keys that `guardrail calibrate lab` adds."""
    return {
        "id": case["id"],
        "question": case["question"],
        "answer": case["answer"],
        "contexts": case["contexts"],
        "group": case["group"],
        "categories": categories(case),
    }


def body(case: Case) -> dict[str, Any]:
    """Return a body of /v1/check as the service takes it."""
    ours = {"group", "categories"}
    return {key: value for key, value in request(case).items() if key not in ours}


def label(case: Case) -> dict[str, Any]:
    """Return the authors' word on one answer."""
    return {"case": case["id"], "label": case["label"], "metric": None, "annotator": ANNOTATOR}


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write JSON lines."""
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), "utf-8")


def main() -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--label", type=Path, help="what guardrail calibrate sample drew")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    answers = cases()
    if arguments.label is None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(test_lab(answers), indent=1, ensure_ascii=False) + "\n"
        (folder / "lab.json").write_text(text, "utf-8")
        write_lines(folder / "requests.jsonl", map(request, answers))
        write_lines(folder / "bodies.jsonl", map(body, answers))
        return 0
    drawn = {json.loads(line)["case"] for line in arguments.label.read_text().splitlines()}
    asked = {case["group"] for case in answers if case["id"] in drawn}
    write_lines(folder / "labels.jsonl", (label(c) for c in answers if c["id"] in drawn))
    others = (label(c) for c in answers if c["group"] not in asked)
    write_lines(folder / "check_labels.jsonl", others)
    return 0


if __name__ == "__main__":
    sys.exit(main())
