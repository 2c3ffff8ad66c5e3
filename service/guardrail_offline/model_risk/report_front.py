"""The first parts of the model-risk report: summary, model, data, tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guardrail_offline.evaluators.catalogue import CATALOGUE, EvaluatorSpec
from guardrail_offline.evaluators.description import judge_free, tags_of
from guardrail_offline.evaluators.grades import grade_of
from guardrail_offline.model_risk.conclusions import Conclusion, share_cell
from guardrail_offline.model_risk.frameworks import in_words
from guardrail_offline.model_risk.report_blocks import (
    Block,
    Bullets,
    Cell,
    Form,
    Paragraph,
    ReportRow,
    ReportSection,
    ReportTable,
    Subsection,
    row,
    sentence,
)
from guardrail_offline.model_risk.step_data import MISSING, JsonPlace, NumberForm, WorkflowData

SHOWN = 400
"""Characters of a text in a table; what is left out is said."""
FOLLOWS = {
    "exact": "exact",
    "other_model": "with another model",
    "surrogate": "a stand-in",
    "needs_judge": "needs a judge",
    "own": "our own",
}
STANDS = {
    "beyond": "beyond the tolerated share",
    "open": "open: the interval does not decide",
    "within": "within the tolerated share",
    "unfounded": "nothing: chosen for other models",
    "not judged": "not judged",
}


def clipped(text: str, most: int = SHOWN) -> str:
    """Return a text that fits into a table, and how much of it was left out."""
    flat = " ".join(text.split())
    left = len(flat) - most
    return flat if left <= 0 else f"{flat[:most]} [{left:,} more characters]"


def summary(data: WorkflowData, found: Conclusion, tolerated: float) -> Iterator[Block]:
    """Yield the summary: the conclusion, its reasons, and the metrics that decide."""
    yield ReportSection(
        "1 Summary", ("sr11-7:validation", "nist:govern", "nist:manage"), new_page=True
    )
    yield Paragraph((found.verdict,), "verdict")
    if found.against:
        yield sentence("What speaks against it:")
        yield Bullets(found.against)
    if found.conditions:
        yield sentence("What is open, and has to be settled or accepted:")
        yield Bullets(found.conditions)
    yield sentence(
        f"A deciding metric is beyond the tolerated share when more than {100 * tolerated:g} % of "
        "the questions fail it and the whole exact 95 % interval lies above; it is within when the "
        "whole interval lies below. The conclusion follows from this rule. It is no approval: "
        "that is the committee's (section 12)."
    )
    if found.gates:
        yield ReportTable(
            "Metrics that decide",
            (
                "Metric",
                "Threshold",
                "Fitted to labels",
                "Questions that fail (95 % interval)",
                "Stand",
            ),
            tuple(
                row(
                    gate.metric,
                    gate.threshold["threshold"].number("f3"),
                    "yes" if gate.threshold["calibrated"].value else "no",
                    share_cell(gate.failing),
                    STANDS[gate.stand],
                    base=gate.threshold,
                )
                for gate in found.gates
            ),
            (2.4, 1.3, 1.2, 2.7, 2.4),
        )


def model_description(data: WorkflowData) -> Iterator[Block]:
    """Yield what was tested, and what its owner has to state."""
    tags = ("sr11-7:development", "sr11-7:conceptual-soundness", "nist:map")
    yield ReportSection("2 Model description", (*tags, "nist:accountable-transparent"))
    about = data.definition
    if about["description"].text:
        yield sentence(about["description"].text)
    yield ReportTable(
        "The system under test, as the workflow knows it",
        ("Property", "Value"),
        tuple(row(name, value, base=None) for name, value in _model_facts(data)),
        (1, 2.5),
    )
    yield sentence(
        "The system retrieves passages of a corpus and a language model writes an answer from "
        "them. Sound use rests on three things: the corpus holds what users ask for, retrieval "
        "finds it, and the answer says what the passages say. Sections 5 to 8 test each of them."
    )
    yield Form(
        "To be stated by the model owner",
        ("Item", "Statement"),
        (
            "Model identifier in the inventory, and version",
            "Owner, developer, vendor",
            "Intended use and users",
            "Uses that are not allowed",
            "Materiality tier, and why",
            "Upstream and downstream systems",
        ),
    )


def _model_facts(data: WorkflowData) -> Iterator[tuple[str, str]]:
    about = data.definition
    target = about["target"]
    yield "Name of the workflow", about["name"].text
    if target.value is None:
        yield "Target", "none: the cases bring their answers"
    for key, words in (
        ("target", "Target"),
        ("model", "Model on the host"),
        ("kind", "Protocol"),
        ("answers", "File with given answers"),
        ("template", "Template of requests"),
    ):
        if target[key].value:
            yield words, target[key].text
    if target.value is not None and not target["answers"].value:
        given = "yes" if target["contexts"].value else "no: it retrieves by itself"
        yield "Is given passages by the test", given
    yield "Model pack of the evaluators", about["pack"].text
    judge = about["judge"]
    asked = f"{judge['model'].text} at {judge['url'].text}" if judge.value else "none"
    yield "Language model as a judge", asked


def data_section(data: WorkflowData) -> Iterator[Block]:
    """Yield documents, topics, and how the test cases came about."""
    tags = ("sr11-7:conceptual-soundness", "nist:map", "nist:valid-reliable")
    yield ReportSection("3 Data", tags)
    documents = data.definition["documents"]
    yield Subsection("3.1 Documents")
    yield sentence(
        "The corpus has ",
        documents.number("count"),
        " documents, cut into ",
        data.results("topics")["chunks"].number("count"),
        " passages.",
    )
    yield ReportTable(
        "Documents of the corpus",
        ("Document", "SHA-256, first 16 digits"),
        tuple(row(one["path"].text, one["sha256"].text[:16]) for one in documents),
        (2, 1),
    )
    yield Subsection("3.2 Topics")
    yield from skipped(data, "topics")
    topics = list(data.results("topics")["topics"])
    if topics:
        quality = data.results("topics")["quality"]
        silhouette, noise = quality["silhouette"].number("f2"), quality["noise"]
        found: Cell = (f"Method: {quality['method'].text}.",)
        if silhouette != MISSING:
            found = (*found, " Silhouette ", silhouette, ".")
        if noise.value is not None:
            form: NumberForm = "share" if isinstance(noise.value, float) else "int"
            found = (*found, " Passages in no topic: ", noise.number(form), ".")
        yield Paragraph(found)
        yield ReportTable(
            "Topics of the corpus",
            ("Topic", "Passages", "Silhouette", "Tested"),
            tuple(
                row(
                    clipped(one["title"].text, 120),
                    one["size"].number("int"),
                    one["silhouette"].number("f2"),
                    "no" if one["excluded"].value else "yes",
                    base=one,
                )
                for one in topics
            ),
            (4, 1, 1, 1),
        )
    yield from _cases(data)


def _cases(data: WorkflowData) -> Iterator[Block]:
    yield Subsection("3.3 Test cases")
    yield from skipped(data, "generation")
    yield from skipped(data, "validation")
    generation, validation = data.results("generation"), data.results("validation")
    if generation.value is not None:
        made = list(generation["by_generator"])
        yield ReportTable(
            "Test cases by how they were made",
            ("Generator", "Cases"),
            tuple(row(one.key, one.number("int")) for one in made),
            (3, 1),
        )
    if validation.value is not None:
        kept, rejected = validation["kept"], validation["rejected"]
        yield sentence(
            "Validation kept ",
            kept.number("count"),
            " cases and rejected ",
            rejected.number("count"),
            ". It checks relevancy to the passage, whether that answers the question, duplicates, "
            "outliers and language.",
        )
        reasons: dict[str, list[JsonPlace]] = {}
        for one in rejected:
            reasons.setdefault(clipped(one["reason"].text, 160), []).append(one)
        yield Bullets(tuple((f"Rejected: {why}",) for why in list(reasons)[:8]))


def tests_section(data: WorkflowData) -> Iterator[Block]:
    """Yield the evaluators, their principles and how far their numbers can be trusted."""
    tags = ("sr11-7:validation", "sr11-7:conceptual-soundness", "nist:measure")
    yield ReportSection("4 Tests and methods", tags)
    if data.missing("evaluation"):
        yield from skipped(data, "evaluation")
        return
    judge = data.step("evaluation")["judge"]
    yield sentence(
        f"A language model judged some answers: {judge.text}. It is measured against people in "
        "section 6."
        if judge.value
        else "No language model judged another: rules, n-grams, embeddings and an entailment model "
        "gave all numbers, and people calibrate them (section 6)."
    )
    yield ReportTable(
        "Evaluators of this report",
        (
            "Evaluator",
            "Question it answers",
            "Follows its source",
            "Agreement with people",
            "Principles",
        ),
        tuple(_evaluator_row(spec) for spec in evaluators_of(data)),
        (2, 3.2, 1.5, 1.5, 3),
    )
    yield sentence(
        "Follows its source: exact, with another model, or a stand-in for what its source asks a "
        "language model. Agreement with people: the grade measured on labels of people that come "
        "with the evaluators; it says nothing about this system, for which section 6 stands."
    )


def evaluators_of(data: WorkflowData) -> list[EvaluatorSpec]:
    """Return the evaluators whose metrics stand in step 4, each once."""
    names = dict.fromkeys(one["evaluator"].text for one in data.results("evaluation")["metrics"])
    known = {spec.id: spec for spec in CATALOGUE.specs()}
    return [known[name] for name in names if name in known]


def principles_of(spec: EvaluatorSpec) -> list[str]:
    """Return the tags of an evaluator that name a principle of a framework."""
    return [tag for tag in tags_of(spec) if ":" in tag]


def _evaluator_row(spec: EvaluatorSpec) -> ReportRow:
    principles = "; ".join(map(in_words, principles_of(spec)))
    return row(
        spec.name,
        spec.summary,
        FOLLOWS[judge_free(spec)],
        str(grade_of(spec)["grade"]),
        principles,
    )


def skipped(data: WorkflowData, step: str) -> Iterator[Block]:
    """Yield why a step has no results, if it has none."""
    found = data.step(step)
    if found.value is None:
        yield Paragraph((f"This step was not run ({step}).",), "note")
    elif found["state"].value == "skipped":
        yield Paragraph((f"This step was skipped: {found['reason'].text}.",), "note")


def mean_cell(one: JsonPlace) -> Cell:
    """Return a mean with its interval."""
    mean = one["mean"].number("f3")
    low, high = one["interval95"][0].number("f3"), one["interval95"][1].number("f3")
    return (mean,) if MISSING in (low, high) else (mean, " (", low, " to ", high, ")")


def as_words(value: Any) -> str:
    """Return a parameter's value as a text."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
