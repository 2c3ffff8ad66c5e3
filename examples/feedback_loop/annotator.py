"""Stands for a person who labels a drawn sample: says what the project's authors said.

    annotator.py FOLDER

The authors wrote and labelled these answers (models/thresholds/README.md); the label is found by
the words of question and answer, as a person would read them. In earnest people label in
`guardrail studio FOLDER`, or in the file itself.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

ANSWERS = Path(__file__).resolve().parents[2] / "models" / "thresholds" / "answers.jsonl"


def main(folder: Path) -> None:
    """Write labels.jsonl beside the cases."""
    cases = [json.loads(line) for line in ANSWERS.read_text("utf-8").splitlines()]
    words = {(case["question"], case["answer"]): case["label"] for case in cases}
    tasks = (folder / "to_label.jsonl").read_text("utf-8").splitlines()
    labels = [
        {
            "case": task["case"],
            "label": words[task["question"], task["answer"]],
            "metric": None,
            "annotator": "the authors",
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        for task in map(json.loads, tasks)
    ]
    text = "".join(json.dumps(label) + "\n" for label in labels)
    (folder / "labels.jsonl").write_text(text, "utf-8")
    passed = sum(label["label"] == "pass" for label in labels)
    print(f"{len(labels)} labels: {passed} pass, {len(labels) - passed} fail")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
