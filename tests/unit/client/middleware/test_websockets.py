"""WebSockets on a guarded path: refused, let pass, or read frame by frame."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from guardrail_client.middleware import FALLBACK, MARK, OUTAGE, AnswerOutcome, Route
from tests.unit.client.middleware.conftest import (
    BAD,
    GOOD,
    LEAK,
    LOOK,
    MARKED,
    RECEIVE,
    REDACTED,
    VALUE,
    Guard,
    on_socket,
    passages,
)

LOGGER = "guardrail_client.middleware"
CLOSE = {"type": "websocket.close", "code": 1000}
BLOCKED = {"reason": "blocked", "action": "block", "retract_from": None}
OUTAGE_TOLD = {"reason": "outage", "action": None, "retract_from": None}


def delta(text: str, **more: Any) -> str:
    """Return a frame of JSON with a piece of text."""
    return json.dumps({"type": "token", "delta": text, **more})


def pieces(text: str, frame: Callable[[str], str]) -> list[str]:
    """Return the frames of a text as a model writes it."""
    return [frame(text[at : at + 7]) for at in range(0, len(text), 7)]


def plain(text: str) -> str:
    """Return a frame of plain text."""
    return text


KINDS: dict[str, Callable[[str], str]] = {"json:/delta": delta, "text": plain}


def route(websocket: str = "json:/delta", **settings: Any) -> Route:
    """Return the route of a socket."""
    return Route("/ask", websocket=websocket, **settings)


def frames(sent: list[dict[str, Any]]) -> list[Any]:
    """Return the frames sent, JSON read."""
    found = [m.get("text", m.get("bytes")) for m in sent if m["type"] == "websocket.send"]
    return [json.loads(f) if isinstance(f, str) and f[:1] == "{" else f for f in found]


def shown(sent: list[dict[str, Any]]) -> str:
    """Return the text that a reader shows."""
    return "".join(
        frame.get("delta", "") if isinstance(frame, dict) else frame for frame in frames(sent)
    )


def closed(sent: list[dict[str, Any]]) -> tuple[int, Any]:
    """Return how the socket was closed, with what it says to a program."""
    (close,) = [m for m in sent if m["type"] == "websocket.close"]
    assert sent[-1] is close
    assert len(close.get("reason", "").encode()) <= 123
    return close["code"], json.loads(close.get("reason") or "null")


@pytest.mark.parametrize("path", ["/ask", "/ask/"])
def test_a_websocket_that_nobody_reads_is_refused(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With the code for a policy, before the application is asked."""
    seen: list[AnswerOutcome] = []
    with caplog.at_level(logging.WARNING, logger=LOGGER):
        sent = on_socket(Guard(), Route("/ask", on_outcome=seen.append), BAD, path=path)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert [(outcome.shown, outcome.error) for outcome in seen] == [("replaced", "websocket")]
    assert "websocket" in caplog.text


def test_a_route_may_let_it_pass(caplog: pytest.LogCaptureFixture) -> None:
    """With a line in the log, a metric and an outcome for the application."""
    seen: list[AnswerOutcome] = []
    with caplog.at_level(logging.WARNING, logger=LOGGER):
        assert (
            on_socket(Guard(), route("unchecked", on_outcome=seen.append), BAD)[-1]["text"] == BAD
        )
    assert [(outcome.shown, outcome.error) for outcome in seen] == [
        ("as_is", "unchecked_websocket")
    ]
    assert "unchecked_websocket" in caplog.text


def test_other_paths_are_not_touched() -> None:
    """A route is for its path."""
    assert on_socket(Guard(), Route("/ask"), BAD, path="/other")[-1]["text"] == BAD


