"""What the peers are given to do, and what is said about it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_bench.peers import (
    SCRIPT,
    SCRIPT_PART,
    PeersPlan,
    PeersReport,
    Timed,
    _peers,
    against_markdown,
    cpu_targets,
    packed,
    peers_markdown,
    peers_plot,
    peers_script,
    peers_targets,
)
from guardrail_service.errors import ServiceError
from guardrail_service.text.sample import TokenSpan

PAGE = Path(__file__).resolve().parents[3] / "docs" / "performance.md"


class Words:
    """Counts a token per word."""

    max_tokens = 256

    def tokens(self, text: str) -> list[TokenSpan]:
        """Return a token for each word."""
        return [TokenSpan(0, len(word), True) for word in text.split()]


@given(st.lists(st.integers(1, 12), max_size=20), st.integers(1, 15))
def test_windows_are_whole_sentences_that_fit_and_nothing_is_left_out(
    lengths: list[int], room: int
) -> None:
    """A sentence that is longer than a window is one by itself."""
    sentences = [" ".join(["word"] * length) for length in lengths]
    windows = list(packed(sentences, Words(), room))
    assert " ".join(windows).split() == " ".join(sentences).split()
    for window in windows:
        assert len(window.split()) <= room or window in sentences


def timed(passages: str, service: float, torch: float) -> Timed:
    """Return a sample's times; the ONNX loop takes half of torch's."""
    return Timed(
        passages=passages,  # type: ignore[arg-type]
        service_ms=service,
        peers_ms={"torch": torch, "onnx": torch / 2},
        steps_ms={"torch": {"pairs": torch}, "onnx": {"pairs": torch / 2}},
        texts={"sentences": 60, "pairs": 40, "classified": 0},
    )


def report(**changes: Any) -> PeersReport:
    """Return a report of two samples."""
    fields: dict[str, Any] = {
        "started": "2026-01-01T00:00:00+00:00",
        "machine": {"cpu": "a CPU", "cores": 2},
        "busy_before": 0.0,
        "service": {},
        "scenario": "rag",
        "workers": 2,
        "seed": 17,
        "timed": (
            timed("cold", 600, 1000), timed("warm", 240, 1000),
            timed("cold", 700, 1100), timed("warm", 260, 1200),
        ),
    }  # fmt: skip
    return PeersReport(**{**fields, **changes})


def test_ratios_are_of_medians_over_the_same_samples() -> None:
    """Nearest rank: of two values the lower one."""
    assert report().ratio("torch", "cold") == 0.6
    assert report().ratio("onnx", "cold") == 1.2
    assert report(timed=()).ratio("torch", "cold") is None


def test_the_promises_are_a_quarter_warm_and_six_tenths_cold() -> None:
    """Equal passes."""
    assert [(t.found, t.met) for t in peers_targets(report())] == [("0.60", True), ("0.24", True)]
    slow = report(timed=(timed("cold", 601, 1000), timed("warm", 251, 1000)))
    assert [t.met for t in peers_targets(slow)] == [False, False]


def test_the_promises_are_about_typical_rag() -> None:
    """Another scenario neither keeps nor breaks them."""
    assert [t.met for t in peers_targets(report(scenario="chat"))] == [None, None]


def beside(passages: str, service: float, older: float) -> Timed:
    """Return a sample's times beside another version; nothing else took part."""
    return Timed(
        passages=passages,  # type: ignore[arg-type]
        service_ms=service,
        peers_ms={"against": older},
        cpu_ms={"service": service, "against": older},
        steps_ms={},
        texts={"sentences": 60},
    )


def test_processor_time_is_compared_with_the_other_version() -> None:
    """Sums, not medians: the clock of a process has steps of 10 ms. Only 0.1.0 was promised."""
    times = (beside("cold", 50, 100), beside("cold", 90, 100), beside("warm", 90, 100))
    found = report(timed=times, against="0.1.0")
    share = found.cpu("cold")
    assert share is not None
    assert (share.ours, share.theirs, share.ratio, share.interval) == (70, 100, 0.7, (0.5, 0.9))
    assert [(t.found, t.met) for t in cpu_targets(found)] == [("0.70", False), ("0.90", False)]
    assert cpu_targets(report(timed=times, against="0.1.1")) == []
    assert peers_targets(found) == []
    for page in (peers_markdown(found, "x"), against_markdown(found)):
        assert "| cold | 70 | 100 | 0.70 | 0.50 to 0.90 |" in page


def test_the_page_shows_times_ratios_and_what_was_to_do(tmp_path: Path) -> None:
    """And a busy machine."""
    text = peers_markdown(report(busy_before=0.9), "x")
    assert "| cold | the service | 600 | 700 | 700 | 1 |" in text
    assert "| 1000 | 1100 | 1100 | 0.60 | 60 sentences, 40 pairs, 0 classified |" in text
    assert "**Caution.** The machine was not quiet" in text
    assert peers_plot(report(), tmp_path).read_bytes().startswith(b"\x89PNG")


def test_an_interpreter_without_torch_says_what_to_install() -> None:
    """This one has none, and must not have it."""
    with (
        _peers(Path(sys.executable), Path("model.onnx")) as ask,
        pytest.raises(ServiceError, match=r"No module named .*requirements/peers\.txt"),
    ):
        ask({"sentences": ["a"]})


def test_an_interpreter_that_does_not_exist_is_named() -> None:
    """Before a service is started."""
    with (
        pytest.raises(ServiceError, match="/nowhere/python: No such file"),
        _peers(Path("/nowhere/python"), Path("model.onnx")),
    ):
        raise AssertionError("never here")


def test_the_page_prints_the_script_that_runs() -> None:
    """Line for line."""
    text = PAGE.read_text("utf-8")
    printed = text.split(f"<!-- {SCRIPT_PART} -->")[1].split(f"<!-- /{SCRIPT_PART} -->")[0]
    assert printed.strip() == peers_script()
    assert "import guardrail" not in SCRIPT.read_text("utf-8")


def test_a_plan_counts_its_steps() -> None:
    """The start, two samples to warm up, and the samples."""
    plan = PeersPlan("rag", 5, Path(sys.executable), 2, 17, PAGE, (), None)
    assert plan.steps() == 8
