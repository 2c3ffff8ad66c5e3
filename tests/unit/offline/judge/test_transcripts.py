"""The same question has the same answer, whoever asks, as long as the file is there."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.judge.judge_client import Judge, open_judge
from guardrail_offline.judge.results import JudgeResult
from guardrail_offline.judge.transcripts import TranscriptStore
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.judge.scripted import YES_NO, judging, settings


def yes(task: str, inputs: Mapping[str, Any]) -> Any:
    """Say yes to everything."""
    return {"verdict": "yes"}


def at(url: str, store: Path, **more: Any) -> Judge:
    """Return a judge that waits for nobody."""
    judge = open_judge(settings(url, store, tries=1, **more))
    judge.sleep = lambda _: None
    return judge


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that is not there yet."""
    return tmp_path / "transcripts.sqlite"


def test_what_was_asked_is_not_asked_again(path: Path) -> None:
    """By another judge object, another process, or in replay, where nobody is there."""
    with judging(yes) as (script, url):
        first = at(url, path).ask(YES_NO, {"answer": "a"})
        second = at(url, path).ask(YES_NO, {"answer": "a"})
        assert len(script.seen) == 1
    replayed = at(url, path, mode="replay").ask(YES_NO, {"answer": "a"})
    assert not first.cached
    assert second == replayed
    assert (second.value, second.cached, second.usage) == (first.value, True, first.usage)


@pytest.mark.parametrize(
    "change",
    ["model", "url", "task", "version", "schema", "temperature", "options", "inputs", "vote"],
)
def test_everything_that_an_answer_depends_on_is_in_its_address(path: Path, change: str) -> None:
    """And the mark around the data is not: it is nobody's to know."""
    base = at("http://one/v1", path)
    judges = {
        "model": replace(base.settings, model="m2"),
        "url": replace(base.settings, url="http://two/v1"),
        "options": replace(base.settings, options={"seed": 1}),
    }
    tasks = {
        "task": YES_NO.with_(id="other"),
        "version": YES_NO.with_(version=2),
        "schema": YES_NO.with_(schema={**YES_NO.schema, "title": "x"}),
        "temperature": YES_NO.with_(temperature=1.0),
    }
    judge = Judge(base.host, judges.get(change, base.settings))
    inputs = {"answer": "b" if change == "inputs" else "a"}
    key = judge.key(tasks.get(change, YES_NO), inputs, vote=int(change == "vote"))
    assert key != base.key(YES_NO, {"answer": "a"})
    assert base.key(YES_NO, {"answer": "a"}) == base.key(YES_NO, {"answer": "a"})


def test_in_replay_nobody_is_asked(path: Path) -> None:
    """A question that nobody recorded has no answer, and no connection is tried."""
    with judging(yes) as (script, url):
        at(url, path).ask(YES_NO, {"answer": "a"})
        found = at(url, path, mode="replay").ask(YES_NO, {"answer": "b"})
        assert len(script.seen) == 1
    assert (found.status, found.detail) == ("error", "not_recorded")


def test_off_remembers_nothing(path: Path) -> None:
    """Each question is asked whenever it comes."""
    with judging(yes) as (script, url):
        for _ in range(2):
            at(url, path, mode="off").ask(YES_NO, {"answer": "a"})
        assert len(script.seen) == 2


def test_what_nobody_answered_is_asked_again_and_replayed_until_then(path: Path) -> None:
    """A busy server says nothing about an answer; replay says what happened."""
    with judging(yes, ["busy"]) as (_, url):
        assert at(url, path).ask(YES_NO, {"answer": "a"}).status == "rate_limited"
        replay = at(url, path, mode="replay")
        assert replay.ask(YES_NO, {"answer": "a"}).status == "rate_limited"
        assert at(url, path).ask(YES_NO, {"answer": "a"}).status == "ok"


def test_a_parse_failure_stays_until_it_is_asked_again(path: Path) -> None:
    """It is what the judge said; `judge rejudge` asks what has no value."""
    with judging(yes, ["prose", "prose"]) as (script, url):
        for _ in range(2):
            assert at(url, path).ask(YES_NO, {"answer": "a"}).status == "parse_failure"
        assert len(script.seen) == 2
        assert at(url, path, ask_again=True).ask(YES_NO, {"answer": "a"}).status == "ok"
        assert at(url, path, ask_again=True).ask(YES_NO, {"answer": "a"}).cached
    assert len(script.seen) == 3


