"""A run with a judge: asked once, scored from transcripts, and the same bytes in replay."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from guardrail_offline.api import evaluate
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.hosts.ollama import OllamaHost
from guardrail_offline.judge.judge_client import open_judge
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.judge.stand_in import FakeJudge
from guardrail_offline.judge_options import named_judge
from guardrail_offline.runs import execution
from guardrail_offline.runs.pool import Pool
from guardrail_offline.runs.result_files import read_run
from guardrail_offline.runs.shards import Layout
from guardrail_offline.runs.worker import models_for, write_scores
from guardrail_service.commands.main import app
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.hosts.server import Reply, serving
from tests.unit.offline.judge.scripted import judging, settings

PASSAGE = "The pool opens at seven. Dogs are not allowed."
ROWS = [
    {"key": "q0", "question": "When does the pool open?", "answer": "At seven."},
    {"key": "q1", "question": "Are dogs allowed?", "answer": "Dogs are. The pool opens at seven."},
    {"key": "q2", "question": "Where is the bar?", "answer": "I don't know."},
]
PROMPT = "byop.prompt=Is {answer} polite?"


def says(task: str, inputs: Mapping[str, Any]) -> Any:
    """State each sentence; support what has "seven" in it; find everything polite."""
    if task == "statements":
        return {"statements": [one for one in inputs["text"].split(".") if one.strip()]}
    if task == "support":
        return {
            "verdicts": [
                {
                    "i": one["i"],
                    "reason": "r",
                    "verdict": "supported" if "seven" in one["text"] else "contradicted",
                }
                for one in inputs["statements"]
            ]
        }
    return {"reason": "r", "verdict": "true"}


class Here:
    """Scores shards in this process: starting another one costs two seconds a run."""

    def __init__(
        self, layout: Layout, configured: Sequence[Configured], pack: str, *_limits: Any
    ) -> None:
        self._run = layout, configured, pack

    def score(self, shards: Sequence[int]) -> Iterator[int]:
        """Yield the cases of each shard."""
        layout, configured, pack = self._run
        for shard in shards:
            yield write_scores(layout, shard, configured, models_for(configured, pack))


@pytest.fixture(scope="module", autouse=True)
def _one_process() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "Pool", Here)
        yield


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Three questions."""
    path = tmp_path / "lab.jsonl"
    lines = [json.dumps({**row, "contexts": [PASSAGE], "model": "m"}) for row in ROWS]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(lab: Path, out: Path, url: str, *words: str, evaluators: str = "faithfulness") -> Result:
    """Run `guardrail evaluate` with a judge, in one process."""
    given = ["evaluate", str(lab), "-o", str(out), "-e", evaluators, "--judge", url]
    more = ["--judge-model", "m", "--judge-for", "faithfulness", "--workers", "1", "--no-report"]
    return CliRunner().invoke(app, [*given, *more, *words], env={"COLUMNS": "250"})


def rows(out: Path, evaluator: str = "faithfulness") -> dict[str, Any]:
    """Return primary value or reason by case."""
    results = read_run(out)[evaluator]
    primary = next(iter(results.metrics))
    scores = {row.key: row.scores[primary] for row in results.rows}
    return {key: one.reason if one.value is None else one.value for key, one in scores.items()}


def test_the_judge_is_asked_once_and_the_result_says_so(lab: Path, tmp_path: Path) -> None:
    """Two calls per answer that claims something; none for an abstention."""
    with judging(says) as (script, url):
        ended = run(lab, tmp_path / "out", url)
        assert ended.exit_code == 0, ended.output
        assert [task for task, *_ in script.seen].count("statements") == 2
        assert len(script.seen) == 4
        again = run(lab, tmp_path / "out", url)
        assert again.exit_code == 0
        assert len(script.seen) == 4
    assert rows(tmp_path / "out") == {"q0": 1.0, "q1": 0.5, "q2": "abstention"}
    about = read_run(tmp_path / "out")["faithfulness"].about
    assert about["backend"] == "judge"
    assert about["judge"] == {"url": url, "model": "m"}
    assert about["prompts"] == ["statements/1", "support/1"]
    assert about["surrogate"] is None
    (board,) = json.loads((tmp_path / "out" / "leaderboards.json").read_text())
    assert board["backend"] == "judge"
    assert "4 calls, all answered" in ended.output


