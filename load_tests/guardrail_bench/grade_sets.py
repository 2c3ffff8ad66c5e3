"""Labelled sets that evaluators are graded on, read as cases from a folder of JSON lines.

The folder holds `grounding`, `safety`, `pii` and `qa.jsonl.gz`; each file's lines have the fields
that its reader names. A set that is not there is not measured.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from guardrail_bench.quality import lines
from guardrail_offline.datasets.cases import Case
from guardrail_service.types import Passage

Row = Mapping[str, Any]
Labels = Literal["people", "constructed", "generated"]
"""People judged the text; it was written to be good or bad; a generator placed what is found."""


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A case with its label; rows of one group are drawn together for intervals."""

    case: Case
    good: bool
    group: str


Reader = Callable[[Row], LabelledCase | None]
"""Reads one line; None where the line is not of the set."""
PARAPHRASES = "tests/golden/evaluators/paraphrases.jsonl"
_PROJECT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class GradeSet:
    """A labelled set.

    Attributes:
        name: Unique.
        file: Path in the folder, without `.gz`.
        good: Says of which rows the label is good.
        labels: Where the labels come from.
        read: Makes a case of a line.
        graded: Evaluators, each with the metrics that the label is about.
        seen: For what the rows were read before this measurement.
    """

    name: str
    file: str
    good: str
    labels: Labels
    read: Reader
    graded: Mapping[str, tuple[str, ...]]
    seen: str

    def rows(self, folder: Path, limit: int, seed: int) -> list[LabelledCase]:
        """Return at most `limit` rows, half of them good where there are as many; the same ones
        for the same seed.
        """
        found: dict[bool, list[LabelledCase]] = defaultdict(list)
        for row in self._lines(folder):
            labelled = self.read(row)
            if labelled is not None:
                found[labelled.good].append(labelled)
        rng = random.Random(f"{seed}:{self.name}")  # noqa: S311 - a sample, no secret
        drawn = []
        for good in (True, False):
            kept = sorted(found[good], key=lambda one: one.case.key)
            rng.shuffle(kept)
            drawn += kept[: limit // 2]
        return [replace(one, case=replace(one.case, group=one.group)) for one in drawn]

    def _lines(self, folder: Path) -> Iterator[Row]:
        path = self.path(folder)
        if path is None:
            return
        for _, line in lines(path):
            row: Row = json.loads(line)
            if "paraphrase" not in row:
                yield row
                continue
            for name, good in (("paraphrase", True), ("negation", False)):
                yield {**row, "answer": row[name], "good": good}

    def path(self, folder: Path) -> Path | None:
        """Return the set's file in a folder, or in the project; None if it is not there."""
        if self.file == PARAPHRASES:
            return _PROJECT / self.file
        for name in (f"{self.file}.gz", self.file):
            if (folder / name).is_file():
                return folder / name
        return None


def _key(*texts: str | None) -> str:
    joined = "\x00".join(text or "" for text in texts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _premise(row: Row) -> str:
    return str(row.get("group") or _key(row["premise"]))


def claim_of(row: Row) -> LabelledCase | None:
    """Read {"premise", "hypothesis", "supported"}: an answer, also as the expected one, cited."""
    if row.get("split", "dev") != "dev":
        return None
    asked, claim = row.get("question") or "", row["hypothesis"]
    key = _key(row["premise"], asked, claim)
    passages = (Passage(row["premise"], id="1"),)
    case = Case(key, asked, claim, claim, passages)
    return LabelledCase(case, bool(row["supported"]), _premise(row))


def cited_of(row: Row) -> LabelledCase | None:
    """Read a claim as `claim_of` does, with its passage cited behind it."""
    found = claim_of(row)
    if found is None:
        return None
    cited = f"{found.case.answer.rstrip() if found.case.answer else ''} [1]"
    return replace(found, case=replace(found.case, answer=cited, expected=None))


def dialogue_of(row: Row) -> LabelledCase | None:
    """Read a reply of a dialogue: its question is the message before it."""
    message = (row.get("meta") or {}).get("message")
    return claim_of({**row, "question": message})


def summary_of(row: Row) -> LabelledCase | None:
    """Read {"premise", "hypothesis", "supported"}: a summary of the premise, the source text."""
    if row.get("split", "dev") != "dev":
        return None
    key = _key(row["premise"], row["hypothesis"])
    case = Case(key, row["premise"], row["hypothesis"])
    return LabelledCase(case, bool(row["supported"]), _premise(row))


def relevance_of(row: Row) -> LabelledCase | None:
    """Read {"src", "question", "contexts", "answerable"}: does the one passage hold the answer?"""
    if row["src"] != "clapnq":
        return None
    passages = tuple(Passage(one["text"]) for one in row["contexts"])
    case = Case(str(row["id"]), row["question"], contexts=passages)
    return LabelledCase(case, bool(row["answerable"]), _key(row["contexts"][0].get("title")))


def answerable_of(row: Row) -> LabelledCase | None:
    """Read a question and its passage: whether the passage answers it, though it looks so."""
    if row.get("split") != "dev":
        return None
    negative = (row.get("meta") or {}).get("neg")
    if not row["supported"] and negative != "impossible_q_same_type":
        return None
    key = _key(row["premise"], row["question"])
    case = Case(key, row["question"], contexts=(Passage(row["premise"]),))
    return LabelledCase(case, bool(row["supported"]), _premise(row))


def paraphrase_of(row: Row) -> LabelledCase:
    """Read {"question", "expected", "answer", "good"}: does the answer say what is expected?"""
    case = Case(_key(row["expected"], row["answer"]), row["question"], row["answer"],
                row["expected"], (Passage(row["expected"]),))  # fmt: skip
    return LabelledCase(case, row["good"], row["key"])


def _text_of(row: Row, good: bool, asked: str = "") -> LabelledCase:
    return LabelledCase(Case(_key(row["text"]), asked, row["text"]), good, _key(row["text"]))


def text_of(task: str, source: str | None = None, asked: str = "") -> Reader:
    """Return a reader of {"text", "label", "task", "source"}: label 1 is bad."""

    def read(row: Row) -> LabelledCase | None:
        if row["task"] != task or source not in (None, row["source"]):
            return None
        return _text_of(row, not row["label"], asked)

    return read


_CONTACTS = frozenset({"PERSON", "STREET_ADDRESS", "PHONE_NUMBER", "EMAIL_ADDRESS"})


def contacts_of(row: Row) -> LabelledCase:
    """Read {"text", "spans": [{"type"}]}: bad with a name, an address, a phone or an e-mail."""
    return _text_of(row, not _CONTACTS & {span["type"] for span in row["spans"]})


_CLAIMS: Mapping[str, tuple[str, ...]] = {
    "hallucination": ("hallucination",),
    "faithfulness": ("faithfulness",),
    "groundedness": ("groundedness",),
    "facts": ("facts",),
    "context_recall": ("context_recall",),
    "context_precision": ("context_precision",),
    "context_utilization": ("context_utilization",),
    "rag_triad": ("triad_groundedness",),
    "ragchecker": ("faithfulness", "claim_recall"),
}
_CITED = {"citations": ("citation_f1",)}
_SUMMARIES = {"summarization": ("faithfulness_conv", "faithfulness_zs")}
_RELEVANCE = {
    "context_relevancy": ("context_relevancy",),
    "context_relevancy_soft": ("recall_relevancy", "precision_relevancy"),
    "context_mrr": ("mean_reciprocal_rank",),
    "umbrela": ("umbrela", "precision_at_1"),
}
_ANSWERS = {
    "answer_correctness": ("answer_correctness",),
    "ragchecker": ("f1",),
    "aspect_critique": ("correctness",),
    "summarization_judge": ("model_passes",),
    "answer_semantic_similarity": ("answer_similarity",),
    "answer_semantic_sentence_similarity": ("mean_answer_similarity",),
    "bertscore": ("bertscore_f1",),
    "answer_strings": ("token_f1",),
    "rouge": ("rouge_l",),
    "bleu": ("bleu_1",),
}
_TOXIC = {"toxicity": ("toxicity",), "aspect_critique": ("harmfulness", "maliciousness")}
_DEV = "never trained on; thresholds of the presets were fitted on it, and rules of facts tried"
_EVAL = "never trained on; the grounding model was run on it before, nothing was fitted"
_SAFETY = "never trained on; the safety model was run on it before, nothing was fitted"
_NEUTRAL_QUESTION = "What do you think about it?"


def _claims(name: str, title: str, reader: Reader = claim_of, graded: Any = None) -> GradeSet:
    return GradeSet(
        name, f"grounding/written/{title}.jsonl", "the passage supports the sentence",
        "people", reader, graded or _CLAIMS, _DEV,
    )  # fmt: skip


def _summaries(name: str, labels: Labels = "people") -> GradeSet:
    return GradeSet(
        f"{name}_summaries", f"grounding/written/{name}.jsonl", "the source supports the summary",
        labels, summary_of, _SUMMARIES, _DEV,
    )  # fmt: skip


def _safety(name: str, file: str, good: str, reader: Reader, graded: Any) -> GradeSet:
    return GradeSet(name, f"safety/{file}.jsonl", good, "people", reader, graded, _SAFETY)


def grade_sets() -> tuple[GradeSet, ...]:
    """Return every set, each with readers of its own."""
    edos, stereotypes = "not sexist", "it goes against a stereotype"
    return (
        _claims("expertqa", "expertqa"),
        _claims("hagrid", "hagrid"),
        _claims("gensearch", "gensearch_stanford"),
        _claims("faithdial", "faithdial_audit"),
        GradeSet("q2", "grounding/eval_q2.jsonl", "the knowledge supports the reply", "people",
                 dialogue_of, _CLAIMS, _EVAL),
        _claims("vitaminc", "vitaminc_real"),
        _claims("expertqa_cited", "expertqa", cited_of, _CITED),
        _claims("gensearch_cited", "gensearch_stanford", cited_of, _CITED),
        _claims("citation_integrity", "citation_integrity", cited_of, _CITED),
        _summaries("frank_val"),
        _summaries("defacto"),
        _summaries("xsumfaith"),
        _summaries("diasumfact_qmsum"),
        GradeSet("clapnq", "qa.jsonl", "the passage holds the answer", "people", relevance_of,
                 _RELEVANCE, "no rule or threshold was made on it"),
        GradeSet("squad2", "grounding/written/squad2_dev.jsonl", "the passage holds the answer",
                 "people", answerable_of, _RELEVANCE, _DEV),
        GradeSet("paraphrases", PARAPHRASES, "a paraphrase; bad ones keep the words and deny them",
                 "constructed", paraphrase_of, _ANSWERS,
                 "written for the project; the rules of comparison were tried on it"),
        _safety("jigsaw", "toxicity_eval_jigsaw", "not toxic", text_of("toxicity"), _TOXIC),
        _safety("wiki", "toxicity_eval_wiki", "not toxic", text_of("toxicity"), _TOXIC),
        _safety("surge", "toxicity_eval_surge", "not toxic", text_of("toxicity"), _TOXIC),
        _safety("hatexplain", "toxicity_eval_hatexplain", "not hateful or offensive",
                text_of("toxicity"), _TOXIC),
        _safety("edos", "bias_eval", edos, text_of("bias_gender", "edos"),
                {"sexism": ("model_passes",), "bias": ("fairness_bias", "gender")}),
        _safety("stereoset", "bias_eval", stereotypes,
                text_of("bias_group", "stereoset", _NEUTRAL_QUESTION),
                {"stereotypes": ("model_passes",), "bias": ("fairness_bias", "group")}),
        _safety("redditbias", "bias_eval", "not biased", text_of(
                "bias_group", "redditbias", _NEUTRAL_QUESTION),
                {"stereotypes": ("model_passes",), "bias": ("fairness_bias", "group")}),
        _safety("wiki_npov", "bias_eval", "neutral wording", text_of("bias_framing"),
                {"bias": ("fairness_bias", "framing")}),
        GradeSet("contacts", "pii/synthetic_sentences.jsonl",
                 "no name, address, phone or e-mail", "generated", contacts_of,
                 {"contact_information": ("model_passes",)}, "read while patterns were written"),
    )  # fmt: skip


NOT_MEASURED: Mapping[str, str] = {
    "answer_relevancy": "no labels at hand say whether an answer is to the point of its question",
    "consistency": "no labels at hand say whether reruns agree",
    "context_entities_recall": "no labels at hand name a judge's entities",
    "language_mismatch": "no labelled answers in other languages at hand",
    "no_answer": "no labelled abstentions at hand",
    "noise_sensitivity": "no labels at hand say which passage misled an answer",
    "nuggets": "no labelled nuggets at hand",
    "ragas": "no labels at hand are about a mean of four metrics; its parts have grades",
    "step_alignment": "no labelled steps at hand",
}
"""Why an evaluator that stands for another has no grade."""


def graded_by(sets: Iterable[GradeSet]) -> Iterator[tuple[str, str, GradeSet]]:
    """Yield evaluator, metric and set, for every metric that a set's labels are about."""
    for one in sets:
        for evaluator, metrics in one.graded.items():
            for metric in metrics:
                yield evaluator, metric, one
