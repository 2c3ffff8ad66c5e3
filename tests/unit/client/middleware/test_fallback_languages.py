"""The text in place of an answer, by reason and by the reader's language, on every way out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

import guardrail_client as gc
from guardrail_client.middleware import FALLBACK, OUTAGE, Route, guarded
from guardrail_client.middleware.exchange import Exchange
from tests.unit.client.middleware.conftest import BAD, Guard, Host, Reply, on_socket, reached
from tests.unit.client.middleware.test_event_streams import completion, read, stream

SORRY = {"de": "Leider nein.", "fr": "Désolé.", "pt-BR": "Não."}
BOTH = {"blocked": SORRY, "outage": {"de": "Später.", "*": "Later."}}


def spoken(reason: str, language: str | None) -> str:
    """Return a text that says what it was asked."""
    return f"{reason} {language}"


CASES: list[tuple[Any, str, str, str]] = [
    ("No.", "de", "No.", "No."),
    (SORRY, "de-AT,en;q=0.8", "Leider nein.", "Leider nein."),
    (SORRY, "en;q=0.5, fr;q=0.9", "Désolé.", "Désolé."),
    (SORRY, "pt-br", "Não.", "Não."),
    (SORRY, "en", FALLBACK, OUTAGE),
    (SORRY, "", FALLBACK, OUTAGE),
    ({**SORRY, "*": "Nope."}, "en", "Nope.", "Nope."),
    (BOTH, "de", "Leider nein.", "Später."),
    (BOTH, "en", FALLBACK, "Later."),
    ({"de": {"blocked": "Nein.", "outage": "Später."}}, "de", "Nein.", "Später."),
    ({"blocked": "No.", "de": "Leider."}, "de", "No.", "Leider."),
    ({"outage": "Later."}, "outage", FALLBACK, "Later."),
    (spoken, "de-AT", "blocked de-at", "outage de-at"),
    (spoken, "", "blocked None", "outage None"),
    (spoken, "<script>, a b, *", "blocked None", "outage None"),
]


@pytest.fixture(params=CASES, ids=range(len(CASES)))
def case(request: pytest.FixtureRequest) -> tuple[Any, str, str, str]:
    """Return a fallback, the language asked for, and what stands in for a block and an outage."""
    found: tuple[Any, str, str, str] = request.param
    return found


@pytest.mark.parametrize("own", [False, True], ids=["header", "application"])
@pytest.mark.parametrize("kind", ["json", "stream"])
def test_a_response(kind: str, own: bool, case: Any, host: Host) -> None:
    """Over ASGI and WSGI; what the application says counts more than the header."""
    fallback, language, blocked, outage = case
    route = Route("/ask", fallback=fallback)
    headers = {"Accept-Language": "xx" if own else language}
    reply = Reply.of({"answer": BAD}) if kind == "json" else stream(completion(BAD))
    if own:
        reply.own = {"language": "fr" if "fr" in language else language.partition(",")[0]}
    for failing, expected in ((None, blocked), (503, outage)):
        host.guard.failing = failing
        found = host.get(reply, route, headers=headers)
        shown = found.json()["answer"] if kind == "json" else read(found.text)
        assert shown == expected


@pytest.mark.parametrize("failing", [None, 503])
def test_a_websocket(failing: int | None, case: Any) -> None:
    """The header of its handshake."""
    fallback, language, blocked, outage = case
    route = Route("/ask", websocket="text", fallback=fallback)
    sent = on_socket(Guard(failing=failing), route, BAD, language=language)
    assert [m["text"] for m in sent if "text" in m] == [outage if failing else blocked]


@pytest.mark.parametrize("failing", [None, 503])
def test_a_function(failing: int | None, case: Any) -> None:
    """Its argument; the names of arguments are the caller's."""
    fallback, language, blocked, outage = case
    language = "fr" if "fr" in language else language.partition(",")[0]
    about: Any = {"question": None, "contexts": None, "fallback": fallback}
    expected = outage if failing else blocked
    guard = Guard(failing=failing)
    with gc.GuardrailClient(**reached(guard)) as client:

        @guarded(client, **about)
        def whole(language: str) -> str:
            return BAD

        @guarded(client, language="tongue", **about)
        def written(tongue: str) -> Iterator[str]:
            yield BAD

        assert whole(language) == expected
        assert "".join(written(language)) == expected

    async def awaited() -> str:
        async with gc.AsyncGuardrailClient(**reached(guard)) as client:

            @guarded(client, **about)
            async def whole(language: str) -> str:
                return BAD

            return str(await whole(language=language))

    assert anyio.run(awaited) == expected


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ("de-AT, de;q=0.9, en;q=0.8", ["de-at", "de", "en"]),
        ("en;q=0, fr", ["fr"]),
        ("en;q=x, fr;q=0.1", ["fr"]),
        (", ".join(["de"] * 3 + ["fr"] * 9), ["de", "fr"]),
        ("x" * 100_000, []),
    ],
    ids=range(5),
)
def test_languages_of_a_header(header: str, tags: list[str]) -> None:
    """The best first, bounded, and nothing that is no tag."""
    assert Exchange("/", accepted=header).languages == tags
