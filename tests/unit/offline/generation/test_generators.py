"""What the generators make of a handbook, and how cases are chosen."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import case_from_json, case_json
from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.extraction import TextBlock
from guardrail_offline.generation.generated import GeneratedCase, to_case
from guardrail_offline.generation.generators import (
    ADVERSARIAL_GENERATORS,
    DEFAULT_GENERATORS,
    GENERATORS,
    Generated,
    GenerationOptions,
    generate,
    named_generators,
)
from guardrail_offline.generation.source_documents import SourceDocument
from guardrail_service.detectors.text_matching.condition import parse_condition
from guardrail_service.errors import ConfigurationError

ALL = GenerationOptions(tuple(GENERATORS), per_chunk=100)
TITLE = 'According to "Norland Water Handbook", '


@pytest.fixture(scope="module")
def everything(handbook: SourceDocument, chunks: list[DocumentChunk]) -> Generated:
    """All cases of the handbook."""
    return generate(chunks, ALL, titles={handbook.id: handbook.title})


@pytest.mark.parametrize(
    ("generator", "question", "expected"),
    [
        ("simple_factual", "Who developed Aquaflux in 2011?", "Norland Water"),
        ("simple_factual",
         'In the table under "Tariffs" in "Norland Water Handbook", what does the column '
         '"Meter size" say about "Family"?', "20 mm"),
        ("multi_hop", "In which year was the water supplier of the city of Ghent founded?", "1921"),
        ("multi_hop",
         "How many people does Norland Water employ, and in which year did Norland Water open the "
         "treatment plant Zwijnbeek?", "412 people; 1964"),
        ("inference", "Did Norland Water open the treatment plant Zwijnbeek before 1973?", "Yes"),
        ("numerical_reasoning", "How many people does Norland Water employ?", "412 people"),
        ("ambiguity_handling", f"{TITLE}how much does the tariff cost per month?",
         "That depends. The basic tariff costs 4 euros per month. The family tariff costs 7 euros "
         "per month. The industrial tariff costs 45 euros per month."),
        ("negation_and_contradiction",
         f"{TITLE}is it true that a reminder does not cost 12 euros?",
         "No. A reminder costs 12 euros."),
        ("temporal_reasoning", f"{TITLE}since when is the hotline open?", "March 2003"),
        ("temporal_reasoning",
         "How many years after Norland Water opened the treatment plant Zwijnbeek was Aquaflux "
         "replaced by Meterline?", "58 years"),
        ("out_of_scope", "Who wrote the novel Middlemarch?", None),
        ("yes_or_no", "Does Norland Water employ 412 people?", "Yes"),
        ("comparison",
         f"{TITLE}which costs more per month, the basic tariff or the family tariff?",
         "The family tariff"),
        ("comparison",
         f"{TITLE}which were renewed first, the pipes in the old town or the pipes in the harbour?",
         "The pipes in the old town"),
        ("list", 'What does "Norland Water Handbook" list after "To register you need:"? Name '
         "every point.",
         "a valid identity card\nthe number of the meter\nthe reading of the meter on the day you "
         "moved in"),
        ("cloze", 'Fill in the gap as "Norland Water Handbook" has it: A reminder costs ____.',
         "12 euros"),
        ("multi_turn", "And in which year was it replaced by Meterline?", "2022"),
    ],
)  # fmt: skip
def test_a_generator_asks(
    everything: Generated, generator: str, question: str, expected: str | None
) -> None:
    """In English, with the answer that the handbook gives."""
    found = {one.question: one.expected for one in everything.cases if one.generator == generator}
    assert question in found
    assert found[question] == expected


def test_every_generator_makes_cases(everything: Generated) -> None:
    """Of a page that has something for each."""
    assert {one.generator for one in everything.cases} == set(GENERATORS)


def test_places_and_conditions_hold(handbook: SourceDocument, everything: Generated) -> None:
    """Offsets are code points of the document's text; right answers meet their conditions."""
    for one in everything.cases:
        for span in one.spans:
            assert handbook.text[span.start : span.end] == span.text
        if one.condition is not None and one.expected is not None:
            answers = (one.expected, *one.references)
            assert any(parse_condition(one.condition).failure([a]) is None for a in answers)
        assert one.answerable == (one.expected is not None)
        assert one.answerable == bool(one.spans)


def test_false_values_stand_nowhere(handbook: SourceDocument, everything: Generated) -> None:
    """What should be wrong is not right by accident."""
    for one in everything.cases:
        assert not one.false or one.false not in handbook.text


