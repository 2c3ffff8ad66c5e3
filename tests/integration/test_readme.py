"""The README is true: its commands exist, its code runs, its reply is what the service answers."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer.main
from starlette.testclient import TestClient

from guardrail_client import GuardrailClient
from guardrail_service.commands.main import app
from tests.integration.conftest import PATIENCE_S, Served, running

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8080"
NUMBER = r"\d+\.\d+"
PROJECTS = {
    tomllib.loads(path.read_text("utf-8"))["project"]["name"]: tomllib.loads(
        path.read_text("utf-8")
    )
    for path in ROOT.glob("**/pyproject.toml")
    if not path.is_relative_to(ROOT / ".venv")
}


def blocks(language: str) -> list[str]:
    """Return the text of each fenced block in this language."""
    return [text for found, text in BLOCKS if found == language]


def commands() -> Iterator[list[str]]:
    """Yield the words of every command of the bash blocks, without remarks."""
    for block in blocks("bash"):
        text = block.replace("\\\n", " ")
        if "curl" in text:
            yield shlex.split(text)
            continue
        for line in text.splitlines():
            if words := shlex.split(line, comments=True):
                yield words


COMMANDS = list(commands())


@pytest.fixture(scope="module")
def guard() -> Iterator[Served]:
    """The service as the README starts it, on a free port."""
    with running("--port", "0") as served:
        yield served


def check(words: list[str], address: str) -> dict[str, Any]:
    """Send what a curl command sends and return the reply."""
    (url,) = [word for word in words if word.startswith(ADDRESS)]
    body = words[words.index("-d") + 1]
    headers = dict([words[words.index("-H") + 1].split(": ")])
    reply = httpx.post(
        url.replace(ADDRESS, address), content=body, headers=headers, timeout=PATIENCE_S
    )
    assert reply.status_code == 200, reply.text
    result: dict[str, Any] = reply.json()
    return result


def differences(shown: Any, found: Any, place: str = "reply") -> list[str]:
    """Return where a reply lacks something shown; processors may differ by a tenth in a score."""
    if isinstance(shown, dict):
        return [
            line
            for key, value in shown.items()
            for line in differences(value, found.get(key), f"{place}.{key}")
        ]
    if isinstance(shown, list):
        if len(shown) != len(found):
            return [f"{place}: {len(shown)} shown, {len(found)} found"]
        return [
            line
            for number, (left, right) in enumerate(zip(shown, found, strict=True))
            for line in differences(left, right, f"{place}[{number}]")
        ]
    if isinstance(shown, str) and isinstance(found, str):
        numbers = [[float(n) for n in re.findall(NUMBER, text)] for text in (shown, found)]
        same = re.sub(NUMBER, "#", shown) == re.sub(NUMBER, "#", found)
        return (
            []
            if same and numbers[0] == pytest.approx(numbers[1], rel=0.1)
            else [f"{place}: {found}"]
        )
    close = isinstance(shown, float) and found == pytest.approx(shown, rel=0.1)
    return [] if close or shown == found else [f"{place}: {found}"]


def test_the_reply_shown_is_the_reply_given(guard: Served) -> None:
    """The request above it, sent to the shipped models under the default policy."""
    (shown,) = blocks("json")
    (request,) = [words for words in COMMANDS if words[0] == "curl"]
    given = check(request, guard.address)
    assert differences(json.loads(shown), given) == []
    cuts = [
        reply["detectors"]["hallucination"]["metrics"]["hallucination"]["threshold"]
        for reply in (json.loads(shown), given)
    ]
    assert cuts[0] == cuts[1]  # a score may move a little, a threshold is what was shipped


def test_a_reply_that_differs_is_noticed() -> None:
    """In a word, a number, a list's length or a field that is gone."""
    assert differences({"a": "is 0.04, low"}, {"a": "is 0.0401, low"}) == []
    assert differences({"a": "is 0.04, low"}, {"a": "is 0.04, high"})
    assert differences({"a": "is 0.04"}, {"a": "is 0.08"})
    assert differences({"a": [1]}, {"a": [1, 2]})
    assert differences({"a": {"b": True}}, {"a": {}})


READERS = re.findall(r"^\| (nothing|\".+\") \| (.+) \|$", TEXT, re.MULTILINE)
"""What the answer adds to the passage, and what its reader sees."""


