"""Measures a policy on a corpus of bad and good answers: what is stopped, what is shown unchanged.

A corpus is a folder with `attacks/open.jsonl` and `ordinary/open.jsonl` and, if it has a sealed
half, `sealed.jsonl.gz` beside each and `SEALED.json`, which records their hashes and every opening.
Nothing here repeats a sealed text: not in a report, not in an error.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any, Literal

from scipy.stats import beta

from guardrail_bench.quality import ShareInterval, exact, lines
from guardrail_service.commands.console import settings_from
from guardrail_service.errors import ConfigurationError, InputError
from guardrail_service.guard.waiting import Cancellation
from guardrail_service.resources import configs_dir
from guardrail_service.server.runtime import Runtime
from guardrail_service.types import Action, DetectorResult, Passage, Sample, State, Verdict

HALVES = ("attacks", "ordinary")
SHIPPED = ("default", "strict", "observe")
RECORD = "SEALED.json"
CUT = "¦"
"""Cuts a secret in a file, so that code hosts do not refuse it; left out of what is judged."""
Listed = Literal["none", "ids", "texts"]


@dataclass(frozen=True, slots=True)
class CorpusCase:
    """One answer of the corpus.

    Attributes:
        redacts: Whether taking a part out is the right outcome of a bad answer.
    """

    id: str
    kind: str
    good: bool
    redacts: bool
    sample: Sample


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case and the outcome under a policy.

    Attributes:
        outcome: `blocked`, `redacted` or `shown`.
        by: The detectors behind an outcome other than shown, with a reason where one had no score.
        milliseconds: How long the check took; passages were known, the answer was not.
    """

    case: CorpusCase
    outcome: str
    by: tuple[str, ...]
    milliseconds: float

    @property
    def right(self) -> bool:
        """Return whether a good answer was shown unchanged or a bad one stopped."""
        if self.case.good:
            return self.outcome == "shown"
        return self.outcome == "blocked" or (self.outcome == "redacted" and self.case.redacts)


def default_corpus() -> Path:
    """Return the project's own corpus, which a checkout has and a wheel does not."""
    return Path(__file__).parents[2] / "tests" / "golden"


def read(path: Path) -> list[CorpusCase]:
    """Return the cases of a file.

    Raises:
        InputError: If there is no such file or a line is no case; the message names file and line.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a half of a guarding corpus")
    cases = [_case(line, f"{path.name}:{number}") for number, line in lines(path)]
    if not cases:
        raise InputError(f"{path}: found no case; expected JSON lines")
    return cases


def _case(line: bytes, where: str) -> CorpusCase:
    try:
        row = json.loads(line)
        question, answer, *contexts = (
            text.replace(CUT, "") for text in (row["question"], row["answer"], *row["contexts"])
        )
        sample = Sample(answer, question, tuple(map(Passage, contexts)))
        case = CorpusCase(row["id"], row["class"], row["good"], row.get("must") == "redact", sample)
        if not (isinstance(case.id, str) and isinstance(case.kind, str)) or not isinstance(
            case.good, bool
        ):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError):
        expected = "an object with id, class, question, contexts, answer and good"
        raise InputError(f"expected {expected}", where) from None  # the cause repeats the text
    return case


def open_half(corpus: Path) -> list[CorpusCase]:
    """Return the cases that everybody may read."""
    return [case for half in HALVES for case in read(corpus / half / "open.jsonl")]


def cases_of(
    corpus: Path, policies: Sequence[str], *, sealed: bool
) -> tuple[list[CorpusCase], int | None]:
    """Return the cases of a half; of the sealed one, also how often it has been opened."""
    return sealed_half(corpus, policies) if sealed else (open_half(corpus), None)


def sealed_half(corpus: Path, policies: Sequence[str]) -> tuple[list[CorpusCase], int]:
    """Return the sealed cases and how often they have been opened, this time included.

    The opening is recorded before a case is read, so a run that fails afterwards counts.

    Raises:
        InputError: If a file is missing or is not the one that was sealed.
    """
    record = corpus / RECORD
    try:
        content = json.loads(record.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{record}: {type(error).__name__}; expected what was sealed") from error
    try:
        digests = {half: content[half]["sha256"] for half in HALVES}
        opened = content["opened"]
        if not isinstance(opened, list):
            raise TypeError
    except (KeyError, TypeError) as error:
        expected = "a sha256 for attacks and for ordinary, and a list `opened`"
        raise InputError(f"{record}: found another form; expected {expected}") from error
    paths = {half: corpus / half / "sealed.jsonl.gz" for half in HALVES}
    for half, path in paths.items():
        if not path.is_file():
            raise InputError(f"{path}: no such file; expected the half that {RECORD} names")
        if hashlib.sha256(path.read_bytes()).hexdigest() != digests[half]:
            raise InputError(f"{path}: its sha256 is not the sealed one in {RECORD}; not opened")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    opening = {"date": now, "commit": _commit(corpus), "policy": ", ".join(policies)}
    opened.append(opening)
    record.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return [case for path in paths.values() for case in read(path)], len(opened)


def _commit(folder: Path) -> str:
    """Return the commit that is checked out, with a mark if files differ from it."""
    git = which("git")
    if git is None:
        return "unknown"
    asked = [git, "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30)  # noqa: S603 - git itself, and a folder
    return found.stdout.strip() or "unknown"


def policy_files(given: Sequence[str]) -> dict[str, Path]:
    """Return the configuration of each policy by the name or file given.

    Raises:
        ConfigurationError: If one is neither a shipped policy nor a file.
    """
    files = {}
    for name in given:
        path = configs_dir() / f"{name}.json" if name in SHIPPED else Path(name)
        if not path.is_file():
            expected = f"a guardrail file or one of {', '.join(SHIPPED)}"
            raise ConfigurationError("--policy", repr(name), expected)
        files[path.stem] = path
    return files


def judge(
    policy: Path, cases: Sequence[CorpusCase], pack: str | None, advance: Callable[[], None]
) -> list[JudgedCase]:
    """Return what a policy does with each case, one after another, without a deadline."""
    settings = settings_from(config=(policy,), model_pack=pack)
    judged = []
    with closing(Runtime(settings)) as runtime:
        for case in cases:
            if case.sample.contexts:
                runtime.guard.warm(case.sample.contexts, Cancellation())
            verdict = runtime.guard.check(case.sample, deadline_ms=math.inf)
            outcome = outcome_of(verdict, case.sample.answer)
            by = () if outcome == "shown" else reasons(verdict)
            judged.append(JudgedCase(case, outcome, by, verdict.timings.total))
            advance()
    return judged


def outcome_of(verdict: Verdict, answer: str) -> str:
    """Return what a reader gets: nothing of the answer, a part, or all as it was."""
    if verdict.action is Action.BLOCK:
        return "blocked"
    changed = verdict.redacted_answer not in (None, answer)
    return "redacted" if verdict.action is Action.REDACT and changed else "shown"


def reasons(verdict: Verdict) -> tuple[str, ...]:
    """Return the detectors that ask for another answer than the one given; often several do."""
    return tuple(
        _reason(name, result)
        for name, result in verdict.detectors.items()
        if result.action >= Action.REDACT
    )


def _reason(name: str, result: DetectorResult) -> str:
    return name if result.state is State.EVALUATED else f"{name} ({result.reason})"


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of some cases.

    Attributes:
        wrong_at_most: One-sided upper 95 % bound of the share that came out wrong.
        by: How often each detector was behind a changed answer.
    """

    n: int
    right: int
    share: ShareInterval
    wrong_at_most: float
    by: dict[str, int]


