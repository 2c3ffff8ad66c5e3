"""Starts the service on the embedded models, judges real RAG answers, compares with expectations.

Ends with 0 if every decision is the expected one, else with 1. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from guardrail_client import CheckResult, GuardrailClient

ANSWERS = Path(__file__).with_name("answers.jsonl")


@contextmanager
def service() -> Iterator[str]:
    """Run `guardrail serve` on a free port and yield its address."""
    command = [sys.executable, "-m", "guardrail_service.commands.main", "serve", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            address = _address(process)
            # A pipe that nobody empties holds 64 KB of log lines; the next one would wait for ever.
            threading.Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
            yield address
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[str]) -> str:
    for line in process.stdout or ():
        fields = json.loads(line)
        if fields.get("event") == "listening":
            return str(fields["address"])
    sys.exit(f"the service ended with status {process.wait()} before it listened")


def mismatch(case: dict[str, Any], result: CheckResult) -> str | None:
    """Return how a result differs from what the case expects, or None.

    The decision must be the same and every expected detector must have flagged; a bad answer may
    well trip others besides.
    """
    expected = case["expected"]
    missing = set(expected["flagged"]) - set(result.flagged_detectors)
    if result.decision == expected["decision"] and not missing:
        return None
    return f"expected {expected['decision']} {expected['flagged']}"


SHOWN_WHEN_PASSED = ("groundedness", "answer_relevancy")
SIGNS = {  # by direction and whether the score crossed the threshold
    ("higher_is_better", True): "<",
    ("higher_is_better", False): ">=",
    ("lower_is_better", True): ">",
    ("lower_is_better", False): "<=",
}


def what_decided(result: CheckResult) -> str:
    """Return the scores that flagged, or the reason there is none; for a pass, the margins."""
    passed = result.decision == "pass"
    parts = []
    for name, detector in result.detectors.items():
        if detector.flagged and not detector.metrics:
            parts.append(f"{name}: {detector.state} ({detector.reason})")
        if passed and detector.reason == "abstention":
            parts.append(f"{name}: {detector.reason}")
        for key, metric in detector.metrics.items():
            shown = key in SHOWN_WHEN_PASSED if passed else metric.flagged
            if metric.threshold is None or not shown:
                continue
            label = name if key == "model_passes" else key
            sign = SIGNS[metric.direction, metric.flagged]
            parts.append(f"{label} {metric.score:.2f} {sign} {metric.threshold:.2f}")
    return "\n".join(parts)


def shown_spans(result: CheckResult, answer: str) -> str:
    """Return the flagged parts of the answer with their code-point offsets."""
    lines = []
    for detector in result.detectors.values():
        for span in detector.spans if detector.flagged else ():
            text = " ".join(answer[span.start : span.end].split())
            short = text if len(text) <= 44 else text[:43] + "…"
            lines.append(f"[{span.start},{span.end}) {span.label}: {short}")
    return "\n".join(lines[:3] + ([f"and {len(lines) - 3} more"] if len(lines) > 3 else []))


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="cases to judge (JSONL)")
    arguments = parser.parse_args()
    cases = [json.loads(line) for line in arguments.answers.read_text("utf-8").splitlines()]
    console = Console(width=None if sys.stdout.isatty() else 150)
    table = Table("answer", "decision", "what decided", "where", "ms", title="rag-guardrail demo")
    wrong = []
    started = time.perf_counter()
    with service() as address, GuardrailClient(address, timeout=30) as client:
        console.print(f"service ready at {address} after {time.perf_counter() - started:.1f} s")
        for case in cases:
            result = client.check(**case["sample"])
            problem = mismatch(case, result)
            colour = "red" if problem else "green" if result.decision == "pass" else "yellow"
            decision = f"[{colour}]{result.decision}[/]" + (f"\n{problem}" if problem else "")
            name = f"[bold]{escape(case['name'])}[/]\n[dim]{escape(case['about'])}[/]"
            table.add_row(
                name,
                decision,
                escape(what_decided(result)),
                escape(shown_spans(result, case["sample"]["answer"])),
                f"{result.timings.total:.0f}",
            )
            wrong += [case["name"]] if problem else []
    console.print(table)
    console.print(
        f"{len(cases)} answers, {len(cases) - len(wrong)} as expected"
        + (f"; different: {', '.join(wrong)}" if wrong else "")
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
