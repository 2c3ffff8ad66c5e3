"""From stored decisions to a promoted policy, through the studio's pages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from guardrail_decisions.keys import new_key
from guardrail_decisions.reading import Decisions
from guardrail_decisions.tables import FEEDBACK
from guardrail_offline.calibration.labels import read_labels
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab, write_lab
from guardrail_offline.evaluators.result import Score
from guardrail_offline.studio.access import Access
from guardrail_offline.studio.judging import StudioJudge
from guardrail_offline.studio.studio_pages import Studio
from guardrail_offline.studio.workspace import Workspace, open_workspace
from guardrail_service.policy.versions import add_version, promote, read_policy
from guardrail_service.server.decisions import Recorder
from guardrail_service.server.schemas import CheckRequest
from guardrail_service.types import Passage, Sample
from tests.unit.decisions.made_up import filled, settings, store
from tests.unit.decisions.monitor.test_watch import drawn
from tests.unit.offline.studio.conftest import PAGE, Browser, tasks

pytestmark = pytest.mark.anyio
COUNT = 45
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def kept(judge: StudioJudge, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A store of decisions of the policy `tiny`, a third of them flagged, and its keys."""
    folder = tmp_path_factory.mktemp("store")
    url, keys_file = f"sqlite:///{folder / 'decisions.db'}", folder / "keys"
    keys_file.write_text(new_key())
    policy = judge.policy(judge.settings.config_files()[0])
    with store(url, texts="full", keys_file=keys_file) as opened:
        recorder = Recorder(
            opened, settings(url), judge.serving.fingerprints, lambda _name, _hash: policy
        )
        for number in range(COUNT):
            is_bad = number % 3 == 0
            answer = f"The pool number {number} opens at seven{'!' if is_bad else '.'} {HOSTILE}"
            sample = Sample(answer, f"When does pool {number} open?", (Passage("At seven."),))
            verdict = judge.runtime.guard.judge(policy, sample)
            request = CheckRequest(answer=answer)
            recorder.keep(verdict, sample, request, f"request-{number}", "check")
    return url, keys_file


@pytest.fixture
def workspace(tmp_path: Path, kept: tuple[str, Path], judge: StudioJudge) -> Iterator[Workspace]:
    """The store, and a folder of versions in which `tiny` is live."""
    policies = tmp_path / "policies"
    add_version(policies, judge.settings.config_files()[0])
    promote(policies, "tiny", "1")
    url, keys_file = kept
    opened = open_workspace(tmp_path / "work", [url], policies, keys_file)
    yield opened
    opened.close()


@pytest.fixture
async def browser(workspace: Workspace, judge: StudioJudge) -> AsyncIterator[Browser]:
    """Ada's."""
    studio = Studio(Access(8090), workspace, judge)
    async with Browser(studio) as client:
        await client.come_in(studio)
        yield client


async def test_the_loop(browser: Browser, workspace: Workspace) -> None:
    """Decisions, a sample, labels, a fit, a version in the shadow, promoted, rolled back."""
    drawn = await browser.form("/decisions/sample", count="42", how="evenly")
    assert drawn.status_code == 303
    address = drawn.headers["location"]
    name = address.rpartition("/")[2]
    labelling = workspace.labellings[name]
    for place, task in enumerate(labelling.tasks):
        seen = (await browser.get(f"{address}/case/{place}")).json()
        assert "score" not in seen
        label = "fail" if "!" in task.answer else "pass"
        body = {"label": label, "note": "", "version": seen["version"], "adjudicating": False}
        assert (await browser.put(f"{address}/case/{place}", json=body)).status_code == 200
    assert len(read_labels(labelling.labels_file)) == 42

    form = await browser.get(f"/calibrate/{name}", headers=PAGE)
    assert "tiny@1" in form.text
    wrong = await browser.form(f"/calibrate/{name}", alpha="1", delta="10", base="tiny@1")
    assert wrong.status_code == 422
    assert "at least" in wrong.text
    fitted = await browser.form(f"/calibrate/{name}", alpha="20", delta="10", base="tiny@1")
    assert fitted.status_code == 303
    place = fitted.headers["location"]
    shown = await browser.get(place, headers=PAGE)
    assert "with probability at most 20.0%" in shown.text
    assert "polyline" in shown.text
    assert HOSTILE not in shown.text
    assert labelling.ledger.exists()

    added = await browser.form(f"{place}/version", policy="tiny", why=HOSTILE, shadow="yes")
    assert added.headers["location"] == "/policies/tiny"
    folder = workspace.policies
    assert folder is not None
    alias = read_policy(folder, "tiny").alias
    assert (alias.live, alias.shadow) == ("1", ("2",))
    versions = await browser.get("/policies/tiny", headers=PAGE)
    assert "in the shadow" in versions.text
    assert HOSTILE not in versions.text
    stale = await browser.form("/policies/tiny/promote", version="2", live="7")
    assert stale.status_code == 422
    assert (await browser.form("/policies/tiny/promote", version="2", live="1")).status_code == 303
    assert read_policy(folder, "tiny").alias.live == "2"
    compared = await browser.get(
        "/compare?kind=policies&before=tiny@1&after=tiny@2&over=(stored decisions)", headers=PAGE
    )
    assert "newly flagged" in compared.text
    over = await browser.get(
        f"/compare?kind=policies&before=tiny@1&after=tiny@2&over={name}", headers=PAGE
    )
    assert over.status_code == 200
    await browser.form("/policies/tiny/rollback")
    assert read_policy(folder, "tiny").alias.live == "1"
    assert read_policy(folder, "tiny").lines[-1].by == "Ada"