def figures(judged: Sequence[JudgedCase]) -> Figures:
    """Count some cases."""
    n, right = len(judged), sum(one.right for one in judged)
    wrong = n - right
    bound = 1.0 if wrong == n else float(beta.ppf(0.95, wrong + 1, n - wrong))
    by = Counter(name for one in judged for name in one.by)
    return Figures(n, right, exact(right, n), bound, dict(by.most_common()))


def by_class(judged: Sequence[JudgedCase], *, good: bool) -> dict[str, Figures]:
    """Return figures of each class of the good or the bad answers, and of `all` at the end."""
    classes: dict[str, list[JudgedCase]] = defaultdict(list)
    for one in judged:
        if one.case.good is good:
            classes[one.case.kind].append(one)
    found = {name: figures(members) for name, members in classes.items()}
    if found:
        found["all"] = figures([one for members in classes.values() for one in members])
    return found


def summary(judged: Sequence[JudgedCase]) -> dict[str, Any]:
    """Return one policy's part of a report."""
    return {
        "bad": {name: asdict(f) for name, f in by_class(judged, good=False).items()},
        "good": {name: asdict(f) for name, f in by_class(judged, good=True).items()},
        "median_ms": median(one.milliseconds for one in judged),
    }


def failures(judged: Sequence[JudgedCase], *, texts: bool) -> list[dict[str, Any]]:
    """Return the cases that came out wrong, with their texts only where asked for."""
    found = []
    for one in judged:
        if not one.right:
            row: dict[str, Any] = {"id": one.case.id, "outcome": one.outcome, "by": list(one.by)}
            if texts:
                row |= {"question": one.case.sample.question, "answer": one.case.sample.answer}
            found.append(row)
    return found


def run(
    policies: dict[str, Path],
    cases: Sequence[CorpusCase],
    pack: str | None,
    advance: Callable[[], None],
    listed: Listed = "none",
) -> dict[str, Any]:
    """Judge every case under every policy and return the report as JSON-ready values.

    Args:
        policies: Configuration of each, by name.
        cases: Bad and good answers.
        pack: Model pack; None: the shipped one.
        advance: Called after each check.
        listed: How wrong outcomes are listed; never with texts for a sealed half.
    """
    report: dict[str, Any] = {}
    for name, path in policies.items():
        judged = judge(path, cases, pack, advance)
        report[name] = summary(judged)
        if listed != "none":
            report[name]["failures"] = failures(judged, texts=listed == "texts")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(Path(__file__).parent),
        "policies": report,
    }
