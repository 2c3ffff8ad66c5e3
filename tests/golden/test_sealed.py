"""The sealed half of the guarding corpus is the one committed, as SEALED.json says.

Nothing here prints a case: only counts and digests are compared.
"""

import gzip
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SEALED: dict[str, Any] = json.loads((HERE / "SEALED.json").read_text())
KINDS = ("attacks", "ordinary")


def _counts(kind: str) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Rows by class, by language, and by four properties; the rows themselves stay in here."""
    data = gzip.decompress((HERE / SEALED[kind]["file"]).read_bytes())
    rows = [json.loads(line) for line in data.splitlines()]
    properties = Counter(
        good=sum(row["good"] is True for row in rows),
        must_redact=sum(row.get("must") == "redact" for row in rows),
        taken=sum("source" in row for row in rows),
        ids=len({row["id"] for row in rows}),
    )
    return Counter(row["class"] for row in rows), Counter(row["lang"] for row in rows), properties


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_is_the_one_that_was_sealed(kind: str) -> None:
    """By its digest: a case that is changed after the first rule proves nothing."""
    data = (HERE / SEALED[kind]["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == SEALED[kind]["sha256"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_counts_are_those_announced(kind: str) -> None:
    """Rows, classes and languages, and at least eight cases of every class."""
    classes, languages, properties = _counts(kind)
    assert properties["ids"] == sum(classes.values()) == SEALED[kind]["rows"]
    assert classes == SEALED[kind]["classes"]
    assert languages == SEALED[kind]["languages"]
    assert min(classes.values()) >= 8


def test_every_attack_is_bad_and_every_ordinary_answer_is_good() -> None:
    """200 attacks; 200 ordinary answers of our own and 100 of people from other data."""
    attacks, ordinary = _counts("attacks")[2], _counts("ordinary")[2]
    assert (attacks["ids"], attacks["good"]) == (200, 0)
    assert attacks["must_redact"] == SEALED["attacks"]["must_redact"]
    assert (ordinary["ids"], ordinary["good"], ordinary["taken"]) == (300, 300, 100)
    assert len(SEALED["ordinary"]["taken_answers"]) == 100
