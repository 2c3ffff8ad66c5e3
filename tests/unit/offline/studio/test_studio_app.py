"""The studio's door and its labelling, through the application."""

from __future__ import annotations

import json
from typing import Any

import pytest

from guardrail_offline.studio import access
from guardrail_offline.studio.access import SECURITY_HEADERS, Access
from guardrail_offline.studio.judging import StudioJudge
from guardrail_offline.studio.studio_pages import Studio
from guardrail_offline.studio.workspace import Workspace, open_workspace
from guardrail_service.errors import ConfigurationError
from tests.integration.conftest import here
from tests.unit.offline.studio.conftest import HOST, PAGE, Browser, tasks

pytestmark = pytest.mark.anyio
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}{% raw %}",
    "</title><svg onload=alert(1)>",
    "javascript:alert(1)",
    "'+alert(1)+'",
    "\u202etxt.exe\u2066",
    "&lt;b&gt; &amp;",
    "=cmd|' /C calc'!A0",
    "../../etc/passwd",
    "a lone \ud800 surrogate",
    "a \x00 NUL",
)


async def test_a_token_opens_one_browser_once(studio: Studio) -> None:
    """The cookie is out of scripts' reach and stays on this site."""
    token = studio.access.new_token(lasting=True)
    async with Browser(studio) as first, Browser(studio) as second:
        reply = await first.get(f"/enter?token={token}")
        cookie = reply.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert (await first.get("/name", headers=PAGE)).status_code == 200
        assert (await second.get(f"/enter?token={token}")).status_code == 403
        assert (await second.get("/", headers=PAGE)).headers["location"] == "/sign-in"
        assert (await second.get("/label/sample/state")).status_code == 401
        assert (await second.get("/enter?token=")).status_code == 403