@pytest.mark.parametrize("hold", [None, "all"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("text", "sees"), [(GOOD, GOOD), (LEAK, REDACTED), (MARKED, MARKED)])
def test_frames_are_checked_as_a_stream(text: str, sees: str, kind: str, hold: Any) -> None:
    """What may be shown is sent, redacted; the socket is closed as the application does."""
    seen: list[AnswerOutcome] = []
    ask = route(kind, hold=hold, on_outcome=seen.append)
    sent = on_socket(Guard(), ask, *pieces(text, KINDS[kind]), CLOSE)
    assert shown(sent) == sees
    assert VALUE not in str(sent)
    assert sent[-1] == CLOSE
    assert [outcome.shown for outcome in seen] == ["redacted" if text == LEAK else "as_is"]
    told = {"guardrail": {"action": "mark"}} in frames(sent)
    assert told == (text == MARKED and kind != "text")
    headers = dict(next(m for m in sent if m["type"] == "websocket.accept")["headers"])
    assert headers == {b"x-guardrail-decision": b"streaming"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_answer_ends_the_socket(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """The fallback, a frame for programs where frames are JSON, and a code that says why."""
    with caplog.at_level(logging.DEBUG):
        sent = on_socket(Guard(), route(kind), *pieces(BAD, KINDS[kind]), RECEIVE, GOOD)
    assert shown(sent) == FALLBACK
    assert closed(sent) == (1008, BLOCKED)
    assert ({"guardrail": BLOCKED} in frames(sent)) == (kind != "text")
    assert "lobster" not in str(sent) + caplog.text


def test_what_has_been_shown_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frame and close reason say from where on; nothing is, if all of it was held."""
    monkeypatch.setattr("tests.unit.client.middleware.conftest.SEEN_BEFORE_THE_END", True)
    sent = on_socket(Guard(), route(), *pieces(BAD, delta))
    assert closed(sent)[1] == {**BLOCKED, "retract_from": 0}
    assert frames(sent)[-1] == {"guardrail": {**BLOCKED, "retract_from": 0}}
    held = on_socket(Guard(), route(hold="all"), *pieces(BAD, delta))
    assert (shown(held), closed(held)[1]) == (FALLBACK, BLOCKED)


UNREAD: dict[str, Any] = {
    "binary": b"lobster",
    "another field": json.dumps({"note": "a lobster"}),
    "no JSON": "a lobster",
    "a list": json.dumps(["a lobster"]),
    "two readings": '{"delta": "good", "delta": "a lobster"}',
    "too large": delta("lobster" + "x" * 1_100_000),
}


@pytest.mark.parametrize("on_error", ["closed", "open"])
@pytest.mark.parametrize("name", UNREAD)
def test_a_frame_that_cannot_be_checked_follows_on_error(
    name: str, on_error: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Closed ends the socket, open sends it; both with a line in the log, without its text."""
    steps = [delta(GOOD), UNREAD[name]]
    with caplog.at_level(logging.DEBUG, logger=LOGGER):
        sent = on_socket(Guard(), route(on_error=on_error), *steps, CLOSE)
    text = str([m.get("text", m.get("bytes")) for m in sent])
    if on_error == "closed":
        assert "lobster" not in text
        assert shown(sent).endswith(OUTAGE)
        assert closed(sent) == (1013, OUTAGE_TOLD)
    else:
        assert sent[-1] == CLOSE
        assert "lobster" in text
        assert shown(sent[:2]) == GOOD
    assert "checked" in caplog.text
    assert "lobster" not in caplog.text


NO_ANSWER = {
    "a ping": json.dumps({"type": "ping"}),
    "a code": json.dumps({"type": "status", "id": "a-7", "seq": 3}),
    "no text yet": delta(""),
    "an end": json.dumps({"type": "end"}),
    "a declared type": json.dumps({"type": "sources", "passages": ["All of it."]}),
    "nothing": "",
}


@pytest.mark.parametrize("end", ["receive", "frame"])
@pytest.mark.parametrize("name", NO_ANSWER)
def test_a_frame_that_is_known_to_hold_no_answer_passes_in_its_turn(name: str, end: str) -> None:
    """As it is, byte for byte."""
    guard, frame = Guard(), NO_ANSWER[name]
    ask = route(websocket_end=end, unchecked_events=["sources"])
    sent = on_socket(guard, ask, frame, delta(GOOD), frame, CLOSE)
    assert shown(sent) == GOOD
    if name != "no text yet":
        texts = [m.get("text") for m in sent]
        assert (texts[1], texts[-2]) == (frame, frame)
    assert len(guard.asked) == 1


def test_a_frame_that_repeats_the_answer_waits_for_it() -> None:
    """And says the redacted one."""
    whole = json.dumps({"type": "final", "text": LEAK})
    sent = on_socket(Guard(), route(), *pieces(LEAK, delta), whole, CLOSE)
    assert frames(sent)[-1] == {"type": "final", "text": REDACTED}
    assert VALUE not in str(sent)


ENDS = {
    "receive": [],
    "/done": [json.dumps({"done": True})],
    "/event=end": [json.dumps({"event": "end"})],
    "/n=7": [json.dumps({"n": 7})],
}


@pytest.mark.parametrize("end", ENDS)
def test_answers_of_a_chat_are_judged_apart(end: str) -> None:
    """Each with its own question and passages; what is held leaves at the end of its answer."""
    guard = Guard()
    asked = [json.dumps({"question": f"Question {n}?"}) for n in range(3)]
    steps = [RECEIVE, *pieces(GOOD, delta), *ENDS[end], RECEIVE, *pieces(LEAK, delta), *ENDS[end]]
    sent = on_socket(guard, route(websocket_end=end), *steps, RECEIVE, delta(BAD), asked=asked)
    assert shown(sent) == GOOD + REDACTED + FALLBACK
    assert [a["question"] for a in guard.asked] == [f"Question {n}?" for n in range(3)]
    ended = [frame for frame in frames(sent) if "delta" not in frame and "guardrail" not in frame]
    assert ended == [json.loads(frame) for frame in ENDS[end] * 2]


def test_the_last_piece_may_stand_in_the_frame_that_ends_its_answer() -> None:
    """Only the last frame that is sent says that it is the last."""
    steps = [delta("Guests may stay "), delta("for two weeks at most.", done=True)]
    sent = on_socket(Guard(), route(websocket_end="/done"), *steps, *steps, CLOSE)
    assert shown(sent) == GOOD * 2
    assert [frame.get("done") for frame in frames(sent)] == [None, True, None, True]


def test_plain_text_may_end_with_a_word() -> None:
    """The frame that is exactly this."""
    sent = on_socket(Guard(), route("text", websocket_end="=[END]"), GOOD, "[END]", LEAK, "[END]")
    assert shown(sent) == f"{GOOD}[END]{REDACTED}[END]"


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_no_word_of_a_model_ends_a_plain_text(mode: Any) -> None:
    """Behind it the rest would be sent unread where the route fails open."""
    seen: list[AnswerOutcome] = []
    ask = route("text", on_error="open", mode=mode, on_outcome=seen.append)
    sent = on_socket(Guard(), ask, GOOD, "[DONE]", *pieces(BAD, plain))
    assert [outcome.result.action for outcome in seen if outcome.result] == ["block"]
    assert ("lobster" in shown(sent)) == (mode == "shadow")


def test_a_reader_cannot_cut_an_answer_in_two() -> None:
    """An application that writes while it waits for its reader has to say where an answer ends."""
    sent: list[dict[str, Any]] = []

    for end, text in (("receive", OUTAGE), ("/done", FALLBACK)):
        sent = on_socket(Guard(), route(websocket_end=end), *pieces(BAD, delta), both=True)
        assert shown(sent) == text


def test_looking_for_messages_does_not_cut_an_answer_in_two() -> None:
    """An application that looks between pieces has to say where an answer ends, too."""
    steps = [step for piece in pieces(BAD, delta) for step in (piece, LOOK)]
    for end, text in (("receive", OUTAGE), ("/done", FALLBACK)):
        sent = on_socket(Guard(), route(websocket_end=end), *steps)
        assert shown(sent).endswith(text)
        assert "lobster" not in shown(sent)
    before = on_socket(Guard(), route(), LOOK, json.dumps({"type": "busy"}), LOOK, delta(GOOD))
    assert shown(before) == GOOD


FRAMES: dict[str, Callable[[str], str]] = {
    "text": plain,
    "json:/answer": lambda text: json.dumps({"answer": text, "contexts": ["A pool."], "n": 1}),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize(
    ("text", "sees"), [(GOOD, GOOD), (LEAK, REDACTED), (BAD, FALLBACK), (MARKED, MARKED)]
)
def test_each_frame_may_be_an_answer(text: str, sees: str, kind: str) -> None:
    """It is treated like a reply in JSON: byte for byte if it may be shown; the socket stays."""
    guard = Guard()
    ask = route(kind, websocket_end="frame")
    frame = FRAMES[kind]
    sent = on_socket(
        guard, ask, RECEIVE, frame(text), frame(GOOD), CLOSE, asked=['{"question":"?"}']
    )
    found = [m["text"] for m in sent if m["type"] == "websocket.send"]
    assert found[-1] == frame(GOOD)
    assert json.loads(found[0]) == json.loads(frame(sees)) if kind != "text" else found[0] == sees
    if text == GOOD:
        assert found[0] == frame(GOOD)
    told = [json.loads(f)["guardrail"] for f in found if f.startswith('{"guardrail"')]
    if kind != "text":
        assert told == {BAD: [BLOCKED], MARKED: [{"action": "mark"}]}.get(text, [])
        assert guard.asked[0]["contexts"] == ["A pool."]
    assert guard.asked[0]["question"] == "?"
    assert sent[-1] == CLOSE


@pytest.mark.parametrize("end", ["receive", "frame"])
@pytest.mark.parametrize(("on_error", "sees"), [("closed", OUTAGE), ("open", GOOD)])
def test_without_a_guard_on_error_decides(on_error: Any, sees: str, end: str) -> None:
    """The close code of an outage is another than that of a block."""
    guard = Guard(failing=503)
    sent = on_socket(guard, route(on_error=on_error, websocket_end=end), delta(GOOD), CLOSE)
    assert shown(sent) == sees
    if on_error == "closed" and end == "receive":
        assert closed(sent) == (1013, OUTAGE_TOLD)
    else:
        assert sent[-1] == CLOSE


@pytest.mark.parametrize("end", ["receive", "frame", "/done"])
def test_shadow_passes_everything_and_reports(end: str) -> None:
    """Each answer, and each frame that nobody can read."""
    seen: list[AnswerOutcome] = []
    ask = route(mode="shadow", websocket_end=end, on_outcome=seen.append)
    steps = [delta(BAD, done=True), b"x", RECEIVE, delta(LEAK)]
    sent = on_socket(Guard(), ask, *steps, CLOSE)
    assert [m.get("text", m.get("bytes")) for m in sent[1:-1]] == [
        s for s in steps if s is not RECEIVE
    ]
    assert {(o.shown, o.result.action if o.result else o.error) for o in seen} == {
        ("as_is", "block"), ("as_is", "redact"), ("as_is", "binary_frame")
    }  # fmt: skip


@pytest.mark.parametrize(("reason", "sent"), [("done", "done"), (f"Write to {VALUE}", "")])
def test_a_reason_for_closing_is_a_name_or_nothing(reason: str, sent: str) -> None:
    """Nobody has read a sentence there."""
    assert on_socket(Guard(), route(), {**CLOSE, "reason": reason})[-1]["reason"] == sent


def test_a_sentence_stands_beside_a_marked_answer_where_it_is_held() -> None:
    """As in other streams."""
    sent = on_socket(Guard(), route("text", hold="all", mark="text"), MARKED, CLOSE)
    assert shown(sent) == f"{MARKED}\n\n{MARK}"


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"websocket": "json:delta"}, "websocket: found 'json:delta', expected text, json:"),
        ({"websocket": "text", "websocket_end": "/done"}, "websocket_end: found '/done'"),
        ({"websocket": "json:/a", "websocket_end": "=x"}, "expected receive, frame or a pointer"),
    ],
)
def test_a_wrong_setting_is_named_at_the_start(settings: Any, found: str) -> None:
    """With what was expected."""
    with pytest.raises(ValueError, match=found.replace("(", r"\(")):
        Route("/ask", **settings)