def test_variants_share_the_group_of_their_question(
    handbook: SourceDocument, chunks: list[DocumentChunk], everything: Generated
) -> None:
    """So that averages count one question once."""
    by_id = {chunk.id: chunk for chunk in chunks}
    cases = {one.key: to_case(one, by_id) for one in everything.cases}
    variants = [one for one in everything.cases if one.source in cases]
    assert {"paraphrase", "demographic_representation"} <= {one.generator for one in variants}
    assert all(cases[one.key].group == cases[one.source].group for one in variants)
    links = {link.type for case in cases.values() for link in case.relationships}
    assert links == {"source_span", "conversation", "generated_from"}
    for one in everything.cases:
        case = cases[one.key]
        assert case_from_json(case_json(case)) == case
        assert GeneratedCase.from_json(one.as_json()) == one
        assert case.reference_contexts == tuple(by_id[id].text for id in case.reference_ids)


def test_the_seed_draws(chunks: list[DocumentChunk], handbook: SourceDocument) -> None:
    """The same seed gives the same cases, another one others; both keep to the number."""
    titles = {handbook.id: handbook.title}
    drawn = [
        generate(chunks, GenerationOptions(count=40, seed=seed), titles=titles).cases
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert all(len({one.key for one in cases}) == len(cases) for cases in drawn)
    assert all(40 <= len(cases) <= 44 for cases in drawn)  # conversations are kept whole


def test_topics_are_labels_of_chunks(chunks: list[DocumentChunk]) -> None:
    """A case has the topic of its first chunk."""
    topics = {chunk.id: f"topic {n % 2}" for n, chunk in enumerate(chunks)}
    found = generate(chunks, GenerationOptions(count=20), topics=topics).cases
    with_source = [one for one in found if one.spans]
    assert all(one.topic == topics[one.spans[0].chunk] for one in with_source)
    assert len({one.topic for one in with_source}) == 2


def test_one_question_with_two_answers_is_dropped() -> None:
    """Where two places say different things, neither is the right answer."""
    texts = ["The basic plan costs 4 euros.", "The basic plan costs 5 euros."]
    chunks = [
        DocumentChunk(f"d#{n}", "d", 0, len(t), t, blocks=(TextBlock(0, len(t), "paragraph"),))
        for n, t in enumerate(texts)
    ]
    found = generate(chunks, GenerationOptions(("numerical_reasoning",)))
    assert found.cases == ()
    assert generate(chunks[:1], GenerationOptions(("numerical_reasoning",))).cases


def test_questions_of_other_documents_are_out_of_scope(chunks: list[DocumentChunk]) -> None:
    """If their subject is a name that the corpus does not have."""
    text = "Ferrovia Brenta was founded in 1887. It is old. Norland Water was founded in 1887."
    other = DocumentChunk(
        "o#1", "o", 0, len(text), text, blocks=(TextBlock(0, len(text), "paragraph"),)
    )
    found = generate(chunks, GenerationOptions(("out_of_scope",)), outside=[other])
    questions = [one.question for one in found.cases]
    assert "In which year was Ferrovia Brenta founded?" in questions
    assert "In which year was Norland Water founded?" not in questions


def test_other_languages_give_nothing() -> None:
    """The rules are English ones; what they cannot read they leave."""
    text = "Die Stadtwerke wurden im Jahr 1921 gegründet. Der Tarif kostet 4 Euro im Monat."
    chunk = DocumentChunk(
        "d#1", "d", 0, len(text), text, blocks=(TextBlock(0, len(text), "paragraph"),)
    )
    rules = tuple(id for id in GENERATORS if id != "out_of_scope")
    assert generate([chunk], GenerationOptions(rules)).cases == ()


def test_a_long_document_is_asked_section_by_section() -> None:
    """Where "the fee" may be many things, the question names the heading."""
    text = "The fee costs 4 euros."
    blocks = (TextBlock(0, len(text), "paragraph"),)
    chunks = [
        DocumentChunk(f"d#{n}", "d", 0, len(text), text, heading=f"Part {n}", blocks=blocks)
        for n in range(13)
    ]
    found = generate(chunks[:1] + chunks[1:], GenerationOptions(("numerical_reasoning",)))
    assert found.cases[0].question == 'According to "Part 0" in "d", how much does the fee cost?'
    short = generate(chunks[:1], GenerationOptions(("numerical_reasoning",)))
    assert short.cases[0].question == 'According to "d", how much does the fee cost?'


def test_generators_have_names() -> None:
    """Ours, those of Eval Studio's client, and groups."""
    h2o = [spec.h2o for spec in GENERATORS.values() if spec.h2o]
    assert len(h2o) == 14
    assert named_generators(h2o) == tuple(s.id for s in GENERATORS.values() if s.h2o)
    assert named_generators("yes_or_no, cloze,yes_or_no") == ("yes_or_no", "cloze")
    assert named_generators("all") == tuple(GENERATORS)
    assert named_generators("default") == DEFAULT_GENERATORS
    assert named_generators("adversarial") == ADVERSARIAL_GENERATORS
    with pytest.raises(ConfigurationError, match=r"'clozes'.*cloze"):
        named_generators("clozes")
