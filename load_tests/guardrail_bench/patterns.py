"""Measure what scanning costs: microseconds per KB on natural, encoded and hostile text."""

from __future__ import annotations

import base64
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from rich.console import Console
from rich.table import Table

from guardrail_service.detectors.pii import rules as pii_rules
from guardrail_service.text.patterns.search import Engine, Pattern, PatternSet

SIZE = 4096
"""Characters per text; about one long answer."""
REPEATS = 40
NATURAL = (
    "The committee met on 5 March 2024 to review the annual report, which runs to 214 pages. "
    "Revenue rose by 7.4 % to 1,234 million, and the number of employees grew from 8,120 to 8,455. "
    "Several members asked how the new policy would be applied in practice; the chair answered "
    "that guidance would follow in the second quarter. According to the survey, 62 % of the "
    "respondents were satisfied, 21 % were undecided, and the rest gave no answer. The passage "
    "cited in section 4.2 explains why: most cases were closed within thirty days, and appeals "
    "were rare. In contrast, earlier studies (Smith, 2019; Jones, 2021) had found longer delays. "
    "Customers may contact the office during business hours, and a full refund is possible within "
    "fourteen days of delivery. The device weighs 1.2 kg, supports version 3.1 of the protocol, "
    "and works at temperatures between -10 and 45 degrees. Nothing in this agreement limits the "
    "rights that consumers have under national law. "
)
"""Ordinary prose, written for this bench."""


@dataclass(frozen=True, slots=True)
class PatternRow:
    """Cost of one kind of text with one engine.

    Attributes:
        engine: `hyperscan` or `keywords`.
        text: Kind of text.
        us_per_kb: Median microseconds of processor time for 1,024 characters.
        ratio: Against natural text with the same engine.
        matches: How many matches one text has; each costs about a microsecond to locate.
        patterns: Size of the set.
    """

    engine: str
    text: str
    us_per_kb: float
    ratio: float
    matches: int
    patterns: int


def union() -> tuple[Pattern, ...]:
    """Return the patterns of personal data and of secrets, ids made unique by detector."""
    secrets = import_module("guardrail_service.detectors.secrets.detector").PATTERNS
    return tuple(
        Pattern(f"{detector}:{p.id}", p.regex, p.keywords, p.group, p.ignore_case, p.gate)
        for detector, patterns in (("pii", pii_rules.PATTERNS), ("secrets", secrets))
        for p in patterns
    )


def texts() -> dict[str, str]:
    """Return one text of each kind, the same in every run; the first is the reference."""
    rng = random.Random(0)  # noqa: S311 - test data, not a secret
    hostile = {
        f"{unit!r} repeated": unit
        for unit in ("1", "a", "1 ", "12-", "a.", "@", "a@a.", ":", "192.168.", "key = ", "sk-a")
    }
    return {
        "natural": _fill(NATURAL),
        "base64": base64.b64encode(rng.randbytes(SIZE)).decode()[:SIZE],
        "hex": rng.randbytes(SIZE).hex()[:SIZE],
        **{name: _fill(unit) for name, unit in hostile.items()},
    }


def _fill(unit: str) -> str:
    return (unit * (SIZE // len(unit) + 1))[:SIZE]


def run(repeats: int = REPEATS) -> list[PatternRow]:
    """Return the cost of every kind of text for every engine that is installed."""
    patterns, samples = union(), texts()
    engines: list[Engine] = ["keywords"]
    if find_spec("hyperscan") is not None:
        engines.insert(0, "hyperscan")
    return [row for engine in engines for row in _measure(engine, patterns, samples, repeats)]


def _measure(
    engine: Engine, patterns: tuple[Pattern, ...], samples: Mapping[str, str], repeats: int
) -> Iterable[PatternRow]:
    scanner = PatternSet(patterns, engine)
    reference = 0.0
    for name, text in samples.items():
        matches = len(scanner.scan(text))
        cost = _median_us(lambda text=text: scanner.scan(text), repeats) / (len(text) / 1024)  # type: ignore[misc]
        reference = reference or cost
        yield PatternRow(engine, name, cost, cost / reference, matches, len(patterns))


def _median_us(call: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.thread_time()  # processor time: what else the machine does is not our cost
        call()
        taken.append(time.thread_time() - start)
    return statistics.median(taken) * 1e6


def render(rows: Iterable[PatternRow], console: Console) -> None:
    """Print the rows as a table."""
    listed = list(rows)
    size = listed[0].patterns if listed else 0
    table = Table(title=f"{size} patterns, texts of {SIZE} characters")
    for heading in ("engine", "text", "us/KB (p50)", "x natural", "matches"):
        table.add_column(heading, justify="left" if heading in ("engine", "text") else "right")
    for row in listed:
        table.add_row(
            row.engine, row.text, f"{row.us_per_kb:.1f}", f"{row.ratio:.1f}", str(row.matches)
        )
    console.print(table)