def test_the_file_is_its_owners(path: Path) -> None:
    """It has questions, answers and passages."""
    TranscriptStore(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_texts_the_file_holds_none(path: Path) -> None:
    """Neither what was sent nor what the judge wrote; verdicts stay until they are erased."""
    with judging(lambda *_: {"verdict": "yes"}) as (_, url):
        judge = at(url, path, keep_texts=False)
        judge.ask(YES_NO, {"answer": "a private answer"})
        assert b"private" not in path.read_bytes()
        assert judge.store is not None
        assert judge.store.redact() == 1
        assert b'"yes"' not in path.read_bytes()
        replayed = at(url, path, mode="replay").ask(YES_NO, {"answer": "a private answer"})
        assert (replayed.status, replayed.value, replayed.detail) == ("error", None, "redacted")
        assert not at(url, path).ask(YES_NO, {"answer": "a private answer"}).cached


def test_the_same_mark_for_the_same_question_and_another_in_another_store(tmp_path: Path) -> None:
    """A run that is repeated sends the same bytes; nobody else knows them."""
    one, two = TranscriptStore(tmp_path / "1"), TranscriptStore(tmp_path / "2")
    assert one.mark("key") == TranscriptStore(tmp_path / "1").mark("key")
    assert one.mark("key") != two.mark("key")
    assert one.mark("key") != one.mark("other")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"not a database at all, but long enough to be taken for one" * 20, "another file"),
        ("version", "version 99"),
        ("other", "another file"),
    ],
)
def test_another_file_is_refused_in_one_line(path: Path, content: Any, found: str) -> None:
    """A store of another version, another program's database, or no database."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        if content == "version":
            TranscriptStore(path).close()
        with sqlite3.connect(path) as connection:
            statement = "PRAGMA user_version = 99" if content == "version" else "CREATE TABLE a (b)"
            connection.execute(statement)
    with pytest.raises(ConfigurationError) as caught:
        TranscriptStore(path)
    assert found in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_store_to_replay_has_to_be_there(path: Path) -> None:
    """It is not made."""
    with pytest.raises(ConfigurationError, match="no file"):
        TranscriptStore(path, read_only=True)
    assert not path.exists()


def test_a_full_disk_is_one_line_and_loses_nothing(path: Path) -> None:
    """What was kept before is there; the same command goes on."""
    store = TranscriptStore(path)
    store.put("a", YES_NO, [], 0, JudgeResult("ok", {"verdict": "yes"}))
    store._connection.execute("PRAGMA max_page_count = 12")
    with pytest.raises(ConfigurationError, match="a full disk"):
        store.put("b", YES_NO, [{"content": "x" * 99_999}], 0, JudgeResult("ok", {}))
    store.close()
    found = TranscriptStore(path).get("a")
    assert found is not None
    assert found.value == {"verdict": "yes"}


def test_two_answers_to_one_question_become_one(path: Path) -> None:
    """Of two processes the first one's stays, and the second goes on with it."""
    one, two = TranscriptStore(path), TranscriptStore(path)
    first = JudgeResult("ok", {"verdict": "yes"})
    assert one.put("k", YES_NO, [], 0, first).value == {"verdict": "yes"}
    assert two.put("k", YES_NO, [], 0, JudgeResult("ok", {"verdict": "no"})).value == first.value
    assert two.put("k", YES_NO, [], 0, JudgeResult("timeout")).status == "ok"


def _write(path: Path, begin: int) -> None:
    store = TranscriptStore(path)
    for number in range(begin, begin + 20):
        store.put(str(number), YES_NO, [], 0, JudgeResult("ok", {"verdict": "yes"}))
        store.spend("run", "m", JudgeResult("ok").usage)


def test_processes_share_a_store_from_its_first_moment(path: Path) -> None:
    """None loses what another wrote, and costs add up."""
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_write, args=(path, begin)) for begin in (0, 10)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    store = TranscriptStore(path)
    assert store.statuses() == {"yes_no/1": {"ok": 30}}
    assert store.spent("run", "m")[0] == 40


def test_two_judges_do_not_answer_for_each_other(path: Path) -> None:
    """They share a file, not an answer."""
    with judging(yes) as (_, one), judging(lambda *_: {"verdict": "no"}) as (_, two):
        values = [at(url, path).ask(YES_NO, {"answer": "a"}).value for url in (one, two, one)]
    assert [value["verdict"] for value in values] == ["yes", "no", "yes"]


def test_messages_and_words_are_kept_for_reading(path: Path) -> None:
    """A prompt that changes is compared with what was sent before."""
    with judging(yes) as (script, url):
        at(url, path).ask(YES_NO, {"answer": "a"})
    with sqlite3.connect(path) as connection:
        ((messages, raw),) = connection.execute("SELECT messages, raw FROM transcripts")
    assert json.loads(messages) == script.seen[0][2]["messages"]
    assert json.loads(raw)["verdict"] == "yes"
