"""Says whether a headless run did what it should: `read_stats.py PREFIX_stats.csv`.

Ends with 1 if nothing was answered or anything failed, so that an empty run is not a success.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path


def verdict(rows: list[dict[str, str]]) -> tuple[bool, str]:
    """Return whether a run is good, and what to say about it."""
    (total,) = (row for row in rows if row["Name"] == "Aggregated")
    answered = {row["Name"]: int(row["Request Count"]) for row in rows if row["Type"] == "POST"}
    checked = sum(n for name, n in answered.items() if not name.endswith((": shelf", ": refused")))
    failed = int(total["Failure Count"])
    return checked > 0 and failed == 0, f"{checked} verdicts, {failed} failures: {answered}"


def main() -> int:
    """Read the file named on the command line."""
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as stream:
        good, text = verdict(list(csv.DictReader(stream)))
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
