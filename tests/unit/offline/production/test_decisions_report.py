"""The report tells what is in a store, shows texts on request only, and escapes all of them."""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail_decisions.keys import new_key
from guardrail_decisions.monitor.watch import Watch, judge_promises
from guardrail_decisions.reading import to_json
from guardrail_decisions.rows import StoredDecision
from guardrail_offline.production.decisions_page import page
from guardrail_offline.production.decisions_report import (
    alarms,
    as_csv,
    content,
    flagged_texts,
    sentences,
)
from guardrail_service.commands.main import app
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import load_file
from guardrail_service.policy.versions import add_version
from guardrail_service.server.decisions import DecisionRecord, ShadowDecision
from guardrail_service.server.runtime import pack_at_hand, serving_for
from tests.unit.decisions.made_up import reader, store
from tests.unit.decisions.monitor.test_watch import POLICY, even_draw, scored
from tests.unit.offline.production.decided import record

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}\u202e=1+1"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return where a store may be made."""
    return f"sqlite:///{tmp_path / 'decisions.db'}"


def kept(number: int, score: float, mode: Any = "full", **changes: Any) -> StoredDecision:
    """Return a stored decision with its texts."""
    return StoredDecision(number, scored(number, score, **changes), mode)


def hostile() -> dict[str, Any]:
    """Return a report in which every text that somebody else chooses is hostile."""
    given = dict.fromkeys(("request_id", "route", "question", "answer", "policy"), HOSTILE)
    shadow = (ShadowDecision(HOSTILE, HOSTILE, "b" * 64, "pass", ()),)
    one = kept(1, -2.0, shadow=shadow, **given)
    result = dataclasses.replace(one.record.detectors["groundedness"], reason=HOSTILE, metrics={})
    harm = dataclasses.replace(one.record, detectors={HOSTILE: result})
    found = content(
        [dataclasses.replace(one, record=harm)],
        examples=flagged_texts([dataclasses.replace(one, record=harm)], 5),
    )
    promise = {"target": {"kind": "false_flag_rate", "scope": "per_metric", "alpha": 0.1},
               "per_metric": {HOSTILE: {HOSTILE: {"status": "calibrated"}}}}  # fmt: skip
    watch = Watch()
    found["policies"] = [
        dataclasses.replace(watch._finding(_Nothing(), "c" * 64, {"name": HOSTILE,
            "version": HOSTILE, "calibration": promise}, (), len), disputed=1).as_json()
    ]  # type: ignore[arg-type]  # fmt: skip
    return found


class _Nothing:
    """A store without decisions."""

    def count(self, filters: object) -> int:
        """Return nothing."""
        return 0


def test_hostile_texts_are_shown_and_do_nothing() -> None:
    """Escaped on the page, whose policy allows no script; inert in a spreadsheet."""
    found = hostile()
    text = page(found)
    assert "<script" not in text
    assert "alert(1)" in text
    assert "{{7*7}}" in text
    assert "script-src 'none'" in html.unescape(text)
    assert "src=" not in text
    assert "http" not in text.replace("http-equiv", "")
    for row in csv.reader(io.StringIO(as_csv(found))):
        assert not any(cell.startswith(("=", "+", "@")) for cell in row)


def test_texts_are_shown_on_request_only() -> None:
    """And only those of flagged answers that were kept."""
    decisions = [kept(0, -2.0, question="Secret?", answer="Secret."), kept(1, 1.0, answer="Fine.")]
    assert "Secret" not in page(content(decisions))
    shown = page(content(decisions, examples=flagged_texts(decisions, 5)))
    assert "Secret?" in shown
    assert "Fine." not in shown
    nothing = [kept(0, -2.0, answer="")]
    assert "No text of a flagged answer is kept" in page(
        content(nothing, examples=flagged_texts(nothing, 5))
    )


def test_an_empty_store_has_a_report() -> None:
    """It says that there is nothing."""
    found = content([])
    assert "no decision" in page(found)
    assert next(iter(sentences(found))) == "0 decisions; flagged none."
    assert alarms(found) == []


@pytest.fixture
def told(url: str) -> dict[str, Any]:
    """The report of a store in which the promise of a tenth is broken, as its draw says."""
    _, labelled = even_draw([(-2.0, "pass", "d1")] * 30 + [(1.0, "pass", "d1")] * 30)
    with store(url) as opened:
        opened.serving([POLICY])
        for one in labelled:
            assert opened.offer(one.record)
    watch = Watch()
    with reader(url) as read:
        watch.refresh(read)
    draw, labelled = even_draw([(-2.0, "pass", "d1")] * 30 + [(1.0, "pass", "d1")] * 30)
    broken = judge_promises(POLICY.calibration, [draw], labelled)
    findings = [dataclasses.replace(watch.findings[0], promises=broken)]
    return content(labelled, findings)


def test_a_broken_promise_is_told_everywhere(told: dict[str, Any]) -> None:
    """In words, as an alarm, on the page and in JSON."""
    (alarm, *_) = alarms(told)
    assert alarm.startswith("default@3: Broken: at most 10.0% of good answers flagged; 30 of 60")
    assert any("Broken" in sentence for sentence in sentences(told))
    text = page(told)
    assert 'class="answer fails"' in text
    assert "Scores, then and now" in text
    assert json.loads(json.dumps(told))["policies"][0]["promises"][0]["state"] == "broken"


Cli = Callable[..., Any]


