"""`guardrail serve` as a process: signals, addresses, log lines, what stops start-up."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import guardrail_client as gc
from guardrail_service.inference.pack import write_manifest
from tests.integration.conftest import COMMAND, FAULTY, PATIENCE_S, Served, guardrail, here, until

EMBEDDED = Path(__file__).resolve().parents[2] / "models" / "embedded"
Serve = Callable[..., Served]
Options = tuple[str | Path, ...]
SAMPLE = {
    "answer": "Guests may stay for two weeks. Dogs are not allowed at the pool until ten.",
    "contexts": ["Guests may stay for two weeks at most."],
}


def metric(client: httpx.Client, name: str) -> float:
    """Return a metric without labels."""
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def stops_listening(client: httpx.Client) -> bool:
    """Return whether a service that was told to stop takes no more requests."""
    try:
        return client.get("/readyz").status_code == 503
    except httpx.TransportError:
        return True


def test_sigterm_finishes_running_checks_and_exits_0(
    serve: Serve, on_tiny: Options, tmp_path: Path
) -> None:
    """A drained stop is a success; the request in flight gets its whole reply."""
    gate = tmp_path / "gate"
    waits = {"FAULTY_GATE": str(gate), "GUARDRAIL_DRAIN_S": str(PATIENCE_S)}
    service = serve(*on_tiny, "--workers", "1", command=FAULTY, **waits)
    with service.client() as client, ThreadPoolExecutor() as pool:
        reply = pool.submit(client.post, "/v1/check", json=SAMPLE)
        until(lambda: metric(client, "guardrail_queue_rows") > 0, "rows are waiting")
        service.signal(signal.SIGTERM)
        until(lambda: stops_listening(client), "the service stops")
        assert not reply.done()
        gate.touch()
        assert reply.result().status_code == 200
        assert reply.result().json()["status"] == "complete"
        assert reply.result().json()["detectors"]["groundedness"]["state"] == "evaluated"
    assert service.ended() == 0
    access = [line for line in service.lines if line.get("route") == "/v1/check"]
    assert [line["status"] for line in access] == [200]


def test_a_broken_reload_keeps_the_last_good_configuration(
    serve: Serve, tiny: Path, tiny_config: Callable[..., Path]
) -> None:
    """A broken file changes nothing but `/readyz` and a metric; a good one takes over."""
    path = tiny_config("1")
    service = serve("--port", "0", "--pack", tiny, "--config", path)
    service.signal(signal.SIGHUP)  # at once: it listens, and ends by no signal of this kind
    with service.client() as client:
        assert client.get("/readyz").json() == {"ready": True, "detail": {}}
        assert metric(client, "guardrail_config_reload_failed") == 0
        for broken in ("{", '{"evaluator_ids": ["nonsense"]}', '{"evaluator_ids": [' + "1" * 5_000):
            path.write_text(broken)
            service.signal(signal.SIGHUP)
            until(lambda: client.get("/readyz").json()["detail"], "the reload has failed")
            assert client.get("/readyz").status_code == 200
            assert client.get("/readyz").json()["ready"] is True
            assert metric(client, "guardrail_config_reload_failed") == 1
            assert client.post("/v1/check", json=SAMPLE).json()["policy"]["version"] == "1"
            tiny_config("1")
            service.signal(signal.SIGHUP)
            until(lambda: not client.get("/readyz").json()["detail"], "the reload has worked")
        tiny_config("2")
        service.signal(signal.SIGHUP)
        until(
            lambda: client.get("/v1/policies").json()["policies"][0]["version"] == "2",
            "the new configuration is in force",
        )
        assert client.post("/v1/check", json=SAMPLE).json()["policy"]["version"] == "2"
        assert metric(client, "guardrail_config_reload_failed") == 0
        assert client.post("/v1/admin/reload").json()["policies"][0]["version"] == "2"
    assert service.end() == 0
    assert any("reload failed" in line.get("message", "") for line in service.lines)


def test_a_reload_without_the_default_policy_is_refused(
    serve: Serve, tiny: Path, tiny_config: Callable[..., Path]
) -> None:
    """Requests that name none would have nothing to be judged by."""
    path = tiny_config("1")
    service = serve("--port", "0", "--pack", tiny, "--config", path)
    with service.client() as client:
        content = json.loads(path.read_text())
        content["policy"]["name"] = "renamed"
        path.write_text(json.dumps(content))
        service.signal(signal.SIGHUP)
        until(lambda: client.get("/readyz").json()["detail"], "the reload has failed")
        assert client.post("/v1/check", json=SAMPLE).json()["policy"]["name"] == "tiny"
    service.signal(signal.SIGINT)
    assert service.ended() == 0  # Ctrl-C is no crash


def test_a_taken_port_is_one_line_and_status_2(on_tiny: Options) -> None:
    """The message names the address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = guardrail("serve", *on_tiny, "--port", str(port))
    assert ended.returncode == 2
    assert one_line(ended.stderr).startswith(f"error: listen on 127.0.0.1:{port}: found Address")
    assert b"listening" not in ended.stdout


