"""Faults in a real process: a row that raises, a stall, departed clients, overload, SIGTERM.

Nothing hangs, nothing is lost, and every request is accounted for. No test asserts a time: what
must not wait for a stall of ten minutes ends while the stalled request is still open.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import onnx
import pytest
from onnx import numpy_helper

from tests.integration.conftest import FAULTY, PATIENCE_S, Served, running, until
from tests.tiny_pack import WORDS

TLS = ssl.create_default_context()
"""Made once: httpx reads every certificate of the machine for each client otherwise."""
FAIL_WORD = "fail"
STALLING = {"answer": "Parking costs five euros per night.", "contexts": ["Dogs are allowed."]}
FINE = {"answer": "The pool opens at seven.", "contexts": ["The pool opens at seven."]}


@pytest.fixture
def brittle(tiny: Path, tmp_path: Path) -> Path:
    """The tiny pack with a model that raises on one word: its row of the table is missing."""
    folder = Path(shutil.copytree(tiny, tmp_path / "brittle"))
    model = onnx.load(str(folder / "model.onnx"))
    (table,) = (value for value in model.graph.initializer if value.name == "table")
    missing = 3 + WORDS.index(FAIL_WORD)  # behind [UNK], [CLS] and [SEP]
    table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table)[:missing], "table"))
    onnx.save(model, str(folder / "model.onnx"))
    golden = json.loads((folder / "golden.json").read_text())
    fine = [row for row in golden["rows"] if FAIL_WORD not in row["text"] + row["pair"]]
    golden["rows"] = (fine * 2)[:50]
    (folder / "golden.json").write_text(json.dumps(golden))
    manifest = json.loads((folder / "manifest.json").read_text())
    for described in (manifest["models"]["tiny"], manifest["models"]["tiny"]["golden"]):
        data = (folder / described["path"]).read_bytes()
        described.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def on_brittle(brittle: Path, tiny_config: Callable[..., Path]) -> tuple[str | Path, ...]:
    """Options of a service with two workers on the brittle pack."""
    return ("--port", "0", "--pack", brittle, "--config", tiny_config(), "--workers", "2")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads of clients; a test that leaves one waiting hangs, and fails by its time-out."""
    with ThreadPoolExecutor(32) as threads:
        yield threads


def post(served: Served, body: Any) -> httpx.Response:
    """Send one check on a connection of its own."""
    return httpx.post(f"{served.address}/v1/check", json=body, timeout=PATIENCE_S, verify=TLS)


@contextmanager
def sent(served: Served, body: Any) -> Iterator[None]:
    """Send one check whose caller leaves at the end of the block, without a reply."""
    host, port = served.address.removeprefix("http://").split(":")
    content = json.dumps(body).encode()
    head = f"POST /v1/check HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(content)}\r\n"
    with socket.create_connection((host, int(port))) as caller:
        caller.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + content)
        yield


def metrics(served: Served) -> dict[str, float]:
    """Return every sample by name and labels."""
    lines = httpx.get(f"{served.address}/metrics", timeout=PATIENCE_S, verify=TLS).text.splitlines()
    found = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(value) for name, _, value in found}


def state(reply: httpx.Response) -> str:
    """Return what became of the detector that needs the model."""
    found: str = reply.json()["detectors"]["groundedness"]["state"]
    return found


def different(n: int, **more: Any) -> dict[str, Any]:
    """Return a sample no sentence of which any other one has."""
    contexts = [f"The pool {n} opens at seven. Breakfast {n} is served until ten."]
    return {"answer": f"The pool {n} opens in the morning.", "contexts": contexts, **more}


