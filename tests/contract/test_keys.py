"""Several keys on one service: named in log and metrics, and what is kept apart for them."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from guardrail_service.errors import Overloaded
from guardrail_service.server.app import create_app
from guardrail_service.server.keys import key_id
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.service import Service
from guardrail_service.settings import Limits, Settings
from guardrail_service.types import CALLER

ASKED = {"question": "When?", "answer": "It opens at seven.", "contexts": ["It opens at seven."]}


@pytest.mark.parametrize(("is_apart", "times"), [(True, 2), (False, 1)])
def test_what_one_key_has_sent_is_new_from_another_if_asked_for(
    is_apart: bool,
    times: int,
    tiny: Path,
    configs: tuple[Path, Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """So nobody learns by the clock whether somebody else has sent a text."""
    caplog.set_level(logging.INFO, "guardrail.access")
    settings = Settings(
        model_pack=str(tiny),
        config=configs,
        workers=1,
        api_keys=("one", "two"),
        tenant_cache=is_apart,
    )
    runtime = Runtime(settings)

    def misses() -> int:
        return sum(found.misses for found in runtime.caches.stats().values())

    with TestClient(create_app(runtime=runtime)) as client:
        before, seen = misses(), []
        for key in ("one", "one", "two", "two"):
            sent = client.post("/v1/check", json=ASKED, headers={"Authorization": f"Bearer {key}"})
            assert sent.status_code == 200
            seen.append(misses() - before)
        metrics = client.get("/metrics").text
    first = seen[0]
    assert first > 0
    assert seen == [first, first, times * first, times * first]
    for key in ("one", "two"):
        name = key_id(key.encode())
        assert f'guardrail_key_requests_total{{key="{name}",status="200"}} 2.0' in metrics
        assert f'"key":"{name}"' in caplog.text


def test_one_key_cannot_take_every_place(tiny: Path, configs: tuple[Path, Path]) -> None:
    """One address can unless it is told not to: it may be a gateway. A batch alone always fits."""
    limits = Limits(concurrent_requests=4, requests_per_key=2)
    runtime = Runtime(Settings(model_pack=str(tiny), config=configs, workers=1, limits=limits))
    service = Service(runtime)
    try:
        with service._places(1, "key a"), service._places(1, "key a"):
            with pytest.raises(Overloaded, match="of this key"), service._places(1, "key a"):
                pass
            with service._places(1, "key b"), service._places(1, "10.0.0.1"):
                pass
        with service._places(9, "key a"):
            pass
        with service._places(2, "10.0.0.1"), service._places(2, "10.0.0.1"):
            pass
        assert not service._of
    finally:
        service.close()


@pytest.mark.parametrize("first", ["key a", "10.0.0.1"])
def test_callers_that_compete_leave_places_free(
    tiny: Path, configs: tuple[Path, Path], first: str
) -> None:
    """Two that want everything have three sevenths each; one alone may have it all."""
    limits = Limits(concurrent_requests=14, requests_per_key=14)
    runtime = Runtime(Settings(model_pack=str(tiny), config=configs, workers=1, limits=limits))
    service = Service(runtime)
    try:
        with ExitStack() as held:
            for _ in range(6):
                held.enter_context(service._places(1, first))
                held.enter_context(service._places(1, "key b"))
            for caller in (first, "key b"):
                with pytest.raises(Overloaded, match="part of 14 beside other callers"):
                    service._places(1, caller).__enter__()
            with service._places(1, "key c"):
                pass
        with ExitStack() as held:
            for _ in range(14):
                held.enter_context(service._places(1, first))
        assert not service._of
    finally:
        service.close()


def test_one_address_cannot_take_every_place_if_asked_for(
    tiny: Path, configs: tuple[Path, Path]
) -> None:
    """Where callers have addresses of their own and no keys."""
    limits = Limits(concurrent_requests=4, requests_per_key=1, requests_per_address=2)
    runtime = Runtime(Settings(model_pack=str(tiny), config=configs, workers=1, limits=limits))
    service = Service(runtime)
    try:
        with service._places(1, "10.0.0.1"), service._places(1, "10.0.0.1"):
            with pytest.raises(Overloaded, match="of this address"):
                service._places(1, "10.0.0.1").__enter__()
            with service._places(1, "10.0.0.2"), service._places(1, "key a"):
                pass
        with service._places(9, "10.0.0.1"):
            pass
        assert not service._of
    finally:
        service.close()


def test_the_streams_of_one_key_leave_threads_to_others(
    tiny: Path, configs: tuple[Path, Path]
) -> None:
    """However many of its parts wait to be judged."""
    limits = Limits(concurrent_requests=4)
    runtime = Runtime(Settings(model_pack=str(tiny), config=configs, workers=1, limits=limits))
    service, gate = Service(runtime), threading.Event()

    async def beside() -> str:
        CALLER.set("key a")
        parts = [asyncio.ensure_future(service.streams.judged(gate.wait)) for _ in range(9)]
        await asyncio.sleep(0)
        CALLER.set("key b")
        try:
            async with asyncio.timeout(20):
                return await service.streams.judged(lambda: "judged")
        finally:
            gate.set()
            await asyncio.gather(*parts)

    try:
        assert asyncio.run(beside()) == "judged"
    finally:
        service.close()
