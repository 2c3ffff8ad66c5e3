"""Box plots of runs and of Open RAG Eval's files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from guardrail_offline.report.exports import scores_csv
from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.pictures import write_all
from guardrail_offline.report.plotted_values import of_consistency_csv, of_csv, samples
from guardrail_offline.report.run_data import read_run_data
from guardrail_service.commands.main import app
from tests.unit.offline.report.conftest import finished
from tests.unit.offline.report.test_page import HOSTILE, row

CSV = (
    "query_id,query,run_1_retrieval_score_mean_umbrela_score,"
    "run_2_retrieval_score_mean_umbrela_score,"
    "run_1_generation_score_no_answer_score,run_2_generation_score_no_answer_score\n"
    'a,A?,1.5,2.5,"{""query_answered"": ""yes""}","{""query_answered"": ""yes""}"\n'
    'b,B?,,0.5,"{""query_answered"": ""no""}",\n'
)


def plot(*words: str | Path, status: int = 0) -> str:
    """Run `guardrail plot`; return what it says."""
    shown = CliRunner().invoke(app, ["plot", *map(str, words)])
    assert shown.exit_code == status, shown.output
    return " ".join(shown.output.split())


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_a_picture_is_drawn_the_same_each_time(lake: Path, tmp_path: Path, ending: str) -> None:
    """A box per model, a picture per metric that was asked for."""
    for name in ("a", "b"):
        out = tmp_path / f"{name}{ending}"
        plot(lake, "--evaluator", "rouge", "--metrics-to-plot", "rouge_l,rouge_1", "-o", out)
    if ending == ".svg":
        assert ElementTree.parse(out).getroot().tag.endswith("svg")  # noqa: S314 - our own
    else:
        assert out.read_bytes() == (tmp_path / "a.png").read_bytes()
        assert out.read_bytes().startswith(b"\x89PNG")


def test_a_csv_has_its_runs_as_values_and_says_how_much_was_answered(tmp_path: Path) -> None:
    """Open RAG Eval's own columns, with and without a prefix."""
    path = tmp_path / "mine.csv"
    path.write_text(CSV, "utf-8")
    (sample,) = of_csv([path])["mean_umbrela_score"]
    assert sorted(sample.values) == [0.5, 1.5, 2.5]
    assert sample.asked == 3
    assert sample.name == "mine\n67% answered"
    plot(path, "--evaluator", "trec", "-o", tmp_path / "out.png")


CONSISTENCY = (
    "query_id,query,consistency_rouge_score,consistency_mean_umbrela_score,run_1_generated_answer\n"
    'a,A?,"{""values"": [1, 0], ""stats"": {""consistency_adjusted_index"": 0.4}}",'
    '"{""values"": [3], ""stats"": {""consistency_adjusted_index"": 1.5}}",x\n'
    'b,B?,"{""values"": [1, 1], ""stats"": {""consistency_adjusted_index"": 1.0}}",,y\n'
)


def test_a_csv_of_consistency_has_its_index(tmp_path: Path) -> None:
    """Divided by the largest grade, as Open RAG Eval does; its own names of columns are known."""
    path = tmp_path / "reruns.csv"
    path.write_text(CONSISTENCY, "utf-8")
    found = of_consistency_csv([path])
    assert found["rouge_score"][0].values.tolist() == [0.4, 1.0]
    assert found["mean_umbrela_score"][0].values.tolist() == [0.5]
    assert found["mean_umbrela_score"][0].asked == 2
    words: list[str | Path] = ["--metrics-to-plot", "consistency_rouge_score"]
    plot(path, "--evaluator", "consistency", *words, "-o", tmp_path / "out.svg")


@pytest.mark.parametrize(
    ("content", "said"),
    [("query_id,query\na,A?\n", "no column of consistency"),
     ("query_id,consistency_x\na,nonsense\n", "JSONDecodeError"),
     ('query_id,consistency_x\na,"{}"\n', "KeyError")],
    ids=["no column", "no JSON", "no index"],
)  # fmt: skip
def test_a_csv_without_the_index_is_an_error(tmp_path: Path, content: str, said: str) -> None:
    """With the name of the file."""
    path = tmp_path / "reruns.csv"
    path.write_text(content, "utf-8")
    assert said in plot(path, "--evaluator", "consistency", status=2)


def test_our_own_table_of_scores_is_read(lake: Path, tmp_path: Path) -> None:
    """As `guardrail report -o scores.csv` writes it, with the values of the run."""
    table = tmp_path / "scores.csv"
    with table.open("w", encoding="utf-8", newline="") as stream:
        scores_csv(read_run_data(lake), stream)
    ours = {one.name: one.values.tolist() for one in samples([table], "rouge")["rouge_l"]}
    assert sorted(ours) == ["heron", "magpie"]
    whole = [one.values.tolist() for one in samples([lake], "rouge")["rouge_l"]]
    assert [ours["heron"], ours["magpie"]] == whole
    assert "no column of rogue" in plot(table, "--evaluator", "rogue", status=2)


