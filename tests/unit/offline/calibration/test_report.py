"""The report: one page that fetches nothing, honest pictures, doubtful labels named."""

from __future__ import annotations

from html import unescape

import pytest

from guardrail_offline.calibration.fit import run_fit
from guardrail_offline.calibration.report import histograms, page, pictures, suspects
from guardrail_offline.calibration.scored_lab import ScoredLab
from tests.unit.offline.calibration import labs
from tests.unit.offline.calibration.conftest import TEN, Files, run


def test_the_page_is_self_contained_and_escapes_everything(files: Files) -> None:
    """Answers, keys and categories are other people's text."""
    made, _ = labs.lab(160)
    cases = tuple(
        labs.case(
            c.key, c.group,
            c.scores["groundedness"]["groundedness"],
            c.scores["answer_relevancy_sentence"]["answer_relevancy"],
            facts={"topic": ("<script>alert(1)</script>", "b")[n % 2]},
        )
        for n, c in enumerate(made.cases)
    )  # fmt: skip
    found = run(files, lab=ScoredLab("x", cases, labs.FINGERPRINTS))
    images = pictures(found.fitted, found.content["calibration"])
    assert set(images) == {"scores.png", "reliability.png", "trade-off.png"}
    assert all(data.startswith(b"\x89PNG") for data in images.values())
    text = page(found.content, images, [{"case": "<b>", "label": "pass", "probability": 0.1}])
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;" in text
    assert "http" not in text.replace("http-equiv", "")
    assert text.count("data:image/png;base64,") == 3
    assert "script-src 'none'; base-uri 'none'; form-action 'none'; img-src data:" in unescape(text)
    assert "color-scheme: light dark" in text


def test_good_and_bad_bars_stand_on_the_same_edges(files: Files) -> None:
    """Else two equal scores are drawn in different places."""
    figure = histograms(run(files).fitted)
    cell = figure.axes[0]
    good, bad = (sorted(bar.get_x() for bar in bars) for bars in cell.containers[:2])
    assert good == pytest.approx(bad)


def test_a_wrong_label_is_suspected(files: Files) -> None:
    """The clearest good answer, labelled fail; nothing is changed."""
    made, passes = labs.lab(160)
    good = [c for c in made.cases if passes[c.key]]
    best = max(good, key=lambda c: min(s.value or 0 for m in c.scores.values() for s in m.values()))
    inputs = files()
    text = inputs.labels.read_text().replace(
        f'{{"case": "{best.key}", "label": "pass"', f'{{"case": "{best.key}", "label": "fail"'
    )
    inputs.labels.write_text(text)
    data = run_fit(inputs, TEN, labs.SERVING).fitted.data
    axes = [g.axis for g in run_fit(inputs, TEN, labs.SERVING).fitted.gates[:2]]
    found = suspects(data, axes)
    assert best.key in [suspect.case for suspect in found]
    assert len(found) < 20
    assert found[0].as_json()["probability"] < 0.2