def test_a_raising_row_a_stalled_worker_and_a_departed_client(
    on_brittle: tuple[str | Path, ...], pool: ThreadPoolExecutor
) -> None:
    """One service bears all three; with one worker stalled the other serves everybody."""
    with running(*on_brittle, command=FAULTY, GUARDRAIL_DRAIN_S="1") as served:
        fine = {**FINE, "contexts": ["fail", *FINE["contexts"]]}
        with served.client():
            assert state(post(served, fine)) == "error"
        assert state(post(served, FINE)) == "evaluated"

        stalled = pool.submit(post, served, STALLING)
        until(lambda: metrics(served)["guardrail_running_rows"] >= 1, "one worker is stalled")
        late = post(served, {**STALLING, "deadline_ms": 50}).json()
        assert late["status"] == "partial"
        assert late["detectors"]["text_matching"]["state"] != "not_evaluated"
        replies = [post(served, FINE | {"answer": f"Dogs may {w}."}) for w in ("stay", "opens")]
        assert [state(reply) for reply in replies] == ["evaluated"] * 2
        until(lambda: metrics(served)["guardrail_stuck_workers"] == 1, "the stall is noticed")

        with sent(served, {**STALLING, "answer": "Parking costs two euros."}):
            until(lambda: metrics(served)["guardrail_running_rows"] == 2, "it is being judged")
        left = 'route="/v1/check",status="499"'
        until(lambda: any(left in name for name in metrics(served)), "its departure is noticed")
        assert metrics(served)["guardrail_queue_rows"] == 0
        assert not stalled.done()

        served.signal(signal.SIGTERM)
        assert stalled.result(PATIENCE_S).status_code == 503
        assert served.ended() == 0
    statuses = Counter(line["status"] for line in served.lines if line.get("route") == "/v1/check")
    assert statuses == {200: 5, 499: 1, 503: 1}


def test_three_times_as_much_as_fits(
    on_tiny: tuple[str | Path, ...], pool: ThreadPoolExecutor
) -> None:
    """Each request is judged, judged in part, or refused with the time to come back."""
    total = 150
    slow = {"FAULTY_ROW_S": "0.1", "GUARDRAIL_MAX_QUEUED_ROWS": "20"}
    with running(*on_tiny, command=FAULTY, **slow) as served:
        with served.client():
            post(served, different(-1))
        sent = [pool.submit(post, served, different(n, deadline_ms=1_000)) for n in range(total)]
        replies = [future.result(PATIENCE_S) for future in sent]
        counted = Counter(reply.status_code for reply in replies)
        assert set(counted) == {200, 429}
        assert counted.total() == total
        refused = [reply for reply in replies if reply.status_code == 429]
        assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)
        assert {r.json()["status"] for r in replies if r.status_code == 200} <= {
            "complete", "partial",
        }  # fmt: skip
        until(lambda: metrics(served)["guardrail_queue_rows"] == 0, "nothing is left behind")
        found = metrics(served)
        asked = {k: v for k, v in found.items() if k.startswith("guardrail_requests_total{")}
        checks = sum(v for k, v in asked.items() if 'route="/v1/check"' in k)
        assert checks == total + 1
        assert post(served, different(total)).json()["status"] == "complete"
        assert served.end() == 0
    logged = [line for line in served.lines if line.get("route") == "/v1/check"]
    assert len(logged) == total + 2


def outcome(sent: Future[httpx.Response]) -> str:
    """Return a reply's status, or that nobody listened any more."""
    error = sent.exception(PATIENCE_S)
    if error is None:
        return str(sent.result().status_code)
    # A connection may be waiting to be accepted when the listening socket closes.
    assert isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)
    return "not accepted"


def test_sigterm_under_load_finishes_what_was_accepted(
    on_tiny: tuple[str | Path, ...], pool: ThreadPoolExecutor
) -> None:
    """What is in the log was answered, and what was answered is in the log."""
    with running(*on_tiny, command=FAULTY, FAULTY_ROW_S="0.01") as served:
        with served.client():
            sent = [pool.submit(post, served, different(n)) for n in range(120)]
            until(lambda: sum(future.done() for future in sent) >= 10, "some are answered")
        served.signal(signal.SIGTERM)
        outcomes = Counter(outcome(future) for future in sent)
        assert served.ended() == 0
    assert outcomes["200"] >= 10
    assert set(outcomes) <= {"200", "429", "503", "not accepted"}
    logged = Counter(
        str(line["status"]) for line in served.lines if line.get("route") == "/v1/check"
    )
    del outcomes["not accepted"]
    assert logged == outcomes