def test_replay_gives_the_same_bytes_and_asks_nobody(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the transcripts, with nobody at the judge's address, in a process of its own."""
    monkeypatch.setattr(execution, "Pool", Pool)
    store = tmp_path / "t.sqlite"
    with judging(says) as (_, url):
        run(lab, tmp_path / "one", url, "--judge-store", str(store))
    before = store.read_bytes()
    replay = run(lab, tmp_path / "two", url, "--judge-store", str(store), "--judge-mode", "replay")
    assert replay.exit_code == 0, replay.output
    files = {path.name for path in (tmp_path / "one").iterdir() if path.is_file()}
    assert "judge.json" in files
    for name in files - {"timings.json"}:
        one, two = (tmp_path / folder / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes(), name
    one, two = (tmp_path / folder / "results/faithfulness.json" for folder in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    ("faults", "reason", "status"),
    [
        (["prose", "prose"], "judge_parse_failure", 0),
        (["refusal"], "judge_refused", 0),
        (["too_long"], "judge_error", 3),
    ],
)
def test_a_case_without_a_verdict_says_why_and_others_go_on(
    lab: Path, tmp_path: Path, faults: list[str | None], reason: str, status: int
) -> None:
    """No fault is a score, none stops the run, and the failure is counted."""
    limits = tmp_path / "judge.json"
    limits.write_text('{"concurrency": 1, "tries": 1}')
    with judging(says, faults) as (_, url):
        ended = run(lab, tmp_path / "out", url, "--judge-settings", str(limits))
        assert ended.exit_code == status, ended.output
    assert rows(tmp_path / "out") == {"q0": reason, "q1": 0.5, "q2": "abstention"}
    told = json.loads((tmp_path / "out" / "judge.json").read_text())["evaluators"]["faithfulness"]
    assert told["statuses"] == {reason.removeprefix("judge_"): 1, "ok": 2}


@pytest.mark.parametrize(
    ("fault", "told"), [("wrong_key", "wrong key"), ("unknown_model", "unknown model")]
)
def test_a_judge_that_cannot_be_asked_is_one_line_and_nothing_is_lost(
    lab: Path, tmp_path: Path, fault: str, told: str
) -> None:
    """The same command goes on when the key is right; nothing was scored without a judge."""
    with judging(says, [fault] * 9) as (script, url):
        ended = run(lab, tmp_path / "out", url)
        assert ended.exit_code == 2
        assert told in ended.output
        assert "Traceback" not in ended.output
        script.faults.clear()
        assert run(lab, tmp_path / "out", url).exit_code == 0
    assert rows(tmp_path / "out")["q0"] == 1.0


def test_nobody_at_the_address_is_one_line(lab: Path, tmp_path: Path) -> None:
    """And not a table full of zeros."""
    limits = tmp_path / "judge.json"
    limits.write_text('{"tries": 1, "give_up_after": 2}')
    ended = run(lab, tmp_path / "out", "http://127.0.0.1:9/v1", "--judge-settings", str(limits))
    assert ended.exit_code == 2
    assert "nobody answers" in ended.output


def test_what_the_budget_does_not_allow_is_a_state(lab: Path, tmp_path: Path) -> None:
    """A cap needs a price, and ends the asking, not the run."""
    prices = tmp_path / "prices.json"
    prices.write_text('{"m": {"input": 1.0, "output": 1.0}}')
    with judging(says) as (script, url):
        refused = run(lab, tmp_path / "out", url, "--budget", "1")
        assert refused.exit_code == 2
        assert "--prices" in refused.output
        options = ("--budget", "0.000001", "--prices", str(prices))
        ended = run(lab, tmp_path / "out", url, *options)
        assert not script.seen
    assert ended.exit_code == 3, ended.output
    assert rows(tmp_path / "out") == {
        "q0": "judge_budget",
        "q1": "judge_budget",
        "q2": "abstention",
    }


def test_ones_own_prompt_needs_no_more_than_a_judge(lab: Path, tmp_path: Path) -> None:
    """It declines without a prompt, and never shows the judge what it does not name."""
    with judging(says) as (script, url):
        without = run(lab, tmp_path / "a", url, evaluators="byop,faithfulness")
        assert without.exit_code == 3
        script.seen.clear()
        both = run(lab, tmp_path / "b", url, "--set", PROMPT, evaluators="byop,faithfulness")
        assert both.exit_code == 0, both.output
    own = [(inputs, body) for task, inputs, body in script.seen if task == "own_prompt"]
    assert {tuple(inputs) for inputs, _ in own} == {("answer",)}
    assert "Is `answer` polite?" in own[0][1]["messages"][0]["content"]
    assert rows(tmp_path / "a", "byop") == dict.fromkeys(("q0", "q1", "q2"), "no_prompt")
    assert rows(tmp_path / "b", "byop") == dict.fromkeys(("q0", "q1", "q2"), 1.0)


def test_a_parse_failure_of_a_yes_no_evaluator_is_its_own_metric(lab: Path, tmp_path: Path) -> None:
    """As in H2O: `model_parse_failures`; whether the answer passes is unknown."""
    with judging(says, ["prose"] * 6) as (_, url):
        words = ("--set", PROMPT, "--judge-for", "byop")
        run(lab, tmp_path / "out", url, *words, evaluators="byop")
    results = read_run(tmp_path / "out")["byop"]
    assert [row.scores["model_parse_failures"].value for row in results.rows] == [1.0] * 3
    assert [row.scores["model_passes"].value for row in results.rows] == [None] * 3


def test_off_leaves_nothing_behind_and_redact_leaves_no_text(lab: Path, tmp_path: Path) -> None:
    """The scores are the same."""
    with judging(says) as (_, url):
        run(lab, tmp_path / "off", url, "--judge-mode", "off")
        run(lab, tmp_path / "redacted", url, "--redact")
    assert rows(tmp_path / "off") == rows(tmp_path / "redacted")
    assert not list((tmp_path / "off").rglob("*.sqlite"))
    assert b"seven" not in (tmp_path / "redacted" / "transcripts.sqlite").read_bytes()


def test_what_was_redacted_cannot_be_replayed_and_the_line_says_so(
    lab: Path, tmp_path: Path
) -> None:
    """Of one run's answers in a store of two; the other's are replayed, and asking mends it."""
    store, other = tmp_path / "t.sqlite", tmp_path / "other.jsonl"
    other.write_text(lab.read_text().replace("At seven.", "It opens at seven."))
    kept = ("--judge-store", str(store))
    with judging(says) as (script, url):
        run(lab, tmp_path / "one", url, *kept, "--redact")
        run(other, tmp_path / "two", url, *kept)
        replay = run(lab, tmp_path / "three", url, *kept, "--judge-mode", "replay")
        assert replay.exit_code == 2, replay.output
        assert str(store) in replay.output.replace("\n", "")
        assert "--redact" in replay.output
        assert "Traceback" not in replay.output
        good = run(other, tmp_path / "four", url, *kept, "--judge-mode", "replay")
        assert good.exit_code == 0, good.output
        asked = len(script.seen)
        assert run(lab, tmp_path / "three", url, *kept).exit_code == 0
        assert len(script.seen) > asked
    assert rows(tmp_path / "three")["q0"] == rows(tmp_path / "four")["q0"] == 1.0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--judge-for", "rouge"), "rouge"),
        (("--backend", "guess"), "--backend"),
        (("--backend", "faithfulness=guess"), "--backend"),
        (("--backend", "context_recall=nli"), "context_recall"),
        (("--judge-mode", "reply"), "--judge-mode"),
        (("--judge-kind", "guess"), "--judge-kind"),
        (("--rpm", "0"), "--rpm"),
        (("--tpm", "-1"), "--tpm"),
        (("--judge-timeout", "nan"), "--judge-timeout"),
        (("--judge-timeout", "inf"), "--judge-timeout"),
        (("--budget", "nan"), "--budget"),
    ],
)
def test_a_wrong_choice_is_refused_by_its_name(
    lab: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    """Before anything is asked."""
    ended = run(lab, tmp_path / "out", "http://127.0.0.1:9/v1", *words)
    assert ended.exit_code == 2
    assert told in ended.output


def test_options_come_before_the_file(tmp_path: Path) -> None:
    """And the kind of the host is one that is opened."""
    path = tmp_path / "judge.json"
    path.write_text('{"requests_per_minute": 1, "timeout_s": 9, "concurrency": 3, "kind": "azure"}')
    made = named_judge(
        "http://127.0.0.1:9", "m", file=path, kind="ollama", rpm=60, tpm=1e6, timeout=5
    )
    assert (made.requests_per_minute, made.tokens_per_minute, made.timeout_s) == (60, 1e6, 5)
    assert (made.kind, made.concurrency) == ("ollama", 3)
    assert isinstance(open_judge(made).host, OllamaHost)
    assert named_judge("http://127.0.0.1:9", "m", file=path).timeout_s == 9
    with pytest.raises(ConfigurationError, match=r"--judge-kind.*as the address says"):
        named_judge("azure+https://x", "m", kind="ollama")


@pytest.mark.parametrize(
    "words",
    [("--judge-kind", "openai"), ("--rpm", "60000"), ("--tpm", "1e9"), ("--judge-timeout", "30")],
    ids=lambda words: words[0],
)
def test_limits_change_no_score(lab: Path, tmp_path: Path, words: tuple[str, str]) -> None:
    """Nor the files of the run."""
    with judging(says) as (_, url):
        ended = run(lab, tmp_path / "out", url, *words)
    assert ended.exit_code == 0, ended.output
    assert rows(tmp_path / "out") == {"q0": 1.0, "q1": 0.5, "q2": "abstention"}
    about = read_run(tmp_path / "out")["faithfulness"].about
    assert about["judge"] == {"url": url, "model": "m"}


def test_from_python_a_judge_is_settings_an_object_or_a_stand_in(tmp_path: Path) -> None:
    """And without one nothing is asked."""
    data = [{**row, "contexts": [PASSAGE]} for row in ROWS]
    with judging(says) as (script, url):
        given = settings(url, tmp_path / "t.sqlite")
        found = evaluate(data, ["faithfulness"], judge=given, judge_for=["faithfulness"])
        other = evaluate(
            data, ["faithfulness"], judge=open_judge(settings(url)), judge_for=["faithfulness"]
        )
        assert len(script.seen) == 8
    fake = FakeJudge(lambda task, inputs, vote: says(task.id, inputs))
    third = evaluate(data, ["faithfulness"], judge=fake, judge_for=["faithfulness"])
    assert dict(found) == dict(other) == dict(third) == {"faithfulness": 0.75}
    own = evaluate(data, ["byop"], judge=fake, settings=[PROMPT])
    assert own["model_passes"] == 1.0


def test_a_judge_has_a_model_and_an_address() -> None:
    """By name, before anything runs."""
    with pytest.raises(ConfigurationError, match="--judge-model"):
        JudgeSettings("http://x/v1", "")


def judge_command(*words: str) -> Result:
    """Run `guardrail judge`."""
    return CliRunner().invoke(app, ["judge", *words], env={"COLUMNS": "250"})


def test_what_has_no_answer_is_asked_again_and_nothing_else(lab: Path, tmp_path: Path) -> None:
    """Not even the statements of the case; the run is then as if nothing had failed."""
    out, limits = tmp_path / "out", tmp_path / "judge.json"
    limits.write_text('{"concurrency": 1, "tries": 1}')
    with judging(says, [None, "prose", "prose", None, "unavailable"]) as (script, url):
        run(lab, out, url, "--judge-settings", str(limits))
        assert rows(out) == {"q0": "judge_parse_failure", "q1": "judge_error", "q2": "abstention"}
        first = len(script.seen)
        ended = judge_command("rejudge", str(out))
        assert ended.exit_code == 3, ended.output
        assert [task for task, *_ in script.seen[first:]] == ["support"]
        assert rows(out) == {"q0": "judge_parse_failure", "q1": 0.5, "q2": "abstention"}
        ended = judge_command("rejudge", str(out), "--failed", "--json")
        assert ended.exit_code == 0, ended.output
        assert len(script.seen) == first + 2
        run(lab, tmp_path / "other", url)
    assert rows(out) == rows(tmp_path / "other")
    one, two = (
        json.loads((folder / "summary.json").read_text()) for folder in (out, tmp_path / "other")
    )
    assert one == two


def test_a_run_with_served_embeddings_is_judged_again_with_them(lab: Path, tmp_path: Path) -> None:
    """The manifest names them; nothing has to be said twice."""

    def guesses(_task: str, _inputs: Mapping[str, Any]) -> Any:
        return {"question": "When does the pool open?", "noncommittal": "no"}

    def same(body: Mapping[str, Any]) -> Reply:
        found = [{"index": n, "embedding": [1.0, 2.0]} for n, _ in enumerate(body["input"])]
        return Reply({"data": found})

    out, limits = tmp_path / "out", tmp_path / "judge.json"
    limits.write_text('{"concurrency": 1, "tries": 1}')
    words = ["--judge-for", "answer_relevancy", "--judge-settings", str(limits)]
    script = [None, None, None, "unavailable"]
    with judging(guesses, script) as (_, url), serving(answer=same) as server:
        words += ["--embeddings", server.url, "--embeddings-model", "e"]
        run(lab, out, url, *words, evaluators="answer_relevancy")
        assert "judge_error" in rows(out, "answer_relevancy").values()
        ended = judge_command("rejudge", str(out))
        assert ended.exit_code == 0, ended.output
        assert set(rows(out, "answer_relevancy").values()) == {1.0}


def test_only_a_run_with_a_judge_is_judged_again(tmp_path: Path) -> None:
    """Anything else is refused by name."""
    assert judge_command("rejudge", str(tmp_path)).exit_code == 2


def test_calls_tokens_and_cost_are_foretold_without_a_call(lab: Path, tmp_path: Path) -> None:
    """The calls are those that are made; transcripts are not counted again."""
    prices, store = tmp_path / "prices.json", tmp_path / "t.sqlite"
    prices.write_text('{"m": {"input": 1.0, "output": 10.0}}')
    with judging(says) as (script, url):
        words = ("estimate", str(lab), "-e", "faithfulness", "--judge", url, "--judge-model", "m")
        shown = judge_command(*words, "--prices", str(prices), "--json")
        assert shown.exit_code == 0, shown.output
        assert not script.seen
        run(lab, tmp_path / "out", url, "--judge-store", str(store))
        made = len(script.seen)
        after = judge_command(*words, "--judge-store", str(store), "--json")
    found = json.loads(shown.output)
    assert found["total"]["calls"] == made == 4
    assert 0 < found["total"]["cost"] < found["total"]["most"]
    assert found["total"]["constant_tokens"] < found["total"]["prompt_tokens"]
    total = json.loads(after.output)["total"]
    assert (total["calls"], total["remembered"], total["cost"]) == (0, 4, None)


def test_every_evaluator_can_be_foretold(lab: Path) -> None:
    """With one line each, and the sum; as a table, too."""
    shown = judge_command("estimate", str(lab))
    assert shown.exit_code == 0, shown.output
    assert "ragchecker" in shown.output
    assert "together" in shown.output
    assert "--prices" in shown.output


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One evaluator on one lab: by a judge of which one call failed, and by rules."""
    folder = tmp_path_factory.mktemp("two")
    rows_ = [{**row, "model": "m"} for row in ROWS]
    (folder / "lab.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_))
    limits = folder / "judge.json"
    limits.write_text('{"concurrency": 1}')
    words = ("evaluate", str(folder / "lab.jsonl"), "-e", "sexism", "--workers", "1", "-o")
    with judging(lambda *_: {"reason": "r", "verdict": "no"}, ["prose", "prose"]) as (_, url):
        judge = ("--judge", url, "--judge-model", "m", "--backend", "sexism=judge")
        ended = CliRunner().invoke(
            app, [*words, str(folder / "judged"), *judge, "--judge-settings", str(limits)]
        )
        assert ended.exit_code == 0, ended.output
    assert CliRunner().invoke(app, [*words, str(folder / "ruled")]).exit_code == 0
    return folder / "judged", folder / "ruled"


def test_two_backends_are_never_compared_nor_put_on_one_page(two: tuple[Path, Path]) -> None:
    """They are two metrics under one name."""
    judged, ruled = map(str, two)
    for words in (("compare", judged, ruled), ("report", judged, ruled)):
        ended = CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})
        assert ended.exit_code == 2, ended.output
        assert "backend" in ended.output


def test_the_page_says_who_judged_how_often_in_vain_and_for_how_much(
    two: tuple[Path, Path],
) -> None:
    """And no grade that was measured without a judge."""
    page = (two[0] / "report.html").read_text("utf-8")
    assert "Judge: <bdi>m</bdi>" in page
    assert "1 parse_failure" in page
    assert "by a judge" in page
    assert "the judge gave no answer that can be read" in page
    assert "it depends on the judge" in page
    assert "Judge:" not in (two[1] / "report.html").read_text("utf-8")


def test_without_a_choice_a_run_says_nothing_of_backends(two: tuple[Path, Path]) -> None:
    """Its files are those of a run before there were any."""
    for name in ("manifest.json", "leaderboards.json", "results/sexism.json"):
        assert "backend" not in (two[1] / name).read_text("utf-8")
    assert not (two[1] / "judge.json").exists()


@pytest.mark.parametrize(
    "words",
    [("--judge-model", "m"), ("--budget", "1"), ("--rpm", "5"), ("--redact",),
     ("--judge-mode", "replay"), ("--language-model-name", "m")],
)  # fmt: skip
def test_options_of_a_judge_need_a_judge(lab: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Or they would be passed over, and the run be one without it."""
    given = ["evaluate", str(lab), "-o", str(tmp_path / "out"), "-e", "rouge", *words]
    ended = CliRunner().invoke(app, given, env={"COLUMNS": "250"})
    assert ended.exit_code == 2
    assert "--judge" in ended.output or "--language-model" in ended.output
    assert "address" in ended.output