@pytest.mark.parametrize("end", ["receive", "frame", "/done"])
@pytest.mark.parametrize("mode", ["shadow", "enforce"])
def test_every_answer_is_judged_with_its_own_question_and_passages(mode: Any, end: str) -> None:
    """Also where it is judged beside the next one."""
    guard = Guard()
    asked = [json.dumps({"question": f"Question {n}?"}) for n in range(2)]
    steps: list[Any] = []
    for n in range(2):
        held = {"contexts": [f"Passage {n}."]} if end == "frame" else {}
        put = [] if held else [passages(f"Passage {n}.")]
        steps += [RECEIVE, *put, delta(f"Answer {n}.", done=True, **held)]
    on_socket(guard, route(mode=mode, websocket_end=end), *steps, asked=asked)
    found = [(a["question"], [c.get("text") if isinstance(c, dict) else c for c in a["contexts"]])
             for a in guard.asked]  # fmt: skip
    assert found == [(f"Question {n}?", [f"Passage {n}."]) for n in range(2)]


def test_shadow_reports_an_answer_that_is_too_large() -> None:
    """Also where it came in small frames; no more of it is kept."""
    seen: list[AnswerOutcome] = []
    ask = route(mode="shadow", websocket_end="/done", max_bytes=20, on_outcome=seen.append)
    on_socket(Guard(), ask, *[delta("x" * 15)] * 5)
    assert [outcome.error for outcome in seen] == ["too_large"]