def test_every_picture_of_a_run_is_written_as_png_and_svg(lake: Path, tmp_path: Path) -> None:
    """A name without an ending is a folder; what a run lacks is not drawn."""
    run = read_run_data(lake)
    kept = ("classification", "answer_strings", "text_matching")
    figures = RunFigures(replace(run, evaluators={name: run.evaluators[name] for name in kept}))
    write_all(figures, tmp_path)
    names = {path.stem for path in tmp_path.glob("*.svg")}
    assert names == {path.stem for path in tmp_path.glob("*.png")}
    assert {"eye", "metrics", "heatmap", "differences", "flips", "clusters", "data"} <= names
    assert {"classification-confusion", "classification-leaderboard"} <= names
    parts = ("leaderboard", "boxes", "categories", "grid", "hardest")
    assert {f"text_matching-{part}" for part in parts} <= names
    assert {f"answer_strings-{part}" for part in parts} <= names


def test_one_picture_is_drawn_of_a_folder_or_an_archive(lake: Path, tmp_path: Path) -> None:
    """The eval eye has the names of what it judges."""
    out = tmp_path / "eye.svg"
    plot(lake, "--part", "eye", "-o", out)
    assert "Generation" in out.read_text("utf-8")
    assert "nothing to draw" in plot(
        lake, "--part", "confusion", "--evaluator", "rouge", "-o", tmp_path / "x.png", status=2
    )


def test_a_poor_run_has_pictures_or_says_that_it_has_none(tmp_path: Path) -> None:
    """Sixty models, and no value at all."""
    rows = [row(n, model_key=f"{n % 60}", key=str(n), question=str(n // 60)) for n in range(120)]
    crowd = finished(tmp_path / "crowd", rows, ["text_matching"])
    for part in ("eye", "metrics", "heatmap"):
        plot(crowd, "--part", part, "-o", tmp_path / f"{part}.png")
    silent = finished(tmp_path / "silent", [row(1, expected_output=None)], ["rouge"])
    for part in ("eye", "metrics", "heatmap", "differences", "flips", "clusters"):
        assert "nothing to draw" in plot(silent, "--part", part, "-o", tmp_path / "x.png", status=2)


def test_the_values_are_those_of_the_run(lake: Path) -> None:
    """By model."""
    found = samples([lake], "rouge")["rouge_l"]
    column = read_run_data(lake).evaluators["rouge"].values["rouge_l"]
    np.testing.assert_array_equal(
        np.sort(np.concatenate([one.values for one in found])), np.sort(column[~np.isnan(column)])
    )


def test_reruns_show_their_spread(lake: Path, tmp_path: Path) -> None:
    """Of questions that were answered three times or more."""
    out = tmp_path / "out.png"
    words: list[str | Path] = ["--metrics-to-plot", "rouge.rouge_l: std", "-o", out]
    plot(lake, "--evaluator", "consistency", *words)
    assert out.stat().st_size > 1000


@pytest.mark.parametrize("text", [HOSTILE[name] for name in ("script", "bidi", "quotes")])
def test_a_hostile_name_is_drawn_as_text(tmp_path: Path, text: str) -> None:
    """No formula, no element, no letter that only steers a renderer."""
    rows = [row(n, model_key=f"{text}$x^2$_{n % 2}") for n in range(6)]
    out = tmp_path / "out.svg"
    plot(finished(tmp_path, rows, ["rouge"]), "--evaluator", "rouge", "-o", out)
    tags = {one.tag.split("}")[1] for one in ElementTree.parse(out).iter() if "}" in str(one.tag)}  # noqa: S314 - our own
    assert "script" not in tags


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--evaluator", "rogue"], "--evaluator"),
        (["--evaluator", "rouge", "--metrics-to-plot", "x"], "--metrics-to-plot"),
        (["--evaluator", "rouge", "-o", "x.pdf"], "--output-file"),
        (["--evaluator", "trec"], "FileNotFoundError"),
        ([], "--evaluator"),
        (["--part", "eve", "-o", "x.png"], "--part"),
        (["--part", "hardest", "-o", "x.png"], "--evaluator"),
    ],
    ids=["evaluator", "metric", "ending", "no columns", "no evaluator", "part", "whose part"],
)
def test_what_cannot_be_drawn_is_an_error(lake: Path, words: list[str], said: str) -> None:
    """With status 2, naming the option."""
    assert said in plot(lake, *words, status=2)
