"""A studio on a folder of cases, and a browser that has come in."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from guardrail_offline.studio.access import Access
from guardrail_offline.studio.judging import StudioJudge
from guardrail_offline.studio.studio_app import studio_app
from guardrail_offline.studio.studio_pages import Studio
from guardrail_offline.studio.workspace import Workspace, open_workspace
from guardrail_service.settings import Settings

HOST = "127.0.0.1:8090"
CASES = ("one", "two", "three")
PAGE = {"accept": "text/html"}


def tasks(folder: Path, cases: tuple[str, ...] = CASES, **texts: Any) -> Path:
    """Write a folder of cases to label."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"case": case, "question": "Q?", "answer": f"Answer {case}.", "contexts": ["A.", "B."]}
        | texts
        for case in cases
    ]
    (folder / "to_label.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """One labelling of three cases."""
    opened = open_workspace(tmp_path / "work", [str(tasks(tmp_path / "Sample"))])
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def judge(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioJudge]:
    """Judges under the policy `tiny`, which passes no exclamation mark."""
    content = {
        "evaluator_ids": ["groundedness", "looping", "text_matching"],
        "calibrated_thresholds": {"groundedness": {"groundedness": -1.0}},
        "policy": {
            "name": "tiny",
            "version": "1",
            "parameters": {"text_matching": {"condition": 'NOT "!"'}},
        },
    }
    path = tmp_path_factory.mktemp("judge") / "tiny.json"
    path.write_text(json.dumps(content))
    judging = StudioJudge(Settings(model_pack=str(tiny), config=(path,), workers=1))
    yield judging
    judging.close()


@pytest.fixture
def studio(workspace: Workspace, judge: StudioJudge) -> Studio:
    """A studio on loopback."""
    return Studio(Access(8090), workspace, judge)


class Browser(httpx.AsyncClient):
    """Keeps cookies and sends the session's token."""

    def __init__(self, studio: Studio) -> None:
        app: Any = studio_app(studio, frozenset({HOST}))
        super().__init__(transport=httpx.ASGITransport(app), base_url=f"http://{HOST}")
        self.csrf = ""

    async def come_in(self, studio: Studio, name: str = "Ada") -> None:
        """Use a token, then give a name."""
        assert (await self.get(f"/enter?token={studio.access.new_token()}")).status_code == 200
        await self.take_token("/name")
        assert (await self.form("/name", name=name)).status_code == 303

    async def take_token(self, page: str) -> None:
        """Read the session's token from a page."""
        found = re.search('name="csrf" value="([^"]+)"', (await self.get(page, headers=PAGE)).text)
        assert found
        self.csrf = found[1]
        self.headers["X-CSRF-Token"] = self.csrf

    async def form(self, address: str, **fields: str) -> httpx.Response:
        """Send a form as a browser does."""
        del self.headers["X-CSRF-Token"]
        try:
            return await self.post(address, data={"csrf": self.csrf, **fields}, headers=PAGE)
        finally:
            self.headers["X-CSRF-Token"] = self.csrf

    async def label(self, place: int, label: str | None, **more: Any) -> httpx.Response:
        """Label a case of the sample under the version that it has now."""
        adjudicating = more.get("adjudicating", False)
        address = f"/label/sample/case/{place}"
        seen = (await self.get(address, params={"adjudicating": adjudicating})).json()
        body = {"label": label, "note": "", "version": seen["version"], "adjudicating": False}
        return await self.put(address, json=body | more)


@pytest.fixture
async def browser(studio: Studio, anyio_backend: str) -> AsyncIterator[Browser]:
    """Ada's."""
    async with Browser(studio) as client:
        await client.come_in(studio)
        yield client


@pytest.fixture
def anyio_backend() -> str:
    """The loop that serves."""
    return "asyncio"
