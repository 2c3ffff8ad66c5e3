"""A line in, a line out: order, isolation and how far ahead lines are read."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail_service.commands import sample_file as module
from guardrail_service.commands.sample_file import LineResult, check_lines, unqueued
from guardrail_service.errors import UnknownPolicy
from guardrail_service.settings import Limits, Settings
from guardrail_service.types import Action, PolicyRef, Sample, Timings, Verdict

WORKERS = 2


class Guard:
    """Judges by what the answer says."""

    def __init__(self) -> None:
        self.hold: dict[str, threading.Event] = {}
        self.asked: list[dict[str, Any]] = []

    def check(self, sample: Sample, policy: str | None, overrides: Any, **how: Any) -> Verdict:
        """Flag bad answers, refuse others' policies, wait where the test says so."""
        self.asked.append({"policy": policy, **how})
        if policy == "nonsense":
            raise UnknownPolicy("not loaded", "policy")
        if sample.answer in self.hold:
            assert self.hold[sample.answer].wait(30)
        decision = "flag" if sample.answer == "bad" else "pass"
        return Verdict(
            decision, Action.ALLOW, "complete", True, PolicyRef("p", "1", "0" * 64), {}, Timings()
        )  # type: ignore[arg-type]


@pytest.fixture
def guard() -> Guard:
    """The judge of a test."""
    return Guard()


@pytest.fixture
def run(guard: Guard) -> Callable[..., Iterator[LineResult]]:
    """Check lines with the test's judge."""
    settings = Settings(workers=WORKERS, limits=Limits(body_bytes=1_024))
    runtime: Any = SimpleNamespace(settings=settings, guard=guard)

    def lines(content: Iterable[bytes], policy: str | None = None) -> Iterator[LineResult]:
        return check_lines(runtime, content, policy)

    return lines


def line(answer: str, **fields: Any) -> bytes:
    """Return a body as a line."""
    return json.dumps({"answer": answer, **fields}).encode()


Run = Callable[..., Iterator[LineResult]]


def test_every_line_has_its_reply_or_its_error(run: Run) -> None:
    """A line that cannot be judged takes nobody else's place."""
    found = list(run([line("good"), b"", line("bad"), b"{", line("")]))
    assert [result.kind for result in found] == ["pass", "error", "flag", "error", "error"]
    numbers = [json.loads(r.json).get("error", json.loads(r.json))["request_id"] for r in found]
    assert numbers == [f"line-{n}" for n in range(1, 6)]
    assert all("\n" not in result.json for result in found)


def test_order_is_kept_when_an_early_line_takes_long(run: Run, guard: Guard) -> None:
    """Later lines are judged meanwhile and wait for their turn."""
    guard.hold["slow"] = threading.Event()
    results = run([line("slow", id="0"), *(line("good", id=str(n)) for n in range(1, 6))])
    opener = threading.Thread(target=guard.hold["slow"].set)
    opener.start()
    assert [json.loads(r.json)["id"] for r in results] == [str(n) for n in range(6)]
    opener.join()


def test_a_long_input_is_read_as_it_is_judged(run: Run) -> None:
    """A pipe may be endless; a few lines a worker are enough to keep all busy."""
    taken: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield line("good")

    results = run(endless())
    for _ in range(100):
        next(results)
    assert len(taken) <= 100 + 4 * WORKERS
    results.close()  # type: ignore[attr-defined]


def test_no_deadline_is_applied(run: Run, guard: Guard) -> None:
    """Not even the line's own."""
    list(run([line("good", deadline_ms=1, mode="shadow")]))
    assert guard.asked == [{"policy": None, "deadline_ms": float("inf"), "mode": "shadow"}]


def test_a_lines_own_policy_goes_first(run: Run, guard: Guard) -> None:
    """The option is for those that name none."""
    found = list(run([line("good"), line("good", policy="nonsense")], "mine"))
    assert [ask["policy"] for ask in guard.asked] in (["mine", "nonsense"], ["nonsense", "mine"])
    assert [result.kind for result in found] == ["pass", "error"]
    assert json.loads(found[1].json)["error"]["code"] == "unknown_policy"


def test_a_line_over_the_body_limit_is_refused_like_a_body(run: Run) -> None:
    """The same limit for a file and for HTTP."""
    (found,) = run([line("a" * 2_000)])
    error = json.loads(found.json)["error"]
    assert error["code"] == "body_too_large"
    assert error["message"] == "line: found 2014 bytes; expected at most 1024"


def test_nothing_in_is_nothing_out(run: Run) -> None:
    """An empty file is no error."""
    assert list(run([])) == []


def test_a_bug_is_not_hidden_in_a_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only our own errors become error lines."""

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "to_reply", broken)
    with pytest.raises(ZeroDivisionError):
        list(run([line("good")]))


def test_a_file_is_not_refused_for_its_own_length() -> None:
    """The queue's limit protects callers from each other; a file has one."""
    settings = Settings(limits=Limits(queued_rows=1, contexts=7))
    assert unqueued(settings).limits.queued_rows > 10**9
    assert unqueued(settings).limits.contexts == 7
    assert settings.limits.queued_rows == 1


@pytest.mark.parametrize("most", ["LONGEST_LINE", "MOST_INPUT"])
def test_a_file_without_an_end_is_refused(most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device, or a pipe from a program that never stops."""
    from guardrail_service.commands import main

    monkeypatch.setattr(main, most, 1_000)
    shown = CliRunner().invoke(
        main.app, ["check", "-"], input=b'{"answer": "a"}\n' * 100 + b"0" * 9_000
    )
    assert shown.exit_code == 2
    assert "expected" in shown.output
