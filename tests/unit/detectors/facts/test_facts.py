"""Exact facts: what is supported, what a passage contradicts, and what nobody mentions."""

from __future__ import annotations

import pytest

from guardrail_service.detectors.facts.detector import Facts, FactsParameters
from guardrail_service.text.budget import BETWEEN_LOOKS, Budget, spending
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Outcome, Passage, Sample, Span, State

HOTEL = (
    "Hotel Lindenhof has 64 rooms on four floors. Breakfast is served from 6:30 to 10:00. "
    "A room costs 35 euros a night. Breakfast costs €12.50 per person. The pool was opened on "
    "5 May 1998. The lake is 96 m deep. At most three guests may share a room."
)
CUT = 0.5


def judge(answer: str, passage: str = HOTEL, question: str | None = None) -> Outcome:
    """Run the detector on an answer."""
    sample = Sample(answer, question, (Passage(passage),) if passage else ())
    return Facts().reduce(SegmentedSample(sample), (), FactsParameters())


def worst(outcome: Outcome) -> Span:
    """Return the worst span."""
    return min(outcome.spans, key=lambda span: span.score or 0.0)


@pytest.mark.parametrize(
    "answer",
    [
        "Hotel Lindenhof has sixty-four rooms.",
        "Breakfast is served from 6:30 am to 10 am.",
        "A room costs €35 a night.",
        "Two nights in a room cost 70 euros.",
        "Breakfast for two people costs 25 euros in total.",
        "A night with breakfast costs 47.50 euros altogether.",
        "A room costs 2 x 35 = 70 euros for two nights.",
        "The pool was opened in May 1998.",
        "The pool was opened on 1998-05-05.",
        "The lake is 0.096 km deep.",
        "The lake is about 315 feet deep.",
        "The lake is nearly 100 m deep.",
        "Hotel Lindenhof has more than 60 rooms.",
        "No more than three guests may share a room.",
    ],
)
def test_a_true_answer_passes(answer: str) -> None:
    """In other formats, other units, rounded, or computed from the passages."""
    outcome = judge(answer)
    assert outcome.scores["facts"] >= CUT, worst(outcome)


@pytest.mark.parametrize(
    ("answer", "label", "kind"),
    [
        ("Hotel Lindenhof has 46 rooms.", "contradicted", "number"),
        ("Hotel Lindenhof has five floors.", "contradicted", "number"),
        ("Breakfast is served from 6:30 to 11:00.", "contradicted", "time"),
        ("A room costs $35 a night.", "contradicted", "money"),
        ("Breakfast costs €21.50 per person.", "contradicted", "money"),
        ("The pool was opened on 5 May 1989.", "contradicted", "date"),
        ("The lake is 96 feet deep.", "contradicted", "measure"),
        ("The room costs 2 x 35 = 75 euros for two nights.", "contradicted", "money"),
        ("At least three guests may share a room.", "contradicted", "number"),
        ("The sauna has 380 lockers.", "not_mentioned", "number"),
    ],
)
def test_a_changed_fact_is_found(answer: str, label: str, kind: str) -> None:
    """With its place in the answer; a contradiction also with its place in the passage."""
    outcome = judge(answer)
    found = worst(outcome)
    assert found.score is not None
    assert found.score < CUT
    assert (found.label, found.attributes["kind"]) == (label, kind)
    if label == "contradicted" and "derivation" not in found.attributes:
        assert found.evidence


def test_two_exchanged_prices_are_found() -> None:
    """Both numbers stand in the passage, each by the other one's words."""
    passage = "The Brisa 300 costs £79. The Brisa 500 costs £129."
    assert judge("The Brisa 300 costs £79, and the Brisa 500 costs £129.", passage).scores == {
        "facts": 1.0
    }
    swapped = judge("The Brisa 300 costs £129, and the Brisa 500 costs £79.", passage)
    assert swapped.scores["facts"] < CUT


def test_the_calculation_is_told() -> None:
    """In numbers of the passages, for right and for wrong results."""
    right = judge("Two nights in a room cost 70 euros.")
    assert "2 \u00d7 35 = 70" in [span.attributes.get("derivation") for span in right.spans]
    wrong = judge("The room costs 2 x 35 = 75 euros for two nights.")
    assert worst(wrong).attributes["derivation"] == "2 \u00d7 35 = 70"


TIMES = (
    "| Train | Kessin | Aldau |\n|---|---|---|\n| 4621 | 18:07 | 19:22 |\n| 4623 | 19:40 | 20:55 |"
)
SALES = "Net sales rose to $412 million from $384 million in the same quarter a year ago."
CAKE = "Corn cake for 8. Take 250 g of sugar, 200 ml of coconut milk and 150 g of cornmeal."
COURSE = (
    "Start to bridge: 9.4 km, ascent 310 m. Bridge to tarn: 12.1 km, 640 m. Then 10.8 km, 180 m."
)
POWER = "Base fee 11.00 euros a month. One kWh costs 31 ct."
EVENTS = "Serious events occurred in 4 patients on 80 mg, 3 on 40 mg and 4 on placebo."
GIVEN = "| Site | Donations |\n|---|---|\n| North | 120 |\n| South | 140 |\n| West | 65 |"
FERRY = (
    "| Day | Check-in | Departure | Arrival |\n|---|---|---|---|\n"
    "| Tuesday | 17:15 | 19:00 | 05:30 |\n| Thursday | 18:45 | 20:30 | 07:00 |"
)
SYRUP = "About 40 l of sap give 1 l of syrup."
RECALL = (
    "On 19 February we found the fault, told the office on the 20th and recalled it on the 26th."
)


