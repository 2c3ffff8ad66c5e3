"""Takes the installed plug-in through everything the service and the offline module do.

Run it where `guardrail` and the plug-in are installed: `python examples/plugin/try_it.py`. It needs
no network, prints one line per step and fails at the first thing that is not as it should be.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guardrail_client import GuardrailClient

POLICY = Path(__file__).with_name("policy.json")
GUARDRAIL = [sys.executable, "-m", "guardrail_service.commands.main"]
CALM = "The room has a view. Breakfast is served until ten."
PRESSING = "Hurry, buy now: only today, your last chance!"
SECRET = "Why Not? Lantern"  # noqa: S105 - the name of a made-up project
TOLD = f"The room has a view. We call it {SECRET} among ourselves. Breakfast is served until ten."


def main() -> None:
    """Run every step."""
    with tempfile.TemporaryDirectory() as folder:
        configured(POLICY, "acme_pressure", "acme_code_names")
        with served() as client:
            listed(client)
            judged(client)
            streamed(client)
        offline(Path(folder))


def configured(path: Path, *detectors: str) -> None:
    """`config check` accepts the plug-ins' names, an alias among them."""
    (report,) = json.loads(guardrail("config", "check", path, "--json"))
    assert report["unserved"] == {}, report
    assert set(detectors) <= set(report["policy"]["detectors"]), report
    print(f"config check: {path.name} can be served")


@contextmanager
def served() -> Iterator[GuardrailClient]:
    """`serve` loads the model that the detector brings."""
    command = [*GUARDRAIL, "serve", "--port", "0", "--config", str(POLICY)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
    try:
        lines = (json.loads(line) for line in process.stdout or ())
        address = next(line["address"] for line in lines if line.get("event") == "listening")
        with GuardrailClient(address, timeout=60) as client:
            yield client
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def listed(client: GuardrailClient) -> None:
    """`/v1/detectors` and `/v1/info` show the detectors, their model and its golden rows."""
    found = {detector["id"]: detector for detector in client.detectors()}
    assert found["acme_pressure"]["served"], found
    assert found["acme_code_names"]["served"], found
    info = client.info()
    assert info["pack"]["roles"]["acme_pressure"] == "words", info["pack"]
    assert info["golden"]["acme_pressure"]["rows"] == 50, info["golden"]
    assert info["fingerprints"]["detector:acme_code_names"] == "acme-code-names/1", info
    print("detectors:", ", ".join(name for name in found if name.startswith("acme")))


def judged(client: GuardrailClient) -> None:
    """`/v1/check` passes, blocks and redacts."""
    assert client.check(CALM).decision == "pass"
    pressed = client.check(PRESSING)
    assert (pressed.decision, pressed.action) == ("flag", "block"), pressed
    told = client.check(TOLD, include=["spans", "redacted_answer"])
    assert told.action == "redact", told
    assert told.redacted_answer == TOLD.replace(SECRET, "[CODE_NAME]"), told
    print("check: pass, block, redact")


def streamed(client: GuardrailClient) -> None:
    """In a stream no part of a name leaves, though a sentence seems to end inside it."""
    stream = client.check_stream(TOLD[at : at + 3] for at in range(0, len(TOLD), 3))
    assert "".join(stream) == TOLD.replace(SECRET, "[CODE_NAME]")
    shown: list[str] = []

    def model() -> Iterator[str]:
        yield f"{CALM} {CALM} "
        for _ in range(600):
            if shown:  # what is written at once is judged at once: nothing of it would be seen
                break
            time.sleep(0.1)
            yield ""
        yield f"{PRESSING} And more to come."

    stream = client.check_stream(model())
    for text in stream:
        shown.append(text)
    assert shown, "nothing left before the sentence that presses"
    assert f"{CALM} {CALM} ".startswith("".join(shown)), shown
    assert stream.final is not None
    assert stream.final.reason == "blocked", stream.final
    print("stream: held back and redacted, then stopped")


def offline(folder: Path) -> None:
    """`evaluate`, `evaluators show` and `calibrate fit` find what the plug-in brings."""
    assert "Quotations" in guardrail("evaluators", "show", "acme_quotes")
    assert "acme_pressure" in guardrail("evaluators", "show", "acme:pressure")
    lab = lines(folder / "lab.jsonl", list(cases()))
    names = "acme_quotes,acme_pressure,acme_code_names,looping"
    guardrail("evaluate", lab, "--out", folder / "run", "--evaluators", names, "--workers", "1")
    print("evaluate:", names)
    people = [
        {"case": c["key"], "label": "fail" if PRESSING in c["answer"] else "pass", "annotator": "a"}
        for c in cases()
    ]
    labels = lines(folder / "labels.jsonl", people)
    fitted = folder / "fitted.json"
    guardrail(
        "calibrate", "fit", folder / "run", "--labels", labels, "--base", POLICY,
        "--metric", "acme_pressure", "--alpha", "0.2", "--delta", "0.2", "--out", fitted,
    )  # fmt: skip
    block = json.loads(fitted.read_text("utf-8"))["calibration"]
    assert block["models"]["acme_pressure"] == {"name": "words"}, block["models"]
    assert "acme_pressure" in block["fingerprints"], block["fingerprints"]
    configured(fitted, "acme_pressure")
    print("calibrate fit: a threshold that knows the model it was fitted on")


def cases() -> Iterator[dict[str, Any]]:
    """Yield 120 questions and answers, every fourth of which presses."""
    for n in range(120):
        words = f'It is room {n}. "A view" is what you get.'
        yield {
            "key": f"case-{n}",
            "question": f"What about room {n}?",
            "answer": f"{words} {PRESSING}" if n % 4 == 0 else words,
            "contexts": [f"Room {n} has it all. A view it has."],
        }


def lines(path: Path, records: list[dict[str, Any]]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def guardrail(*arguments: str | Path) -> str:
    """Run a command and return what it prints."""
    done = subprocess.run(  # noqa: S603 - our own command
        [*GUARDRAIL, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main()
