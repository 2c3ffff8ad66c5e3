"""Labels the cases of step 5 by their expected answers, in the place of a person.

    python examples/workflow/people.py FOLDER labels.csv

A person reads question, answer and passages; this knows what the handbook says. It passes an answer
that has every number and most words of the expected one, and abstains where none is expected.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path


def verdict(answer: str, expected: str | None) -> str:
    """Return pass, fail or abstain."""
    if not expected:
        return "abstain"
    said, wanted = _words(answer), _words(expected)
    numbers = {word for word in wanted if any(char.isdigit() for char in word)}
    if numbers - said:
        return "fail"
    return "pass" if 2 * len(wanted & said) >= len(wanted) else "fail"


def label(folder: Path, out: Path) -> int:
    """Write the labels of a workflow's sample and return how many there are."""
    lab = json.loads((folder / "4-evaluation/lab.json").read_text("utf-8"))
    expected = {one["key"]: one["expected_output"] for one in lab["dataset"]["inputs"]}
    with (folder / "5-calibration/to_label.csv").open(encoding="utf-8", newline="") as stream:
        tasks = list(csv.DictReader(stream))
    with out.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case", "label", "annotator"])
        for task in tasks:
            said = verdict(task["answer"], expected.get(task["case"].lstrip("'")))
            writer.writerow([task["case"], said, "handbook"])
    return len(tasks)


def _words(text: str) -> set[str]:
    kept = "".join(char.lower() if char.isalnum() or char == ":" else " " for char in text)
    return set(kept.split())


if __name__ == "__main__":
    print(f"{label(Path(sys.argv[1]), Path(sys.argv[2]))} cases labelled")
