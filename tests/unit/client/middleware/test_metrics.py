"""What is counted about guarded answers, and that labels hold no text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import guardrail_client as gc
from guardrail_client.middleware import AnswerMetrics, AnswerOutcome, GuardrailWSGI, Route, guarded
from guardrail_client.middleware.metrics import (
    COUNTERS,
    FIRST_TEXT,
    HISTOGRAMS,
    MAX_REASONS,
    STREAM_WAIT,
    WAIT,
)
from tests.unit.client.conftest import make_verdict
from tests.unit.client.middleware import conftest
from tests.unit.client.middleware.conftest import (
    BAD,
    GOOD,
    LEAK,
    MARKED,
    Host,
    Reply,
    on_socket,
)

Counted = list[tuple[str, dict[str, str]]]
FAILURES = {503: "not_ready", 500: "internal", 401: "unauthorized", 429: "overloaded"}


class Sink:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, str], float]] = []

    def __call__(self, name: str, labels: Mapping[str, str], value: float) -> None:
        """Keep it."""
        self.told.append((name, dict(labels), value))

    @property
    def counted(self) -> Counted:
        """Return names and labels of what was counted, without the route."""
        found = [(name, labels) for name, labels, _ in self.told if name not in HISTOGRAMS]
        assert all(labels["route"] == "/ask" for _, labels in found)
        return [(n, {k: v for k, v in ls.items() if k != "route"}) for n, ls in found]


VERDICTS: dict[str, tuple[str, Counted]] = {
    "allow": (GOOD, [("checked", {"action": "allow"})]),
    "mark": (MARKED, [("checked", {"action": "mark"}), ("marked", {})]),
    "redact": (LEAK, [("checked", {"action": "redact"}), ("redacted", {})]),
    "block": (BAD, [("stopped", {"reason": "blocked"}), ("checked", {"action": "block"})]),
    "nothing": ("", []),
}


@pytest.mark.parametrize(("answer", "counted"), VERDICTS.values(), ids=VERDICTS.keys())
def test_verdicts_are_counted(answer: str, counted: Counted, host: Host) -> None:
    """One for each thing that happened; a body without an answer counts nothing."""
    sink = Sink()
    host.get(Reply.of({"answer": answer}), Route("/ask", metrics=AnswerMetrics(sink)))
    assert sink.counted == counted


@pytest.mark.parametrize("on_error", ["closed", "open"])
@pytest.mark.parametrize(("status", "reason"), FAILURES.items())
def test_failures_are_counted(status: int, reason: str, on_error: Any, host: Host) -> None:
    """By reason, and whether the answer was shown nevertheless: never for a wrong key."""
    sink = Sink()
    host.guard.failing = status
    route = Route("/ask", metrics=AnswerMetrics(sink), on_error=on_error)
    host.get(Reply.of({"answer": GOOD}), route)
    unchecked = ("unchecked", {"reason": reason})
    if on_error == "open" and status != 401:
        assert sink.counted == [unchecked, ("failed_open", {"reason": reason})]
    else:
        assert sink.counted == [("stopped", {"reason": "outage"}), unchecked]


@pytest.mark.parametrize("kind", ["text/plain", "text/event-stream"])
@pytest.mark.parametrize("answer", [GOOD, BAD])
def test_streams_are_counted(answer: str, kind: str, host: Host) -> None:
    """Like whole answers."""
    sink = Sink()
    body = answer if kind == "text/plain" else f"data: {answer}\n\n"
    host.get(Reply.of(body.encode(), kind), Route("/ask", sse="text", metrics=AnswerMetrics(sink)))
    names = [name for name, _ in sink.counted]
    assert names == (["checked"] if answer == GOOD else ["stopped", "checked"])


@pytest.mark.parametrize("hold", [None, "all"])
@pytest.mark.parametrize("answer", [GOOD, BAD])
@pytest.mark.parametrize("kind", ["text/plain", "text/event-stream", "application/x-ndjson"])
def test_the_times_of_streams_are_taken(kind: str, answer: str, hold: Any, host: Host) -> None:
    """Until the first text is shown, and the wait in all; a text judged whole is timed as such."""
    ticks = itertools.count()
    sink = Sink()
    metrics = AnswerMetrics(sink, clock=lambda: float(next(ticks)))
    bodies = {"text/plain": answer, "text/event-stream": f"data: {answer}\n\n"}
    body = bodies.get(kind, json.dumps({"response": answer, "done": False}) + "\n")
    sse = "text" if kind != "application/x-ndjson" else "any"
    host.get(Reply.of(body.encode(), kind), Route("/ask", sse=sse, hold=hold, metrics=metrics))
    found = {name: value for name, labels, value in sink.told if name in HISTOGRAMS}
    if hold == "all":
        assert found == {WAIT: 1.0}
        return
    assert set(found) == ({FIRST_TEXT, STREAM_WAIT} if answer == GOOD else {STREAM_WAIT})
    assert found.get(FIRST_TEXT, 1.0) == 1.0
    assert found[STREAM_WAIT] > 0


def test_functions_that_write_in_pieces_are_timed() -> None:
    """Also when the guard is down."""
    sink = Sink()
    with gc.GuardrailClient("http://127.0.0.1:1", max_retries=0) as client:

        @guarded(client, question=None, contexts=None, metrics=AnswerMetrics(sink))
        def answer() -> Iterator[str]:
            yield GOOD

        list(answer())
    assert [name for name, _, _ in sink.told if name in HISTOGRAMS] == [STREAM_WAIT]


@pytest.mark.parametrize("kind", ["text/plain", "text/event-stream", "socket"])
@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_what_would_have_been_stopped_of_streams_is_counted(
    kind: str, mode: Any, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a policy that observes, as for whole answers; shown to its end."""
    sink = Sink()
    route = Route("/ask", sse="text", websocket="text", mode=mode, metrics=AnswerMetrics(sink))
    if mode == "enforce":  # the policy observes
        monkeypatch.setitem(conftest.ACTIONS, "lobster", "observe")
    if kind == "socket":
        sent = on_socket(host.guard, route, BAD, {"type": "websocket.close", "code": 1000})
        assert BAD in [message.get("text") for message in sent]
    else:
        body = BAD if kind == "text/plain" else f"data: {BAD}\n\n"
        assert BAD in host.get(Reply.of(body.encode(), kind), route).text
    assert ("would_have_stopped", {}) in sink.counted
    assert not any(name == "stopped" for name, _ in sink.counted)


