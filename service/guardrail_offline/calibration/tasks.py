"""Drawn cases as files for people to label in, and as the record that goes with their labels."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from guardrail_offline.calibration.label_studio import tasks
from guardrail_offline.calibration.labels import FIELDS, inert
from guardrail_offline.calibration.sampling import Drawn


def task_text(drawn: Sequence[Drawn], suffix: str) -> str:
    """Return the cases to label: `.json` for Label Studio, `.csv` for a spreadsheet, else JSONL.

    Scores are left out: a label given in sight of a score is not independent of it. In CSV and
    JSON lines the label's own fields are there, empty, so that the file comes back as labels.
    """
    if suffix == ".json":
        return json.dumps(tasks(d.case for d in drawn), indent=1, ensure_ascii=False) + "\n"
    if suffix == ".csv":
        return _csv(drawn)
    return "".join(json.dumps(_record(d), ensure_ascii=False) + "\n" for d in drawn)


def sample_text(drawn: Sequence[Drawn]) -> str:
    """Return the drawn cases with their weights, as JSON lines."""
    return "".join(json.dumps({"case": d.case.key, "weight": d.weight}) + "\n" for d in drawn)


def _record(drawn: Drawn) -> dict[str, object]:
    case = drawn.case
    return {
        **dict.fromkeys(FIELDS),
        "case": case.key,
        "question": case.question,
        "answer": case.answer,
        "contexts": list(case.contexts),
    }


def _csv(drawn: Sequence[Drawn]) -> str:
    text = io.StringIO()
    names = (*FIELDS, "question", "answer", "contexts")
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for item in drawn:
        record = _record(item)
        record["contexts"] = "\n\n".join(item.case.contexts)
        writer.writerow({key: inert(value) for key, value in record.items()})
    return text.getvalue()
