"""The measurement of streams: on the tiny pack, what it counts and not how fast it is."""

from __future__ import annotations

from guardrail_bench import stream_delay
from guardrail_service.server.runtime import Runtime


def test_every_kind_of_text_is_streamed_and_counted(tiny_runtime: Runtime) -> None:
    """Warm-up included; prose holds about a sentence, and parts leave on the way."""
    done: list[None] = []
    rows = stream_delay.run(1, None, lambda: done.append(None), tiny_runtime)
    assert [row.text for row in rows] == list(stream_delay.TEXTS)
    assert len(done) == 2 * len(rows)
    prose = rows[0]
    assert 0 < prose.held[0] <= prose.held[1] < 2 * max(map(len, stream_delay.PROSE))
    assert prose.parts >= stream_delay.SENTENCES / 2
    assert all(0 < row.judged_ms[0] <= row.judged_ms[1] for row in rows if row.parts)


def test_the_table_has_a_row_per_kind() -> None:
    """Also for one of which nothing left before the end."""
    table = stream_delay.render([stream_delay.HeldBack("prose", (1, 2), (0.5, 1.5), 3)])
    assert table.row_count == 1
