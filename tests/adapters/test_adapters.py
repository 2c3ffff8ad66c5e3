"""Others' software with the guard: an invented answer is stopped, its good twin is not."""

from __future__ import annotations

import json
import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.adapters.adapter import HIDDEN, SAID, TWIN, Adapter
from tests.adapters.conftest import Ground
from tests.adapters.frameworks import FRAMEWORKS
from tests.adapters.gateways import GATEWAYS
from tests.adapters.models import MODELS
from tests.adapters.web import WEB

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "integrations" / "README.md"
BEGIN, END = "<!-- written by .ci/adapters -->", "<!-- until here -->"
ADAPTERS = {
    f"{adapter.package}, {adapter.what}": adapter
    for adapter in [*GATEWAYS, *FRAMEWORKS, *WEB, *MODELS]
}
CASES = [
    pytest.param(name, streamed, said, id=f"{name}, {'stream' if streamed else 'whole'}, {said}")
    for name, adapter in ADAPTERS.items()
    for streamed in adapter.streams
    for said in SAID
]
PASSED: dict[str, set[tuple[bool, str]]] = {}


@pytest.mark.parametrize(("name", "streamed", "said"), CASES)
def test_an_invented_answer_is_stopped_and_its_twin_is_not(
    name: str, streamed: bool, said: str, ground: Ground
) -> None:
    """Nothing of it is in anything that was received."""
    seen = ADAPTERS[name].ask(ground, said, streamed)
    if said == "good":
        assert seen.shown == TWIN
    else:
        assert seen.shown != SAID[said]
        assert HIDDEN not in json.dumps([seen.shown, seen.parsed], default=str)
    PASSED.setdefault(name, set()).add((streamed, said))


def version_of(package: str) -> str:
    """Return the version that ran; the proxy's is pinned in an environment of its own."""
    if package != "litellm":
        return version(package)
    pins = (ROOT / "requirements" / "litellm.txt").read_text("utf-8")
    return re.findall(r"^litellm==(\S+)", pins, re.MULTILINE)[0]


def row(adapter: Adapter, passed: set[tuple[bool, str]]) -> str:
    """Return a line of the table."""
    cells = []
    for streamed in (False, True):
        done = [said for said in SAID if (streamed, said) in passed]
        cells.append("stopped; twin shown" if len(done) == len(SAID) else "-")
    linked = f"[`{adapter.package}`]({adapter.page}) {version_of(adapter.package)}, {adapter.what}"
    return f"| {' | '.join([linked, *cells, adapter.lost])} |"


def test_the_documentation_says_what_passes() -> None:
    """Runs behind all others; GUARDRAIL_WRITE_VENDORS writes the table anew."""
    if sum(map(len, PASSED.values())) < len(CASES):
        return  # some were not asked for, or failed
    rows = [row(adapter, PASSED[name]) for name, adapter in ADAPTERS.items()]
    head = "| integration | whole reply | stream | lost |\n|---|---|---|---|\n"
    table = f"{BEGIN}\n{head}" + "\n".join(rows) + f"\n{END}"
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    changed = before + table + rest.partition(END)[2]
    if os.environ.get("GUARDRAIL_WRITE_VENDORS"):
        PAGE.write_text(changed, "utf-8")
    assert changed == PAGE.read_text("utf-8")