def one_line(stderr: bytes) -> str:
    """Return the only line of an error output."""
    (line,) = stderr.decode().splitlines()
    return line


def test_a_unix_socket_serves_the_client_and_goes_away(
    serve: Serve, tmp_path: Path, on_tiny: Options
) -> None:
    """Nothing is left that would be in the way of the next start."""
    path = tmp_path / "guardrail.sock"
    service = serve(*on_tiny, "--uds", path)
    assert service.address == f"unix:{path}"
    with gc.GuardrailClient(uds=str(path), timeout=PATIENCE_S) as client:
        assert client.check(**SAMPLE).policy.name == "tiny"
    assert service.end() == 0
    assert not path.exists()


def test_every_line_is_json_and_every_request_has_one(serve: Serve, on_tiny: Options) -> None:
    """One canonical line per request, whatever became of it, without submitted text."""
    marked = {**SAMPLE, "answer": f"{SAMPLE['answer']} zq9", "id": "zq9"}
    service = serve(*on_tiny, GUARDRAIL_MAX_BODY_BYTES="20000")
    sent = {
        "good": ("POST", "/v1/check", json.dumps(marked)),
        "batch": ("POST", "/v1/check/batch", json.dumps({"items": [marked, {}]})),
        "empty": ("POST", "/v1/check", '{"answer": ""}'),
        "broken": ("POST", "/v1/check", '{"answer": zq9'),
        "large": ("POST", "/v1/check", '"' + "zq9" * 10_000),
        "nowhere": ("GET", "/zq9", ""),
        "method": ("PUT", "/v1/check", "zq9"),
        "info": ("GET", "/v1/info", ""),
    }
    with service.client() as client:
        before = {line["request_id"] for line in service.lines if "request_id" in line}
        for name, (method, path, content) in sent.items():
            headers = {"X-Request-Id": name, "Content-Type": "application/json"}
            reply = client.request(method, path, content=content, headers=headers)
            assert reply.headers["X-Request-Id"] == name
    assert service.end() == 0
    assert "zq9" not in json.dumps(service.lines)
    access = [line for line in service.lines if line.get("request_id") in sent]
    assert [line["request_id"] for line in access] == list(sent)
    assert [line["status"] for line in access] == [200, 200, 422, 400, 413, 404, 405, 200]
    assert {tuple(line)[:6] for line in access} == {
        ("at", "request_id", "method", "route", "status", "duration_ms")
    }
    good = access[0]
    assert good["decision"] in ("pass", "flag")
    assert set(good["states"]) == {"groundedness", "looping", "json_schema", "text_matching"}
    assert not before & set(sent)


def test_a_body_over_the_limit_is_answered_over_a_real_connection(
    serve: Serve, on_tiny: Options
) -> None:
    """With a Content-Length and in chunks; the next request is served."""
    service = serve(*on_tiny, GUARDRAIL_MAX_BODY_BYTES="20000")

    def chunks() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 1_000

    with service.client() as client:
        for content in (b"x" * 30_000, chunks()):
            headers = {"Content-Type": "application/json"}
            reply = client.post("/v1/check", content=content, headers=headers)
            assert reply.status_code == 413
            assert reply.json()["error"]["code"] == "body_too_large"
        assert client.post("/v1/check", json=SAMPLE).status_code == 200


@pytest.fixture
def embedded(tmp_path: Path) -> Path:
    """A copy of the shipped pack to damage."""
    return Path(shutil.copytree(EMBEDDED, tmp_path / "embedded"))


def entry(pack: Path, name: str) -> dict[str, Any]:
    """Return the manifest's entry for the model, its tokenizer or its golden rows."""
    manifest = json.loads((pack / "manifest.json").read_text())
    model = manifest["models"][manifest["roles"]["embedding"]]
    return dict(model if name == "model" else model[name])


def change(path: Path) -> None:
    """Flip a bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def truncate(path: Path) -> None:
    """Cut off the second half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("name", ["model", "tokenizer", "golden"])