async def test_a_read_decision_is_noted(browser: Browser, workspace: Workspace) -> None:
    """The list shows no text; one decision does, and the store knows who read it."""
    opened = workspace.store
    assert opened is not None
    before = len(list(opened.views()))
    listed = await browser.get("/decisions?decision=flag&detector=text_matching", headers=PAGE)
    assert "15 of 45" in listed.text
    assert "pool number" not in listed.text
    (first,) = opened.decisions(limit=1)
    page = await browser.get(f"/decisions/{first.key}?decision=flag", headers=PAGE)
    assert "pool number" not in page.text
    assert len(list(opened.views())) == before
    shown = (await browser.get(f"/decisions/{first.key}/data")).json()
    assert shown["answer"].endswith(HOSTILE)
    assert shown["detectors"]["text_matching"]["flagged"]
    assert [view.viewer for view in opened.views()][before:] == ["Ada"]
    address = f"/decisions/{first.key}/feedback"
    said = {"label": "fail", "caller": "Ada", "mine": True, "comment": HOSTILE}
    await browser.post(address, json={"label": "pass"})
    for state in ("stored", "known"):
        reply = await browser.post(address, json={"label": "fail", "comment": HOSTILE})
        assert reply.json() == {"state": state, "feedback": [said]}
    assert kept_comments(opened) == [("full", True)]
    for comment in ("x" * 10_001, 7, "\ud800"):
        body = json.dumps({"label": "fail", "comment": comment})
        assert (await browser.post(address, content=body)).status_code == 422


def kept_comments(opened: Decisions) -> list[tuple[str, bool]]:
    """Return how each comment is stored, and whether it is encrypted."""
    with opened.writer.database.reading() as connection:
        rows = connection.execute(select(FEEDBACK).where(FEEDBACK.c.comment.is_not(None)))
        return [(row.mode, HOSTILE not in row.comment) for row in rows]


@pytest.mark.parametrize(
    ("texts", "comment"), [("none", None), ("redacted", "Mail [EMAIL]."), ("hashes", None)]
)
async def test_a_comment_is_kept_as_the_texts_are(
    judge: StudioJudge, tmp_path: Path, texts: str, comment: str | None
) -> None:
    """Not at all, without what is personal, or as a hash, which takes a key."""
    url, keys_file = f"sqlite:///{tmp_path / 'decisions.db'}", tmp_path / "keys"
    keys_file.write_text(new_key())
    filled(url, 1, texts=texts, keys_file=keys_file)
    workspace = open_workspace(tmp_path / "work", [url], None, keys_file)
    studio = Studio(Access(8090), workspace, judge)
    async with Browser(studio) as client:
        await client.come_in(studio)
        shown = await client.get("/decisions/1", headers=PAGE)
        assert ('id="comment"' in shown.text) == (texts != "none")
        body = {"label": "fail", "comment": "Mail ann@example.com."}
        reply = await client.post("/decisions/1/feedback", json=body)
        assert reply.json()["feedback"][0]["comment"] == comment
    workspace.close()


