"""The model-risk report of a workflow: what a committee reads before a system is approved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from guardrail_offline.model_risk.conclusions import TOLERATED, Conclusion, conclude
from guardrail_offline.model_risk.frameworks import in_words
from guardrail_offline.model_risk.report_blocks import (
    Block,
    Bullets,
    Form,
    ReportDocument,
    ReportSection,
    ReportTable,
    row,
    sentence,
)
from guardrail_offline.model_risk.report_front import (
    as_words,
    clipped,
    data_section,
    evaluators_of,
    model_description,
    principles_of,
    summary,
    tests_section,
)
from guardrail_offline.model_risk.report_results import (
    calibration_section,
    results_section,
    robustness_section,
    weaknesses_section,
)
from guardrail_offline.model_risk.step_data import DEFINITION, STEP_FILES, WorkflowData
from guardrail_service import __version__

TITLE = "Model risk report"
LIMITS = (
    "Test cases made from the corpus ask what the corpus says. They do not show what users ask for "
    "that it lacks, unless people added such cases.",
    "Evaluators that stand in for a judge compare systems; they do not grade single answers. Their "
    "agreement with people is in section 4, and on this system in section 6.",
    "Intervals count questions as independent draws from questions of this kind. Another corpus, "
    "language or audience is another population.",
    "A promise about good answers that are flagged holds for answers like those labelled, and "
    "until the corpus, the system or its users change.",
    "Sentences are judged one by one; a wrong impression that true sentences give together is not "
    "found.",
)


def mrm_report(
    data: WorkflowData, day: date | None = None, tolerated: float = TOLERATED
) -> ReportDocument:
    """Return the report of a workflow; steps that are missing are said to be.

    Args:
        data: The workflow's folder.
        day: Of the report; today if None.
        tolerated: Share of failing answers that a deciding metric may have, 0 to 1.
    """
    found = conclude(data, tolerated)
    about = data.definition
    made = day if day is not None else date.today()  # noqa: DTZ011 - the day where it is written
    facts = (
        ("System", about["name"].text),
        ("Date of the report", made.isoformat()),
        ("Conclusion", found.verdict),
        ("Steps run", f"{len(data.present)} of {len(STEP_FILES)}"),
        ("Definition of the tests", f"{DEFINITION}, SHA-256 {data.sha256(DEFINITION)[:16]}"),
        ("Written by", f"rag-guardrail {__version__}"),
        ("Status", "Draft until it is signed (section 12)"),
    )
    subtitle = about["name"].text
    return ReportDocument(TITLE, subtitle, facts, tuple(_blocks(data, found, tolerated)))


def _blocks(data: WorkflowData, found: Conclusion, tolerated: float) -> Iterator[Block]:
    yield from summary(data, found, tolerated)
    yield from model_description(data)
    yield from data_section(data)
    yield from tests_section(data)
    yield from results_section(data)
    yield from calibration_section(data, tolerated)
    yield from weaknesses_section(data)
    yield from robustness_section(data)
    yield from _conclusions(found)
    yield from _limits(data)
    yield from _monitoring(found)
    yield from _sign_off()
    yield from _appendices(data)


def _conclusions(found: Conclusion) -> Iterator[Block]:
    yield ReportSection("9 Conclusions", ("sr11-7:validation", "nist:manage"))
    yield sentence(found.verdict)
    yield ReportTable(
        "Reasons, and what they ask for",
        ("Weight", "Reason", "What it asks for"),
        (
            *(
                row("against", cell, "mend the cause and run the workflow again")
                for cell in found.against
            ),
            *(
                row("condition", cell, "settle it, or accept it in section 12")
                for cell in found.conditions
            ),
        )
        or (row("none", "no reason against the use was found", "nothing"),),
        (1, 4, 2.4),
    )
    yield sentence(
        "Three artefacts of this workflow serve to mend causes: the guardrail configuration "
        "(calibrated thresholds for the running service), the corpus patch (passages to add or "
        "mend) and the system-prompt extension (rules from weaknesses). After any of them the "
        "workflow has to be run again: this report speaks about the system without them."
    )


def _limits(data: WorkflowData) -> Iterator[Block]:
    yield ReportSection(
        "10 Limits", ("sr11-7:conceptual-soundness", "nist:accountable-transparent")
    )
    yield Bullets(tuple((text,) for text in LIMITS))
    notes = [
        (f"{data.step(name)['title'].text}: {clipped(note.text)}",)
        for name in data.present
        for note in data.step(name)["notes"]
    ]
    if notes:
        yield sentence("What the steps noted:")
        yield Bullets(tuple(notes))


def _monitoring(found: Conclusion) -> Iterator[Block]:
    yield ReportSection("11 Ongoing monitoring", ("sr11-7:ongoing-monitoring", "nist:manage"))
    yield Bullets(
        (
            ("Serve the guardrail configuration in front of the system; a flagged answer is kept "
             "from the user or marked, as the policy says.",),
            ("Run this workflow again when the corpus, the model, the prompt or the retrieval "
             "changes, and compare the two folders.",),
            ("Label a sample of live answers at the interval that the materiality tier asks for; "
             "calibrate anew when people and checks agree less than in section 6.",),
            ("Watch the share of flagged and unanswered questions, and the metrics of section 1 "
             f"({', '.join(gate.metric for gate in found.gates) or 'none decides yet'}).",),
        )
    )  # fmt: skip


def _sign_off() -> Iterator[Block]:
    yield ReportSection("12 Sign-off", ("sr11-7:governance", "nist:govern"), new_page=True)
    yield sentence(
        "Each role states its decision: approved, approved with conditions, or rejected. "
        "Conditions are written below with an owner and a date."
    )
    yield Form(
        "Decisions",
        ("Role", "Name", "Decision", "Date", "Signature"),
        ("Model developer", "Model owner", "Independent validator", "Model risk committee"),
    )
    yield Form("Conditions", ("Condition", "Owner", "Due"), ("1", "2", "3", "4"))


def _appendices(data: WorkflowData) -> Iterator[Block]:
    yield ReportSection("Appendix A: Frameworks", (), new_page=True)
    yield sentence(
        "SR 11-7 is the supervisory guidance on model risk management of the Federal Reserve and "
        "the OCC (2011). The AI RMF is the risk management framework of NIST (AI 100-1, 2023). "
        "The parts that each section speaks to stand under its heading; those of the evaluators:"
    )
    found: dict[str, list[str]] = {}
    for spec in evaluators_of(data):
        for tag in principles_of(spec):
            found.setdefault(tag, []).append(spec.name)
    yield ReportTable(
        "Principles and the evaluators that speak to them",
        ("Principle", "Evaluators"),
        tuple(row(in_words(tag), ", ".join(names)) for tag, names in sorted(found.items())),
        (1.4, 3),
    )
    yield ReportSection("Appendix B: Files and parameters", ())
    yield ReportTable(
        "Files that this report was written from",
        ("File", "State", "SHA-256"),
        tuple(
            row(name, state, data.sha256(name))
            for name, state in (
                (DEFINITION, "chosen by people"),
                *((STEP_FILES[step], data.step(step)["state"].text) for step in data.present),
            )
        ),
        (1.3, 0.9, 4.4),
    )
    yield ReportTable(
        "Parameters of the steps",
        ("Step", "Parameter", "Value"),
        tuple(
            row(step, one.key, clipped(as_words(one.value), 200))
            for step in data.present
            for one in data.step(step)["parameters"]
        ),
        (1, 1.6, 3),
    )