@pytest.mark.parametrize(
    ("damage", "word"), [(change, "changed"), (truncate, "truncated"), (Path.unlink, "missing")]
)
def test_a_damaged_shipped_file_stops(
    name: str, damage: Callable[[Path], object], word: str, embedded: Path
) -> None:
    """One line with the file and what is wrong with it, status 2, from every command."""
    path = embedded / entry(embedded, name)["path"]
    damage(path)
    for command in (("models", "verify"), ("config", "check", "any.json"), ("check", os.devnull)):
        ended = here(*command, "--pack", embedded)
        assert ended.exit_code == 2
        assert ended.stderr.startswith(f"error: {path}: {word}")


def test_a_damaged_model_stops_start_up(embedded: Path) -> None:
    """No port is opened on a model that is not the calibrated one."""
    path = embedded / entry(embedded, "model")["path"]
    change(path)
    ended = guardrail("serve", "--port", "0", "--pack", embedded)
    assert ended.returncode == 2
    assert one_line(ended.stderr).startswith(f"error: {path}: changed")
    assert ended.stdout == b""


def test_golden_rows_that_differ_stop_start_up(embedded: Path) -> None:
    """Files may match the manifest while the scores do not match the thresholds."""
    manifest = json.loads((embedded / "manifest.json").read_text())
    described = manifest["models"][manifest["roles"]["embedding"]]["golden"]
    path = embedded / described["path"]
    golden = json.loads(path.read_text())
    golden["rows"][-1]["score"] += 0.5
    path.write_text(json.dumps(golden))
    data = path.read_bytes()
    described.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    write_manifest(embedded, manifest)
    ended = guardrail("serve", "--port", "0", "--pack", embedded)
    assert ended.returncode == 2
    assert one_line(ended.stderr).startswith(f"error: {path}: golden rows differ by 0.5")
    assert ended.stdout == b""
    verified = here("models", "verify", "--pack", embedded)
    assert verified.exit_code == 2
    assert "golden rows differ by 0.5" in verified.stderr


def test_an_unknown_pack_lists_the_shipped_ones() -> None:
    """The message says what could have been meant."""
    ended = here("models", "verify", "--pack", "huge")
    assert ended.exit_code == 2
    assert ended.stderr.startswith("error: model pack 'huge'")
    assert "embedded" in ended.stderr


def test_a_wrong_configuration_stops_before_the_port_opens(
    tiny: Path, write_config: Callable[..., Path]
) -> None:
    """One line with the file, key, what was found and what was expected; status 2."""
    path = write_config(evaluator_ids=["groundednes"])
    ended = guardrail("serve", "--port", "0", "--pack", tiny, "--config", path)
    assert ended.returncode == 2
    assert one_line(ended.stderr) == (
        f"error: {path}: evaluator_ids[0]: found unknown id 'groundednes'; "
        "expected a known detector id or alias; did you mean 'groundedness'?"
    )
    assert ended.stdout == b""


@pytest.mark.parametrize(
    ("variable", "value", "found"),
    [
        ("GUARDRAIL_MAX_CONTEXTS", "0", "GUARDRAIL_MAX_CONTEXTS: "),
        ("GUARDRAIL_PORT", "http", "GUARDRAIL_PORT: "),
        ("GUARDRAIL_WORKERS", "0", "GUARDRAIL_WORKERS: "),
        ("GUARDRAIL_DRAIN_S", "-1", "GUARDRAIL_DRAIN_S: "),
        ("GUARDRAIL_LOG_LEVEL", "loud", "GUARDRAIL_LOG_LEVEL: "),
        ("GUARDRAIL_LIMITS", "few", "limits"),
    ],
)
def test_a_wrong_variable_is_named(variable: str, value: str, found: str) -> None:
    """As the operator wrote it, in one line."""
    ended = here("serve", **{variable: value})
    assert ended.exit_code == 2
    assert found in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_an_unknown_default_policy_is_named(tiny: Path, tiny_config: Callable[..., Path]) -> None:
    """With those that are loaded."""
    options = ("--pack", tiny, "--config", tiny_config())
    ended = here("check", os.devnull, *options, GUARDRAIL_DEFAULT_POLICY="other")
    assert ended.exit_code == 2
    assert ended.stderr == "error: GUARDRAIL_DEFAULT_POLICY: found 'other'; expected tiny\n"


def test_an_idle_connection_is_kept(serve: Serve, on_tiny: Options) -> None:
    """A request on a connection that closes at that moment would be lost."""
    service = serve(*on_tiny)
    address = service.address.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    for idle in (7, 0):  # seconds; servers mostly close after 5
        connection.request("GET", "/readyz")  # it would not connect again by itself
        assert connection.getresponse().read().startswith(b'{"ready":true')
        time.sleep(idle)
    connection.close()