OBSERVED: dict[str, tuple[str, str, str, bool]] = {
    "a policy that observes": ("enforce", "flag", "allow", True),
    "shadow, and it would be replaced": ("shadow", "flag", "block", True),
    "shadow, and it would be shown": ("shadow", "flag", "flag", False),
    "a policy that only flags": ("enforce", "flag", "flag", False),
    "a good answer": ("shadow", "pass", "allow", False),
}


@pytest.mark.parametrize(
    ("mode", "decision", "action", "stopped"), OBSERVED.values(), ids=OBSERVED.keys()
)
def test_what_would_have_been_stopped_is_counted(
    mode: Any, decision: str, action: str, stopped: bool
) -> None:
    """Where nothing is enforced, by policy or by the route."""
    sink = Sink()
    route = Route("/ask", mode=mode, metrics=AnswerMetrics(sink))
    verdict = {**make_verdict(), "decision": decision, "action": action}
    route.report(AnswerOutcome("/ask/me", "as_is", gc.CheckResult.from_json(verdict)))
    assert (("would_have_stopped", {}) in sink.counted) is stopped


def test_what_a_route_lets_pass_is_unchecked_and_no_failure() -> None:
    """The application chose it."""
    sink = Sink()
    route = Route("/ask", metrics=AnswerMetrics(sink))
    route.report(AnswerOutcome("/ask", "as_is", None, "unchecked_websocket"))
    assert sink.counted == [("unchecked", {"reason": "unchecked_websocket"})]


def test_labels_hold_no_text_and_do_not_fill_the_memory() -> None:
    """Codes come from a service; sentences and ever new codes become one label."""
    sink = Sink()
    route = Route("/ask", metrics=AnswerMetrics(sink))
    for code in ["The vault's pass phrase", "größe", *(f"code_{n}" for n in range(1000))]:
        route.report(AnswerOutcome("/ask/secret", "replaced", None, code))
    reasons = {labels["reason"] for name, labels in sink.counted if name == "unchecked"}
    assert len(reasons) == MAX_REASONS + 1
    assert "other" in reasons
    assert not any("vault" in str(told) or "secret" in str(told) for told in sink.told)


def test_the_wait_for_the_guard_is_taken(host: Host) -> None:
    """Of whole answers, whatever the guard says."""
    sink, times = Sink(), iter([10.0, 10.25])
    metrics = AnswerMetrics(sink, clock=lambda: next(times))
    host.guard.failing = 503
    host.get(Reply.of({"answer": GOOD}), Route("/ask", metrics=metrics))
    assert [(labels, value) for name, labels, value in sink.told if name == WAIT] == [
        ({"route": "/ask"}, 0.25)
    ]


def test_a_registry_has_every_metric(host: Host) -> None:
    """Two middlewares with one registry add up; the page holds names of routes and codes."""
    registry = CollectorRegistry()
    for answer in (GOOD, BAD):
        host.get(Reply.of({"answer": answer}), Route("/ask", metrics=AnswerMetrics(registry)))
    page = generate_latest(registry).decode()
    assert 'guardrail_middleware_checked_total{action="allow",route="/ask"} 1.0' in page
    assert 'guardrail_middleware_stopped_total{reason="blocked",route="/ask"} 1.0' in page
    assert 'guardrail_middleware_wait_seconds_count{route="/ask"} 2.0' in page
    assert all(f"guardrail_middleware_{name}_total" in page for name in COUNTERS)
    assert all(f"guardrail_middleware_{name}" in page for name in HISTOGRAMS)
    assert "lobster" not in page


@pytest.mark.parametrize("given", [True, False])
def test_a_middleware_gives_its_metrics_to_routes_without(given: bool) -> None:
    """One argument for all of them; a route's own stays."""
    sink, own = Sink(), AnswerMetrics(Sink())
    route = Route("/ask", metrics=own if given else None)
    with gc.GuardrailClient() as client:
        middleware = GuardrailWSGI(lambda *_: [], client, [route], metrics=sink)
    (used,) = middleware.routes
    assert (used.metrics is own) is given
    assert used.metrics is not None
    used.report(AnswerOutcome("/ask", "replaced", None, "not_ready"))
    assert bool(sink.told) is not given


def test_functions_are_counted_under_their_names() -> None:
    """As the function is called in its module."""
    sink = Sink()
    with gc.GuardrailClient("http://127.0.0.1:1", max_retries=0) as client:

        @guarded(client, question=None, contexts=None, metrics=AnswerMetrics(sink))
        def answer() -> str:
            return GOOD

        answer()
    assert {labels["route"] for _, labels, _ in sink.told} == {answer.__qualname__}


def test_metrics_go_to_a_registry_or_a_function() -> None:
    """Anything else is refused at start-up."""
    with pytest.raises(TypeError, match="found str, expected a registry or a function"):
        AnswerMetrics("localhost:8125")