@pytest.fixture
def served(tmp_path: Path, url: str, tiny: Path) -> tuple[str, Policy, Path]:
    """A store with six decisions of a policy on the tiny pack, a third of them flagged."""
    path = tmp_path / "old.json"
    thresholds = {"groundedness": {"groundedness": 0.5}}
    path.write_text(
        json.dumps({"evaluator_ids": ["groundedness"], "calibrated_thresholds": thresholds})
    )
    serving = serving_for(pack_at_hand(str(tiny)))
    policy = load_file(path, serving).policy
    keys = tmp_path / "keys"
    keys.write_text(f"{new_key()}\n")
    with store(url, texts="full", keys_file=keys) as opened:
        opened.serving([policy])
        for number, score in enumerate((0.1, 0.2, 0.6, 0.7, 0.8, 0.9)):
            assert opened.offer(_served(policy, serving.fingerprints, number, score))
    return url, policy, path


def _served(policy: Policy, fingerprints: Any, number: int, score: float) -> DecisionRecord:
    found = record(policy, score, fingerprints=fingerprints, request_id=f"r{number}")
    own = {"groundedness": found.detectors["groundedness"]}
    return dataclasses.replace(found, record_id=f"{number:032}", detectors=own)


def test_the_command_replays_a_store(served: tuple[str, Policy, Path], tiny: Path) -> None:
    """Exit codes: no limit, kept, passed, unknown; files by their ending."""
    url, _, old = served
    new, more = old.with_name("new.json"), old.with_name("more.json")
    new.write_text(old.read_text().replace("0.5", "0.65"))
    more.write_text(old.read_text().replace('["groundedness"]', '["groundedness", "looping"]'))

    def run(policy: Path, *options: str) -> Any:
        arguments = ["replay", url, "--policy", str(policy), "--pack", str(tiny), *options]
        return CliRunner().invoke(app, arguments)

    codes = [
        run(new).exit_code,
        run(new, "--fail-over", "20%").exit_code,
        run(new, "--fail-over", "0.1").exit_code,
        run(more, "--fail-over", "2%").exit_code,
        run(new, "--fail-over", "lots").exit_code,
        run(old.with_name("none.json")).exit_code,
    ]
    assert codes == [0, 0, 1, 3, 2, 2]
    found = json.loads(run(new, "--json").stdout)
    assert found["table"] == {"pass->pass": 3, "pass->flag": 1, "flag->pass": 0, "flag->flag": 2}
    assert [change["request_id"] for change in found["changes"]] == ["r2"]
    for ending in (".csv", ".json"):
        target = old.with_name(f"replay{ending}")
        ended = run(new, "--out", str(target))
        assert ended.exit_code == 0
        assert str(target) in ended.output
        assert target.stat().st_mode & 0o077 == 0
        assert "r2" in target.read_text()
    assert "detector_not_run: looping" in run(more).stdout


def test_kept_texts_are_judged_and_that_is_noted(
    served: tuple[str, Policy, Path], tiny: Path
) -> None:
    """By whom they were read."""
    url, _, old = served
    more = old.with_name("more.json")
    more.write_text(old.read_text().replace('["groundedness"]', '["groundedness", "looping"]'))
    arguments = ["replay", url, "--policy", str(more), "--pack", str(tiny), "--json"]
    keys = ["--keys-file", str(old.with_name("keys"))]
    found = CliRunner().invoke(app, [*arguments, "--texts", "--viewer", "ann", *keys])
    assert json.loads(found.stdout)["from_texts"] == 6
    with reader(url) as opened:
        assert {view.viewer for view in opened.views()} == {"ann"}


def test_a_version_of_a_folder_is_named_by_its_address(
    served: tuple[str, Policy, Path], tiny: Path
) -> None:
    """And nothing outside of the folder is."""
    url, _, old = served
    policies = old.with_name("policies")
    add_version(policies, old, name="app", why="first", by="ann")
    folder = ["--policies", str(policies), "--pack", str(tiny)]
    for address, code in (("app@1", 0), ("app@2", 2), ("../policies/app@1", 2), ("b@1", 2)):
        arguments = ["replay", url, "--policy", address, *folder]
        assert CliRunner().invoke(app, arguments).exit_code == code, address


def test_the_command_reports_a_store_and_an_export(
    served: tuple[str, Policy, Path], tmp_path: Path
) -> None:
    """As a page, JSON and CSV; an export has no promises; a wrong ending is refused."""
    url, _, _ = served
    exported = tmp_path / "decisions.jsonl"
    with reader(url) as opened:
        exported.write_text("".join(json.dumps(to_json(one)) + "\n" for one in opened.decisions()))
    for source in (url, str(exported)):
        for ending in (".html", ".json", ".csv"):
            target = tmp_path / f"report{ending}"
            keys = ["--texts", "1", "--keys-file", str(tmp_path / "keys")]
            arguments = ["decisions", "report", "--url", source, "--out", str(target), *keys]
            found = CliRunner().invoke(app, arguments)
            assert found.exit_code == 0, found.output
            assert f"wrote {target}" in found.output
            assert "groundedness" in target.read_text()
        assert "6 decisions; flagged 2 of 6" in found.stdout
        assert ("promises nothing" in found.stdout) == (source == url)
    wrong = CliRunner().invoke(app, ["decisions", "report", "--url", url, "--out", "report.pdf"])
    assert wrong.exit_code == 2