CERTIFICATES = Path(__file__).resolve().parents[1] / "unit" / "client" / "certificates"


def test_tls_keys_from_a_file_and_a_port_for_operations(
    serve: Serve, on_tiny: Options, tmp_path: Path
) -> None:
    """The second port serves health and metrics without a key; the first has no metrics then."""
    (tmp_path / "keys").write_text("hunter2\n")
    service = serve(
        *on_tiny, "--operations-port", "0", "--tls-certificate", CERTIFICATES / "server.pem",
        GUARDRAIL_API_KEYS_FILE=str(tmp_path / "keys"),
    )  # fmt: skip
    trusted = ssl.create_default_context(cafile=CERTIFICATES / "authority.pem")
    address = service.address
    assert address.startswith("https://127.0.0.1:")
    port = service.lines[-1]["operations_port"]
    with httpx.Client(verify=trusted, timeout=PATIENCE_S) as client:
        assert client.post(f"{address}/v1/check", json=SAMPLE).status_code == 401
        key = {"Authorization": "Bearer hunter2"}
        assert client.post(f"{address}/v1/check", json=SAMPLE, headers=key).status_code == 200
        assert client.head(f"{address}/healthz").status_code == 200
        assert client.get(f"{address}/metrics").status_code == 404
        operations = f"https://127.0.0.1:{port}"
        assert client.get(f"{operations}/readyz").json()["ready"] is True
        assert "guardrail_ready 1.0" in client.get(f"{operations}/metrics").text
        assert client.get(f"{operations}/v1/info", headers=key).status_code == 404
        reload = client.post(f"{operations}/v1/admin/reload", headers=key)
        assert reload.json()["error"]["code"] == "forbidden"  # a key of lines has not that right
    assert service.end() == 0


@pytest.mark.parametrize("option", ["--tls-certificate", "--tls-key"])
def test_a_certificate_that_cannot_be_used_is_one_line_and_status_2(
    option: str, on_tiny: Options, tmp_path: Path
) -> None:
    """Neither a traceback nor a service without TLS."""
    (tmp_path / "empty.pem").touch()
    ended = guardrail("serve", *on_tiny, "--port", "0", option, tmp_path / "empty.pem")
    assert ended.returncode == 2
    assert "GUARDRAIL_TLS_CERTIFICATE" in one_line(ended.stderr)
    assert b"listening" not in ended.stdout


def processor_s(service: Served) -> float:
    """Return the user and system seconds of a service's process so far."""
    fields = Path(f"/proc/{service.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("open_files", [160, 40])
def test_a_service_out_of_open_files_recovers_and_does_not_spin(
    open_files: int, serve: Serve, on_tiny: Options
) -> None:
    """With 160, connections are limited first, and health answers; with 40, files are used up."""
    run = f'ulimit -n {open_files}; exec "$@"'
    service = serve(*on_tiny, command=["sh", "-c", run, "sh", *COMMAND])
    parts = urlsplit(service.address)
    place = (parts.hostname or "", parts.port or 0)
    with ExitStack() as stack:
        for _ in range(open_files + 40):
            stack.enter_context(socket.create_connection(place, PATIENCE_S))
        before = processor_s(service)
        time.sleep(2)
        assert processor_s(service) - before < 1
        if open_files == 160:
            assert httpx.get(f"{service.address}/healthz", timeout=PATIENCE_S).status_code == 200
    until(lambda: is_alive(service.address), "health answers when the connections have ended")
    with service.client() as client:
        assert client.post("/v1/check", json=SAMPLE).status_code == 200
        counted = client.get("/metrics").text
    assert service.end() == 0
    told = [str(line.get("message")) for line in service.lines]
    assert sum("limit of open files" in line for line in told) == 1
    if open_files == 40:
        assert sum("last open file" in line for line in told) == 1
        assert re.search(r'refused_total\{reason="open_files"\} [1-9]', counted)
    else:
        assert sum("too many" in line and "health only for" in line for line in told) == 1
        refused = re.findall(r'refused_total\{reason="connections\w*"\} (\S+)', counted)
        assert sum(map(float, refused)) > 100


def is_alive(address: str) -> bool:
    """Return whether a service answers."""
    try:
        return httpx.get(f"{address}/healthz", timeout=PATIENCE_S).status_code == 200
    except httpx.TransportError:
        return False
