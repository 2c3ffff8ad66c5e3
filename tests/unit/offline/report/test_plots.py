"""Box plots of runs and of Open RAG Eval's files."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from guardrail_offline.report.plots import of_csv, samples
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
    words = ["--metrics-to-plot", "rouge.rouge_l: std", "-o", out]
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
    ],
    ids=["evaluator", "metric", "ending", "no columns"],
)
def test_what_cannot_be_drawn_is_an_error(lake: Path, words: list[str], said: str) -> None:
    """With status 2, naming the option."""
    assert said in plot(lake, *words, status=2)