async def test_an_invitation_ends(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an hour; a session after half a day without a request."""
    token = studio.access.new_token()
    secret = studio.access.enter(studio.access.new_token()) or ""
    late = access.time.monotonic() + access.TOKEN_S + 1
    monkeypatch.setattr(access.time, "monotonic", lambda: late)
    assert studio.access.enter(token) is None
    assert studio.access.session(secret) is not None
    later = late + access.SESSION_S + 1
    monkeypatch.setattr(access.time, "monotonic", lambda: later)
    assert studio.access.session(secret) is None


async def test_an_invited_browser_is_another_person(browser: Browser, studio: Studio) -> None:
    """Two names, two labels on one case."""
    address = (await browser.post("/invite")).json()["address"]
    async with Browser(studio) as other:
        assert (await other.get(address)).status_code == 200
        await other.take_token("/name")
        assert (await other.form("/name", name="Adjudicator")).status_code == 422
        assert (await other.form("/name", name="Grace")).status_code == 303
        await other.label(0, "fail")
    await browser.label(0, "pass")
    assert (await browser.get("/label/sample/state")).json()["progress"]["disputed"] == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:8090"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"x-csrf-token": "another"}, 403),
        ({"x-csrf-token": ""}, 403),
        ({"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}, 200),
    ],
)
async def test_a_request_of_another_site_changes_nothing(
    browser: Browser, workspace: Workspace, headers: dict[str, str], status: int
) -> None:
    """Neither one that has another Host, nor another origin, nor no token of the session."""
    version = (await browser.get("/label/sample/case/0")).json()["version"]
    body = {"label": "pass", "note": "", "version": version, "adjudicating": False}
    reply = await browser.put("/label/sample/case/0", json=body, headers=headers)
    assert reply.status_code == status
    assert bool(workspace.labellings["sample"].labels_by("Ada")) == (status == 200)


async def test_every_reply_says_what_a_browser_may_do(browser: Browser) -> None:
    """Pages, errors, scripts and refusals; no page has a script or a style of its own."""
    pages = ("/", "/label", "/label/sample", "/name", "/nothing", "/label/other")
    files = ("/static/label.js", "/static/../access.py", "/static/%2e%2e/access.py")
    for address in (*pages, *files):
        reply = await browser.get(address, headers=PAGE)
        for name in SECURITY_HEADERS.keys() - {"Cache-Control"}:
            assert name in reply.headers
        if "html" in reply.headers["content-type"]:
            assert "<script>" not in reply.text
            assert "style=" not in reply.text
            assert " onclick" not in reply.text
        assert "def __call__" not in reply.text
    refused = await browser.get("/", headers={"host": "evil.example"})
    assert "frame-ancestors 'none'" in refused.headers["content-security-policy"]
    assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]


async def test_hostile_texts_and_names_stay_text(tmp_path: Any, judge: StudioJudge) -> None:
    """In pages they are escaped; to scripts they are JSON; in files they come back as they were."""
    folder = tasks(tmp_path / "s", HOSTILE, question=HOSTILE[0], contexts=list(HOSTILE))
    workspace = open_workspace(tmp_path / "w", [str(folder)])
    studio = Studio(Access(8090), workspace, judge)
    async with Browser(studio) as client:
        await client.come_in(studio, HOSTILE[1])
        reply = await client.get("/label/s/case/1")
        assert reply.headers["content-type"] == "application/json"
        body = {"label": "fail", "note": HOSTILE[0], "version": reply.json()["version"]}
        put = await client.put("/label/s/case/1", json=body | {"adjudicating": False})
        assert put.status_code == 200
        for place in range(len(HOSTILE)):
            shown = (await client.get(f"/label/s/case/{place}")).json()
            assert shown["contexts"] == list(HOSTILE)
        for address in ("/", "/label", "/label/s", "/name"):
            text = (await client.get(address, headers=PAGE)).text
            assert "<img src=x" not in text
            assert "<script>alert" not in text
            assert "49" not in text.partition("<main")[2]
        for name in ("\u202ename", "a\x00b", "x" * 81, " "):
            assert (await client.form("/name", name=name)).status_code == 422
    workspace.close()
    record = json.loads((folder / "labels.jsonl").read_text())
    assert (record["case"], record["annotator"]) == (HOSTILE[1], HOSTILE[1])


@pytest.mark.parametrize(
    "change",
    [
        {"label": "good"}, {"label": 1}, {"label": ["pass"]}, {"note": None}, {"note": "x" * 4001},
        {"version": 1}, {"adjudicating": "no"}, {"note": "\ud800"},
        {"adjudicating": True, "label": "abstain"},
    ],
)  # fmt: skip
async def test_a_label_of_another_form_is_refused(browser: Browser, change: dict[str, Any]) -> None:
    """422, and nothing is written."""
    body = json.dumps({"label": "pass", "note": "", "version": "x", "adjudicating": False} | change)
    headers = {"content-type": "application/json"}
    reply = await browser.put("/label/sample/case/0", content=body, headers=headers)
    assert reply.status_code == 422
    for address in ("/label/sample/case/9", "/label/sample/case/-1", "/label/none/state"):
        assert (await browser.get(address)).status_code == 404


async def test_the_labelling_is_blind(browser: Browser, studio: Studio) -> None:
    """A person sees texts and the own label; who settles sees labels without names."""
    await browser.label(0, "pass", note="fine")
    async with Browser(studio) as other:
        await other.come_in(studio, "Grace")
        shown = (await other.get("/label/sample/case/0")).json()
        assert shown.keys() == {"question", "answer", "contexts", "label", "note", "version"}
        assert (shown["label"], shown["note"]) == (None, "")
        assert (await other.label(0, "fail")).status_code == 200
        settled = await other.get("/label/sample/case/0?adjudicating=true")
        assert "Ada" not in settled.text
        assert [word["label"] for word in settled.json()["words"]] == ["fail", "pass"]
        assert (await other.label(0, "pass", adjudicating=True)).json()["progress"]["disputed"] == 0


async def test_a_stale_tab_gets_the_present_word(browser: Browser) -> None:
    """409 with what is there now, so that the page can show it."""
    stale = (await browser.get("/label/sample/case/1")).json()["version"]
    assert (await browser.label(1, "pass")).status_code == 200
    body = {"label": "fail", "note": "", "version": stale, "adjudicating": False}
    reply = await browser.put("/label/sample/case/1", json=body)
    assert (reply.status_code, reply.json()["label"]) == (409, "pass")
    body["version"] = reply.json()["version"]
    assert (await browser.put("/label/sample/case/1", json=body)).status_code == 200


async def test_elsewhere_a_key_opens(workspace: Workspace, judge: StudioJudge) -> None:
    """One with the right `decisions`, as long as it is not revoked; there are no tokens then."""
    known = {"ada": ("ada-id", frozenset({"decisions"})), "app": ("app", frozenset({"check"}))}
    studio = Studio(Access(8090, known.get), workspace, judge)
    async with Browser(studio) as client:
        for key in ("", "app", "none"):
            assert (await client.post("/sign-in", data={"key": key})).status_code == 403
        assert (await client.get("/enter?token=" + studio.access.new_token())).status_code == 404
        crossed = {"origin": "http://evil.example"}
        reply = await client.post("/sign-in", data={"key": "ada"}, headers=crossed)
        assert reply.status_code == 403
        assert (await client.post("/sign-in", data={"key": "ada"})).status_code == 303
        assert "ada-id" in (await client.get("/", headers=PAGE)).text
        await client.take_token("/")
        assert (await client.form("/name", name="Other")).status_code == 422
        del known["ada"]
        assert (await client.get("/label/sample/state")).status_code == 401


async def test_a_large_body_and_a_socket_are_refused(browser: Browser) -> None:
    """413; the studio has no WebSocket."""
    reply = await browser.post("/name", content=b"x" * (access.LARGEST_BODY + 1))
    assert reply.status_code == 413


async def test_what_is_no_source_is_refused(tmp_path: Any) -> None:
    """By name."""
    with pytest.raises(ConfigurationError, match="run folder"):
        open_workspace(tmp_path / "w", [str(tmp_path / "none")])
    with pytest.raises(ConfigurationError, match="found no file"):
        open_workspace(tmp_path / "w", [f"sqlite:///{tmp_path}/none.db"])


async def test_an_answer_can_be_tried(browser: Browser) -> None:
    """The page gets the reply of the service, marks and all; a wrong body is refused."""
    (policy,) = (await browser.get("/try/policies")).json()
    assert policy == {"name": "tiny", "version": "1", "calibrated": False}
    body = {"question": HOSTILE[0], "contexts": [HOSTILE[1]], "answer": "The pool opens at seven!"}
    reply = (await browser.post("/try/check", json=body)).json()
    assert (reply["decision"], reply["flagged"]) == ("flag", ["text_matching"])
    assert reply["detectors"]["groundedness"]["metrics"]["groundedness"]["threshold"] == -1.0
    for wrong in ({"answer": "A.", "detectors": {}}, ["answer"], {"answer": " "}):
        assert (await browser.post("/try/check", json=wrong)).status_code == 422


@pytest.mark.parametrize(
    "arguments", [["--host", "192.0.2.1"], ["--host", "::", "--name", "studio.test:8090"]]
)
def test_beyond_this_machine_keys_are_wanted(tmp_path: Any, arguments: list[str]) -> None:
    """The command ends with one line before anything listens."""
    ended = here("studio", "--work", tmp_path / "work", *arguments)
    assert ended.exit_code == 2
    assert "--keys FILE" in ended.stderr
    assert not (tmp_path / "work").exists()