async def test_promises_and_drift_are_shown(judge: StudioJudge, tmp_path: Path) -> None:
    """As the report has them: kept and nothing moved, then broken and moved; with a picture."""
    url = f"sqlite:///{tmp_path / 'decisions.db'}"
    scores = np.random.default_rng(1).normal(size=60).tolist()
    flagged = sum(score < -1 for score in scores)
    drawn(url, scores)
    workspace = open_workspace(tmp_path / "work", [url])
    studio = Studio(Access(8090), workspace, judge)
    async with Browser(studio) as client:
        await client.come_in(studio)
        shown = (await client.get("/promise", headers=PAGE)).text
        for words in ("at most 10.0% of good answers flagged", "Kept so far", "as before",
                      f"{flagged} of 60 labels", "at most 1.0%", 'class="band"'):  # fmt: skip
            assert words in shown
        assert "have moved" not in shown
        drawn(url, [-2.0] * 60, 60)
        shown = (await client.get("/promise", headers=PAGE)).text
        for words in ("Broken", f"{60 + flagged} of 120 labels", "since 2026-11-24 12:01",
                      "have moved", "2026-11-23 12:00 UTC"):  # fmt: skip
            assert words in shown
    workspace.close()


async def test_without_decisions_nothing_is_promised(browser: Browser) -> None:
    """A policy that is not calibrated says so."""
    assert "not calibrated" in (await browser.get("/promise", headers=PAGE)).text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/decisions/0", 404), ("/decisions/99999999999999999999", 404), ("/decisions/x", 422),
        ("/decisions?decision=maybe", 422), ("/decisions?since=yesterday", 422),
        ("/decisions?until=9999-12-31", 200), ("/decisions?since=9999-12-31", 200),
        ("/decisions?before=%27%3B&caller=%27%20OR%201=1", 200), ("/policies/..%2f..", 405),
        ("/policies/none", 404), ("/compare?kind=policies&before=/etc/passwd&after=x&over=y", 422),
        ("/compare?kind=runs&before=../x&after=y", 422), ("/calibrate/none", 404),
    ],
)  # fmt: skip
async def test_nothing_from_outside_is_a_path_or_a_query(
    browser: Browser, address: str, status: int
) -> None:
    """Names are looked up among those that were given at the start."""
    reply = await browser.get(address, headers=PAGE)
    assert reply.status_code == status
    assert "Traceback" not in reply.text


async def test_who_may_not_change_policies_may_look(
    workspace: Workspace, judge: StudioJudge
) -> None:
    """The right `admin` is wanted for every change."""
    found = ("ann", frozenset({"decisions"}))
    studio = Studio(Access(8090, {"key": found}.get), workspace, judge)
    async with Browser(studio) as client:
        await client.post("/sign-in", data={"key": "key"})
        await client.take_token("/decisions")
        assert (await client.get("/policies/tiny", headers=PAGE)).status_code == 200
        for what in ("promote", "rollback", "shadow", "unshadow"):
            assert (await client.form(f"/policies/tiny/{what}", version="1")).status_code == 403
        reply = await client.post("/decisions/1/feedback", json={"label": "pass"})
        assert reply.status_code == 403


def test_a_lab_that_is_given_can_be_drawn_from(tmp_path: Path) -> None:
    """A scored lab among the sources; its sample is a labelling that knows its lab."""
    cases = tuple(
        LabCase(f"c{n}", f"g{n}", {"looping": {"unique_sentences": Score(0.5)}}, question=f"Q{n}")
        for n in range(5)
    )
    lab = tmp_path / "My lab.jsonl"
    lab.write_text("\n".join(write_lab(ScoredLab("x", cases, {}, {}))) + "\n")
    opened = open_workspace(tmp_path / "work", [str(lab)])
    labelling = opened.draw("my-lab", 3)
    assert labelling.folder.stat().st_mode & 0o077 == 0
    assert opened.lab_of(labelling.name) == lab
    assert len(labelling.tasks) == 3
    assert opened.draw("my-lab", 3).name == "my-lab-3-2"
    opened.close()
    again = open_workspace(tmp_path / "work", [])
    assert sorted(again.labellings) == ["my-lab-3", "my-lab-3-2"]
    assert json.loads((labelling.folder / "labelling.json").read_text()) == {"lab": str(lab)}
    again.close()


def test_a_labelling_from_elsewhere_names_no_lab_outside(tmp_path: Path) -> None:
    """Only the studio's own labellings, which it wrote itself, lead to a lab by its path."""
    (tmp_path / "lab.jsonl").write_text("{}\n")
    for folder, found in (("given", None), ("work/labellings/own", tmp_path / "lab.jsonl")):
        place = tasks(tmp_path / folder)
        (place / "labelling.json").write_text(json.dumps({"lab": str(tmp_path / "lab.jsonl")}))
        opened = open_workspace(tmp_path / "work", [str(tmp_path / "given")])
        name = "given" if folder == "given" else "own"
        assert opened.lab_of(name) == found
        opened.close()