@pytest.mark.parametrize(("adds", "reads"), READERS, ids=["good", "bad"])
def test_the_guarded_application_runs_and_replaces_the_answer(
    adds: str, reads: str, guard: Served
) -> None:
    """The Python block as it stands, but for the address of the service and the good answer."""
    (code,) = blocks("python")
    added = "Towels cost five euros."
    assert adds in ("nothing", f'"{added}"')
    code = code.replace(f" {added}", "") if adds == "nothing" else code
    names: dict[str, Any] = {}
    exec(compile(code.replace(ADDRESS, guard.address), "README.md", "exec"), names)  # noqa: S102
    question = "When does the pool open?"
    unguarded = names["ask"]({"question": question})
    with GuardrailClient(guard.address, timeout=PATIENCE_S) as client:  # now the models know it
        client.check(unguarded["answer"], question=question, contexts=unguarded["contexts"])
    with TestClient(names["app"]) as http:
        reply = http.post("/ask", json={"question": question})
        assert http.portal
        http.portal.call(names["guard"].close)
    flagged = reply.headers.get("X-Guardrail-Flagged", "")
    decision = reply.headers["X-Guardrail-Decision"]
    assert (decision, flagged) == (("pass", "") if adds == "nothing" else ("flag", "hallucination"))
    shown = unguarded["answer"] if reads == "the answer" else reads.strip('"')
    assert reply.json() == {"answer": shown, "contexts": unguarded["contexts"]}


@pytest.mark.parametrize("words", [w for w in COMMANDS if w[0] == "guardrail"], ids=" ".join)
def test_a_command_exists_with_its_options(words: list[str]) -> None:
    """As the installed command line knows them."""
    command: Any = typer.main.get_command(app)
    context = typer.Context(command, info_name=words[0])
    rest = words[1:]
    while hasattr(command, "list_commands"):
        name = rest.pop(0)
        command = command.get_command(context, name)
        assert command is not None
        context = typer.Context(command, info_name=name, parent=context)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("-")} <= known


@pytest.mark.parametrize("words", [w for w in COMMANDS if w[0] == "pip"], ids=" ".join)
def test_a_distribution_exists_with_its_extra(words: list[str]) -> None:
    """Every `pip install` names a project of this checkout; `build` alone comes from elsewhere."""
    name, _, extra = words[-1].rstrip("]").partition("[")
    if name == "build":
        return
    own = PROJECTS[name]["tool"]["rag-guardrail"]
    assert not extra or extra in own["extras"]


def brought(requirement: str) -> set[str]:
    """Return which of our distributions a requirement names, itself or by its extra."""
    name, _, extra = requirement.rstrip("]").partition("[")
    extras = PROJECTS[name]["tool"]["rag-guardrail"]["extras"] if extra else {}
    names = {re.split(r"[\[=<>;]", line)[0] for line in [name, *extras.get(extra, ())]}
    return names & set(PROJECTS)


def test_wheels_are_built_from_every_published_project() -> None:
    """The loop goes through five folders that each have a pyproject."""
    (words,) = [words for words in COMMANDS if words[0] == "for"]
    folders = [word.rstrip(";") for word in words[words.index("in") + 1 : words.index("do")]]
    named = {
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]["name"]
        for folder in folders
    }
    installed = {name for words in COMMANDS if words[0] == "pip" for name in brought(words[-1])}
    assert named == installed


def test_nothing_else_is_in_the_bash_blocks() -> None:
    """So that every line above is checked by one of these tests."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for words in COMMANDS:
        if words[0] == "make":
            assert f"\n{words[1]}:" in makefile
        else:
            assert words[0] in {"guardrail", "pip", "for", "python", "done", "curl"}


def test_the_limits_are_the_measured_ones() -> None:
    """Of the sealed half of the guarding corpus, and as recorded beside the shipped thresholds."""
    page = (ROOT / "docs" / "quality.md").read_text("utf-8")
    sealed = page.partition("<!-- bench guarding sealed -->")[2]
    stopped, bad, lost, good = re.findall(
        r"- default: (\d+) of (\d+) bad answers stopped\. (\d+) of (\d+) good answers lost", sealed
    )[0]
    shipped = json.loads((ROOT / "configs" / "defaults" / "thresholds.json").read_text("utf-8"))
    written = shipped["presets"]["balanced"]["recall_by_set"]["written"]
    limits = " ".join(TEXT.partition("## What it cannot do")[2].split())
    assert f"Of {bad} bad answers" in limits
    assert f"stops {stopped}; of {good} good ones it keeps back {lost}." in limits
    assert f"stopped {written['flagged']} of {written['n']} bad answers" in limits


def test_the_readme_is_short() -> None:
    """A stranger reads it in four minutes."""
    assert len(TEXT.split()) <= 900
