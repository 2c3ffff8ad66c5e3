"""The tables and the picture of a measurement of growth."""

from __future__ import annotations

from pathlib import Path

from guardrail_bench.growth import (
    FORM_KINDS,
    FORMS,
    KINDS,
    PASSAGES,
    WORDS,
    GrowthReport,
    Point,
    ServedRate,
    markdown,
    tables,
)


def rate(form: str, kind: str, callers: int, per_second: float) -> ServedRate:
    """Return what a form of the service reached."""
    return ServedRate(form=form, kind=kind, callers=callers, per_second=per_second, p50_ms=80.0,
                p99_ms=120.0, cpu_ms=70.0, mb=300.0)  # fmt: skip


REPORT = GrowthReport(
    machine={"cpu": "a processor", "cores": 2},
    busy_before=0.5,
    points=tuple(
        Point(grows=grows, size=size, passages=kind, cpu_ms=4.0 * size, rows=2.0 * size)
        for kind in KINDS
        for grows, sizes in (("passages", PASSAGES), ("answer", WORDS))
        for size in sizes
    ),
    callers=tuple(rate("", "rag:warm", callers, 10.0 * callers) for callers in (1, 4)),
    cores=tuple(
        rate(form, kind, 16, 10.0 * (1 + place)) for place, form in enumerate(FORMS)
        for kind in FORM_KINDS
    ),
)  # fmt: skip


def test_rates_of_cores_stand_beside_those_of_one() -> None:
    """As a ratio for each kind of check; sizes have both kinds of passages in a line."""
    (about, _, sizes), (_, _, callers), (_, _, cores) = tables(REPORT)
    assert "A row takes 2.0 ms" in about
    assert list(sizes[0]) == ["passages: 1", "4", "4", "2", "2"]
    assert len(sizes) == len(PASSAGES) + len(WORDS)
    assert [row[1] for row in callers] == ["10.0", "40.0"]
    assert [row[2] for row in cores[:: len(FORM_KINDS)]] == [
        "10.0 (1.00)", "20.0 (2.00)", "30.0 (3.00)",
    ]  # fmt: skip


def test_the_page_warns_of_a_busy_machine_and_has_a_picture(tmp_path: Path) -> None:
    """Times of one that others used are too long."""
    image = tmp_path / "growth.png"
    page = markdown(REPORT, image)
    assert "others used 50% of its cores" in page
    assert "images/growth.png" in page
    assert image.stat().st_size > 10_000
