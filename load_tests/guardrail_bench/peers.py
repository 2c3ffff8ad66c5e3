"""The service beside the pipeline one would otherwise write, in one run, as ratios.

Starts the service on all cores, and `peers_pipeline.py` in an interpreter that has torch. They
take turns on the same texts; neither works while the other is timed.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import httpx

from guardrail_bench.bare import Planner
from guardrail_bench.latency import machine
from guardrail_bench.peers_results import PeersReport, Timed
from guardrail_bench.samples import SCENARIOS, SampleSource, read_texts
from guardrail_bench.server import busy_share, serving
from guardrail_service.errors import GuardrailError
from guardrail_service.text.segmentation.windows import Windower

SCRIPT = Path(__file__).with_name("peers_pipeline.py")
MAX_LENGTH = 256
"""Tokens of a pair, the encoder's own limit. A passage is packed into windows that fit, so that
the peers cut nothing either."""
_SPECIAL = 3  # [CLS] claim [SEP] window [SEP]
WARM_UP = 2


class PeersPlan(NamedTuple):
    """What to compare.

    Attributes:
        scenario: Name of a scenario.
        samples: How many samples, each cold and then, with another answer, warm.
        python: Interpreter that has the peers' libraries.
        workers: Model runs at the same time; the peers have two threads.
        seed: Another seed gives other samples.
        texts: What samples are made of.
        config: Guardrail JSONs of the service; none: the shipped ones.
        pack: Its model pack.
    """

    scenario: str
    samples: int
    python: Path
    workers: int
    seed: int
    texts: Path
    config: tuple[Path, ...]
    pack: str | None

    def steps(self) -> int:
        """Return how many samples there are to go through, and the start."""
        return 1 + WARM_UP + self.samples


def run(plan: PeersPlan, note: Callable[[str], None]) -> PeersReport:
    """Return the times of service and peers on the same samples.

    Raises:
        GuardrailError: If the service or the peers' process fails.
    """
    busy = busy_share()
    planner = Planner(plan.config, plan.pack)
    source = SampleSource(read_texts(plan.texts), SCENARIOS[plan.scenario], "cold", plan.seed)
    encoder = planner.pack.path(planner.pack.model("embedding"))
    found: list[Timed] = []
    note("starting")
    with (
        _peers(plan.python, encoder) as ask,
        serving(_arguments(plan), None) as server,
        httpx.Client(base_url=server.address, timeout=120) as client,
    ):
        started = datetime.now(UTC).isoformat(timespec="seconds")
        service = server.get("/v1/info").json()
        for number in range(WARM_UP + plan.samples):
            note(f"sample {number + 1 - WARM_UP}" if number >= WARM_UP else "warming up")
            for variant, passages in enumerate(("cold", "warm")):
                body = source.sample(number, variant)
                timed = _one(body, job_of(planner, body), client, ask)
                if number >= WARM_UP:
                    found.append(Timed(passages=passages, **timed))
    return PeersReport(
        started=started,
        machine=machine(),
        busy_before=busy,
        service=service,
        scenario=plan.scenario,
        workers=plan.workers,
        seed=plan.seed,
        timed=tuple(found),
    )


def _arguments(plan: PeersPlan) -> list[str]:
    arguments = ["--workers", str(plan.workers)]
    for path in plan.config:
        arguments += ["--config", str(path)]
    return [*arguments, "--pack", plan.pack] if plan.pack is not None else arguments


Ask = Callable[[dict[str, list[Any]]], dict[str, dict[str, float]]]


def _one(
    body: dict[str, Any], job: dict[str, list[Any]], client: httpx.Client, ask: Ask
) -> dict[str, Any]:
    """Return what one sample took everywhere, and how much there was to do."""
    began = perf_counter()
    reply = client.post("/v1/check", json=body)
    service_ms = (perf_counter() - began) * 1e3
    if reply.status_code != 200 or reply.json()["status"] != "complete":
        raise GuardrailError(f"the service answered {reply.status_code}; expected a whole verdict")
    spent = ask(job)
    return {
        "service_ms": service_ms,
        "peers_ms": {name: sum(steps.values()) for name, steps in spent.items()},
        "steps_ms": spent,
        "texts": {name: len(texts) for name, texts in job.items()},
    }


def job_of(planner: Planner, body: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the texts the peers have to read for one sample.

    `sentences`: the distinct sentences that the service embeds. `pairs`: every claim with every
    window of every passage. `classified`: what the service classifies; nothing where its pack
    has no classifier.
    """
    rows = list(planner.rows(body))
    claims = list(dict.fromkeys(row.text for row in rows if row.role == "grounding"))
    windower: Windower = planner.sessions["embedding"].tokenizer
    longest = max((len(windower.tokens(claim)) for claim in claims), default=0)
    windows = [
        window
        for passage in planner.segmented(body).context_windows("embedding")
        for window in packed([w.text for w in passage], windower, MAX_LENGTH - _SPECIAL - longest)
    ]
    return {
        "sentences": list(dict.fromkeys(row.text for row in rows if row.role == "embedding")),
        "pairs": [[claim, window] for claim in claims for window in windows],
        "classified": list(
            dict.fromkeys(row.text for row in rows if row.role in ("toxicity", "bias"))
        ),
    }


def packed(sentences: Sequence[str], windower: Windower, room: int) -> Iterator[str]:
    """Yield a passage's sentences joined into windows of at most `room` tokens.

    A sentence that alone has more is a window by itself.
    """
    window: list[str] = []
    used = 0
    for sentence in sentences:
        tokens = len(windower.tokens(sentence))
        if window and used + tokens > room:
            yield " ".join(window)
            window, used = [], 0
        window.append(sentence.strip())
        used += tokens
    if window:
        yield " ".join(window)


@contextmanager
def _peers(python: Path, encoder: Path) -> Iterator[Ask]:
    """Run the peers' script and yield what sends it a job and returns its times.

    Raises:
        GuardrailError: If it ends before it answers; its last line says why.
    """
    command = [str(python), "-P", str(SCRIPT), str(encoder)]
    with tempfile.TemporaryFile("w+") as errors, _started(command, errors) as process:

        def ask(job: dict[str, list[Any]]) -> dict[str, dict[str, float]]:
            if process.stdin is None or process.stdout is None:
                raise GuardrailError("the peers' process has no pipes")
            try:
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = ""
            if not line:
                errors.seek(0)
                last = errors.read().strip().splitlines()[-1:] or ["no output"]
                raise GuardrailError(
                    f"the peers' process ended: {last[0][:300]}; expected an interpreter with "
                    "requirements/export.txt and requirements/peers.txt installed"
                )
            answer: dict[str, dict[str, float]] = json.loads(line)
            return answer

        yield ask


@contextmanager
def _started(command: Sequence[str], errors: Any) -> Iterator[subprocess.Popen[str]]:
    try:
        process = subprocess.Popen(  # noqa: S603 - our own script, in the interpreter we were given
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    except OSError as error:
        raise GuardrailError(f"{command[0]}: {error.strerror}; expected an interpreter") from error
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