@pytest.mark.parametrize(
    ("answer", "passage", "passes"),
    [
        ("Train 4621 takes 1 h 15 min.", TIMES, True),
        ("Net sales grew by $28 million to $412 million.", SALES, True),
        ("Net sales grew by $38 million to $412 million.", SALES, False),
        ("Just triple everything:\n\n- coconut milk: 600 ml\n- cornmeal: 450 g", CAKE, True),
        ("Just triple everything:\n\n- coconut milk: 650 ml\n- cornmeal: 450 g", CAKE, False),
        ("The course has 32.3 km and 1,130 m of ascent.", COURSE, True),
        ("The course has 34.3 km and 1,130 m of ascent.", COURSE, False),
        ("3,200 kWh \u00d7 31 ct = €992 for the year.", POWER, True),
        ("3,200 kWh \u00d7 31 ct = €892 for the year.", POWER, False),
        ("Eleven patients had serious events.", EVENTS, True),
        ("Twelve patients had serious events.", EVENTS, False),
        ("We recalled it on 26 February.", RECALL, True),
        ("We recalled it on 25 February.", RECALL, False),
        ("The round of 21 April moves back two days, to 23 April.",
         "The round of 21 April takes place on 23 April, and others every 2 weeks.", True),
        ("It fell from €3,280 to €2,870.", "It brought €2,870, which was €410 less.", True),
        ("At €5,000 the fee of 18 % is €900.", "The fee is 18 %. A visit costs 900 kroner.", True),
        ("118 x €0.42 = €49.56 \u2192 €49.60.", "One costs €0.42. Plot 12A has 118.", True),
        ("118 x €0.42 = €49.56 \u2192 €58.60.", "One costs €0.42. Plot 12A has 118.", False),
        ("It is 15,000 ÷ 18,000 = 5/6 of it.", "Worth 18,000 and insured for 15,000 euros.", True),
        ("The index is 5/6 = .833.", "Aral won 5 of 6 games.", True),
        ("You use (232 \u2212 50) x 12 = 2,184 litres.", "12 litres, 232 bar; 50 bar stay.", True),
        ("You use (232 \u2212 50) x 12 = 2,284 litres.", "12 litres, 232 bar; 50 bar stay.", False),
        ("6 rm is about 4.3 solid metres (6 ÷ 1.4).", "A solid metre is 1.4 rm of wood.", True),
        ("For 1 l of syrup take 40 l of sap, for 3 l take 120 l.", SYRUP, True),
        ("It is shut from 12:30 to 13:15, the midday break.", "Shut from 12:30 to 13:15.", True),
        ("Two races are sailed, one in the morning.", "Race 1 at 9:30, race 2 at 14:10.", True),
        ("It is for 1 April 2025 to 31 March 2026.", "From 1 April 2025 for a year.", True),
        ("3,360 t x €0.62 = €2,083,200.", "Sold: 3,360 tonnes at €0.62 a kilo.", True),
        ("Thanks for 325 donations!", GIVEN, True),
        ("Thanks for 335 donations!", GIVEN, False),
        ("€1,000.01 to €2,000: the head decides.", "Up to €1,000 and from there to €2,000.", True),
        ("It holds 6,500 litres (about 1,430 imperial).", "Volume: 6,500 litres.", True),
        ("On Tuesday it leaves at 19:00 and arrives at 05:30.", FERRY, True),
        ("It may be at most 28 days old.", "It may not be older than 28 days.", True),
    ],
)  # fmt: skip
def test_steps_that_answers_take_without_a_word(answer: str, passage: str, passes: bool) -> None:
    """Durations between times, "by so much to", recipes, stages, cents, counts and days."""
    assert (judge(answer, passage).scores["facts"] >= CUT) is passes


@pytest.mark.parametrize(
    ("answer", "passage", "passes"),
    [
        ("所要時間は約1時間半です。", "所要時間は約90分を予定している。", True),
        ("所要時間は約2時間半です。", "所要時間は約90分を予定している。", False),
        ("桥长378米。", "The bridge is 1,240 feet long.", True),
        ("La portata è di 95 litri al minuto (5.700 litri all'ora).",
         "Hydra 40. Flow rate: up to 95 litres per minute.", True),
        ("Basta triplicar a receita:\n\n- Leite de coco: 600 ml",
         "Bolo (rende 8 porções): 250 g de açúcar e 200 ml de leite de coco.", True),
    ],
)  # fmt: skip
def test_units_and_steps_of_other_languages(answer: str, passage: str, passes: bool) -> None:
    """Half hours, metres, rates and multiples."""
    assert (judge(answer, passage).scores["facts"] >= CUT) is passes


