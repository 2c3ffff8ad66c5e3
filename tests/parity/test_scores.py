"""A score does not depend on who else is calling: bit for bit the same on every way in.

Every sample is judged alone by the guard in this process, on one worker. The same samples then go
through a real service under 32 concurrent requests, in batches, through both clients and through
`guardrail check`. Floats are compared as JSON text, which loses no bit.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path
from typing import Any

import httpx
import pytest

import guardrail_client as gc
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.translate import parse_check, to_overrides, to_reply, to_sample
from guardrail_service.settings import Settings
from tests.integration.conftest import PATIENCE_S, Served, guardrail, running

ROOT = Path(__file__).resolve().parents[2]
CONCURRENT = 32
INCLUDE = ["spans", "evidence", "redacted_answer"]
FACTS = [
    "The library opens at {n} in the morning and closes at nine in the evening.",
    "A lost card costs {n} euros, which are paid back if it is found within a month.",
    "Readers may borrow up to {n} books for four weeks, and renew them twice.",
    "The reading room on floor {n} has places for groups that want to talk.",
    "Interlibrary loans take about {n} working days from order to collection.",
]


def generated() -> list[dict[str, Any]]:
    """Return long and odd samples, the same in every run."""
    chance = random.Random(20_240_607)  # noqa: S311 - made-up texts, not keys
    facts = [fact.format(n=n) for n in range(2, 14) for fact in FACTS]
    samples = []
    for size in (8, 20, 40, 60):
        told = chance.sample(facts, k=size)
        passages = [" ".join(told[i : i + 7]) for i in range(0, size, 7)]
        answer = " ".join([*chance.sample(told, k=min(size, 12)), "Pets may vote in May."])
        samples.append({"question": "How does it work?", "answer": answer, "contexts": passages})
    endless = ", ".join(fact.rstrip(".").lower() for fact in facts[:40]) + "."
    odd = "NUL \0 and 👩‍👩‍👧 and ﷽ and 水 stand in the reading room on floor 7."
    return [
        *samples,
        {"question": None, "answer": endless, "contexts": [endless[500:], facts[0]]},
        {"question": odd, "answer": f"{odd} {facts[3]}", "contexts": [{"id": "x", "text": odd}]},
        {"question": "?", "answer": "ok", "contexts": ["ok", "", " "]},
        {"question": "Wie lange?", "answer": facts[2], "contexts": facts[:25]},
    ]


def samples() -> list[dict[str, Any]]:
    """Return every sample as a request body with an id of its own."""
    lines = (ROOT / "examples" / "demo" / "answers.jsonl").read_text("utf-8").splitlines()
    bodies = [json.loads(line)["sample"] for line in lines] + generated()
    return [{**body, "include": INCLUDE, "id": str(n)} for n, body in enumerate(bodies)]


SAMPLES = samples()


def fixed(reply: dict[str, Any]) -> str:
    """Return a reply as text, without what is about the call and not about the answer."""
    kept = {k: v for k, v in reply.items() if k not in ("request_id", "timings_ms")}
    kept["detectors"] = {
        name: {k: v for k, v in detector.items() if k != "latency_ms"}
        for name, detector in reply["detectors"].items()
    }
    return json.dumps(kept, sort_keys=True)


@pytest.fixture(scope="module")
def alone() -> list[str]:
    """Every sample judged by itself, one row at a time."""
    runtime = Runtime(Settings(workers=1, batch_tokens=1))
    try:
        found = []
        for body in SAMPLES:
            request = parse_check(body)
            sample = to_sample(request, runtime.settings.limits)
            verdict = runtime.guard.check(sample, None, to_overrides(request), deadline_ms=inf)
            reply = to_reply(verdict, request, "alone")
            found.append(fixed(json.loads(reply.model_dump_json())))
        return found
    finally:
        runtime.close()


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    """One real service on the embedded pack."""
    with running("--port", "0") as served, served.client():
        yield served


def test_the_samples_reach_every_kind_of_verdict(alone: list[str]) -> None:
    """Otherwise equal replies would say little."""
    assert len(SAMPLES) >= 24
    replies = [json.loads(reply) for reply in alone]
    assert {reply["decision"] for reply in replies} == {"pass", "flag"}
    states = {d["state"] for reply in replies for d in reply["detectors"].values()}
    assert states >= {"evaluated", "not_applicable", "unverified"}
    assert "error" not in states
    spans = [s for r in replies for d in r["detectors"].values() for s in d["spans"]]
    assert any(span["evidence"] for span in spans)
    scores = [m["score"] for r in replies for d in r["detectors"].values() for m in
              d["metrics"].values()]  # fmt: skip
    assert sum(score != round(score, 6) for score in scores) > 40


def test_32_concurrent_requests_change_no_bit(alone: list[str], service: Served) -> None:
    """Every sample several times, in an order of its own, beside 31 others."""
    order = [n for _ in range(3) for n in range(len(SAMPLES))]
    random.Random(7).shuffle(order)  # noqa: S311 - an order, not a key
    with httpx.Client(base_url=service.address, timeout=PATIENCE_S) as client:

        def ask(n: int) -> str:
            reply = client.post("/v1/check", json=SAMPLES[n])
            assert reply.status_code == 200
            return fixed(reply.json())

        with ThreadPoolExecutor(CONCURRENT) as pool:
            found = list(pool.map(ask, order))
    for n, reply in zip(order, found, strict=True):
        assert reply == alone[n]


def test_a_batch_changes_no_bit(alone: list[str], service: Served) -> None:
    """Whole, and in any other company."""
    with httpx.Client(base_url=service.address, timeout=PATIENCE_S) as client:
        for items in (SAMPLES, SAMPLES[::-2]):
            results = client.post("/v1/check/batch", json={"items": items}).json()["results"]
            assert [fixed(result) for result in results] == [alone[int(i["id"])] for i in items]


def test_guardrail_check_changes_no_bit(alone: list[str], tmp_path: Path) -> None:
    """A file judged offline has the scores that serving gave."""
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(body) + "\n" for body in SAMPLES))
    ended = guardrail("check", path)
    assert ended.returncode == 1
    assert [fixed(json.loads(line)) for line in ended.stdout.splitlines()] == alone


def test_both_clients_change_no_bit(alone: list[str], service: Served) -> None:
    """Sync, async, one at a time, at once and in a batch."""
    with gc.GuardrailClient(service.address, timeout=PATIENCE_S) as client:
        one_by_one = [fixed(client.check(**body).raw) for body in SAMPLES]
        in_a_batch = [verdict(result) for result in client.check_many(SAMPLES)]  # type: ignore[arg-type]

    async def at_once() -> tuple[list[str], list[str]]:
        async with gc.AsyncGuardrailClient(service.address, timeout=PATIENCE_S) as client:
            results = await asyncio.gather(*(client.check(**body) for body in SAMPLES))
            batch = await client.check_many(SAMPLES)  # type: ignore[arg-type]
            return [fixed(result.raw) for result in results], [verdict(r) for r in batch]

    awaited, awaited_batch = asyncio.run(at_once())
    assert one_by_one == alone
    assert in_a_batch == alone
    assert awaited == alone
    assert awaited_batch == alone


def verdict(result: gc.CheckResult | gc.CheckError) -> str:
    """Return a batch item's reply as text."""
    assert isinstance(result, gc.CheckResult)
    return fixed(result.raw)