@pytest.mark.parametrize(
    "answer",
    [
        "The mast may be up to 15 m (about 49 ft) high, or 10 m within 1 km of an airfield.",
        "Licence holders may take 200 kg of bladder wrack a month, and 30 kg of dulse.",
    ],
)
def test_values_in_the_order_of_the_passage_are_not_exchanged(answer: str) -> None:
    """One word that stands by both values tells nothing."""
    passage = (
        "Masts may stand up to 15 m above ground without a permit, but only up to 10 m within 1 km"
        " of an airfield. Bladder wrack: up to 200 kg per licence and month; dulse: up to 30 kg."
    )
    assert judge(answer, passage).scores["facts"] >= CUT


def test_a_table_may_follow_its_title_on_one_line() -> None:
    """As texts without line breaks are cut into passages."""
    passage = (
        "Results. | Ward | Spring | Autumn |\n|---|---|---|\n| Surgery | 81% | 74% |\n"
        "| Internal medicine | 72% | 69% |\n| Paediatrics | 69% | 57% |\n"
    )
    assert judge("Surgery had 81% in spring.", passage).scores["facts"] >= CUT
    assert judge("Surgery had 72% in spring.", passage).scores["facts"] < CUT


def test_the_question_is_a_source_too() -> None:
    """What the user said is not invented."""
    question = "We are 12 people and stay for 3 nights. What do we pay for a room?"
    answer = "For 3 nights a room costs 105 euros."
    assert judge(answer, question=question).scores["facts"] >= CUT


@pytest.mark.parametrize(
    ("answer", "passage", "is_found"),
    [
        ("Das Zimmer kostet 53 Euro.", "Ein Zimmer kostet 35 Euro pro Nacht.", True),
        ("Das Zimmer kostet 35 €.", "Ein Zimmer kostet 35 Euro pro Nacht.", False),
        ("客室は一泊88ユーロです。料金は88ユーロです。", "客室は一泊 35 ユーロです。", True),
    ],
)
def test_digits_are_judged_in_every_language(answer: str, passage: str, is_found: bool) -> None:
    """A number needs no model."""
    assert (judge(answer, passage).scores["facts"] < 0.7) is is_found


def test_states() -> None:
    """Nothing to compare with is unverified, nothing to judge is not applicable."""
    assert judge("It costs 5 euros a night.", passage="").reason == "missing_input"
    assert judge("Thank you!").state is State.NOT_APPLICABLE
    assert judge("The hotel stands by the lake.").scores == {"facts": 1.0}


LABELS = (
    "Bikes. The Runa 45 and the Runa 60 have two baskets. The Runa 60 weighs 46 kg. Rooms 4, 7 and "
    "11 to 16 face the yard. Version 5.2 drops the import. Node 18 or newer is needed."
)


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("Both baskets come with the Runa 66.", "66"),
        ("The lighter one is the Runa 46.", "46"),
        ("Can I have Room 17, which faces the yard?", "17"),
    ],
)
def test_a_name_with_another_number_is_another_thing(answer: str, number: str) -> None:
    """Passages have it with other numbers only, wherever else this one stands."""
    found = worst(judge(answer, LABELS))
    assert answer[found.start : found.end] == number
    assert found.label == "contradicted"
    assert found.evidence
    assert (found.score or 0.0) < CUT


@pytest.mark.parametrize(
    "answer",
    [
        "Both baskets come with the Runa 60.",
        "I would ask for Room 13, which faces the yard.",
        "Room 7 faces the yard.",
        "The import was still there in Version 4.",
        "Node 20 will do.",
        "The import is gone in version 5.2.",
        "**Step 1** Take the Runa 45.\n**Step 2** Fill it.",
        "Of 2 baskets both belong to the Runa 60.",
    ],
)
def test_a_name_with_a_number_of_the_passages_passes(answer: str) -> None:
    """Ranges hold what lies in them; steps and the like are the answer's own."""
    outcome = judge(answer, LABELS)
    assert outcome.scores["facts"] >= CUT, worst(outcome)


class CountsLooks(Budget):
    """Never spent; counts how often somebody asks."""

    def __init__(self) -> None:
        super().__init__(None, 3600.0)
        self.looks = 0

    def is_spent(self) -> bool:
        """Return False."""
        self.looks += 1
        return False


def test_comparing_many_facts_looks_at_the_time() -> None:
    """Their number multiplies: 300 amounts beside 300 others are 90,000 comparisons."""
    fees = " ".join(f"The fee of item {n} is {n * 7 % 997} euros." for n in range(150))
    sample = SegmentedSample(Sample(fees, "What are the fees?", (Passage(fees),)))
    budget = CountsLooks()
    with spending(budget):
        Facts().reduce(sample, (), FactsParameters())
    assert budget.looks > 300 * 300 / BETWEEN_LOOKS
