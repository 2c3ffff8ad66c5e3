"""Statements without numbers: denials, exclusions, the order of events, and who did what."""

from __future__ import annotations

import pytest

from guardrail_service.detectors.facts.detector import Facts, FactsParameters
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Sample

CUT = 0.5


def kinds(answer: str, passage: str) -> set[str]:
    """Return the kinds of what gates."""
    sample = SegmentedSample(Sample(answer, None, (Passage(passage),)))
    spans = Facts().reduce(sample, (), FactsParameters()).spans
    return {s.attributes["kind"] for s in spans if s.score is not None and s.score < CUT}


CLUB = (
    "Riverside Rowing Club hired coach Ada Lorne in May. Lorne trains the juniors and Ben"
    " Sato trains the adults. In June captain Olga Renn lent the boat to Petra Holm. Harwell"
    " beat Riverside in the final."
)


@pytest.mark.parametrize(
    "answer",
    [
        "Ben Sato trains the juniors.",
        "Lorne trains the adults and Ben Sato trains the juniors.",
        "Petra Holm lent the boat to Olga Renn.",
        "Riverside beat Harwell in the final.",
        "Harwell was beaten by Riverside in the final.",
        "In June captain Petra Holm lent the boat.",
    ],
)
def test_exchanged_roles_are_found(answer: str) -> None:
    """Subject and object, two predicates, an office, active and passive."""
    assert kinds(answer, CLUB) == {"role"}


@pytest.mark.parametrize(
    "answer",
    [
        "The juniors are trained by Ada Lorne.",
        "Ben Sato trains the adults, Lorne the juniors.",
        "Olga Renn lent Petra Holm the boat in June.",
        "Petra Holm borrowed the boat from Olga Renn.",
        "Riverside lost to Harwell in the final.",
        "Riverside was beaten by Harwell.",
        "Coach Ada Lorne was hired by Riverside Rowing Club.",
        "Harwell and Riverside met in the final.",
    ],
)
def test_roles_told_in_other_words_pass(answer: str) -> None:
    """What nobody exchanged is no contradiction."""
    assert kinds(answer, CLUB) == set()


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Ilse Brandt has Dutch parents.", "Brandt was born in Delft, Holland to Dutch parents."),
        (
            "Nara and Odel have large halls in Vink.",
            "Tarn, Brill, nara and odel and Quist also have large halls within the town.",
        ),
    ],
)
def test_a_place_behind_a_comma_and_names_in_small_letters_are_no_doers(
    answer: str, passage: str
) -> None:
    """The land of a town does nothing; a name in small letters may be told the same."""
    assert kinds(answer, passage) == set()


KILN = (
    "Clean the kiln first, load the shelves after that, and light the burner last. Vent the room"
    " before you open the kiln. The glaze is applied after the first firing. The old kiln was built"
    " in 1954, the chimney was repaired in 1988, and the shed was added in 2003. Wash the clay, dry"
    " it overnight, and roll it flat."
)


@pytest.mark.parametrize(
    "answer",
    [
        "First load the shelves, then clean the kiln, and light the burner at the end.",
        "1. Light the burner\n2. Load the shelves\n3. Clean the kiln",
        "Open the kiln before you vent the room.",
        "Vent the room after you open the kiln.",
        "The first firing comes after the glaze is applied.",
        "The shed was added before the chimney was repaired.",
        "Roll the clay flat, then dry it overnight.",
    ],
)
def test_events_in_another_order_are_found(answer: str) -> None:
    """Within a sentence, in numbered lines, by years, and against a plain list of steps."""
    assert kinds(answer, KILN) == {"order"}


@pytest.mark.parametrize(
    "answer",
    [
        "First clean the kiln, then load the shelves, and light the burner at the end.",
        "1. Clean the kiln\n2. Load the shelves\n3. Light the burner",
        "Only once the room is vented should you open the kiln.",
        "Open the kiln after you have vented the room.",
        "The glaze follows the first firing.",
        "The chimney was repaired before the shed was added.",
        "Dry the clay overnight, then roll it flat.",
        "The shelves are loaded before the burner is lit.",
    ],
)
def test_events_in_the_same_order_pass(answer: str) -> None:
    """However it is told."""
    assert kinds(answer, KILN) == set()


MEALS = (
    "The mail boat calls at Mull Fada first and reaches Rona Beg in the afternoon. Dinner is served"
    " after the route briefing. Do not wash white laundry until the colour has gone. Flats with"
    " shared bins will not change until next spring."
)


@pytest.mark.parametrize(
    ("answer", "is_found"),
    [
        ("Nobody gets dinner until the route briefing is over.", False),
        ("Dinner has to wait until the route briefing is over.", False),
        ("The thing to avoid is washing white laundry until the colour has gone.", False),
        ("Flats with shared bins won't change until next spring.", False),
        ("You don't have to wait for dinner before the route briefing.", False),
        ("Nobody gets the route briefing until dinner is over.", True),
        ("The route briefing has to wait until dinner is served.", True),
    ],
)
def test_what_waits_comes_later(answer: str, is_found: bool) -> None:
    """A denial before "until" turns the order."""
    assert kinds(answer, MEALS) == ({"order"} if is_found else set())


SHOP = (
    "Vouchers are accepted online and in the shop, but not at the market stall. Neither dogs nor"
    " cats may enter the shop. The lift is no longer in use. Members with a season card pay"
    " nothing for the tour. The bonus was approved in the spring vote."
)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("Vouchers are accepted at the market stall.", "negation"),
        ("All places accept vouchers online, in the shop and at the market stall.", "negation"),
        ("Dogs may enter the shop.", "negation"),
        ("The lift is still in use.", "negation"),
        ("All members pay for the tour.", "quantifier"),
        ("The bonus was rejected in the spring vote.", "negation"),
        ("The bonus was not approved.", "negation"),
    ],
)
def test_denials_and_exclusions_are_found(answer: str, kind: str) -> None:
    """Also where a passage leaves one of several things out."""
    assert kinds(answer, SHOP) == {kind}


@pytest.mark.parametrize(
    "answer",
    [
        "Vouchers are accepted online and in the shop.",
        "Vouchers are not accepted at the market stall.",
        "Vouchers are accepted except at the market stall.",
        "Dogs and cats may not enter the shop.",
        "The lift was in use for years.",
        "Members without a season card pay for the tour.",
        "The spring vote approved the bonus.",
    ],
)
def test_statements_that_keep_the_exclusion_pass(answer: str) -> None:
    """They deny the same."""
    assert kinds(answer, SHOP) == set()


COURT = (
    "Junior players may practise on the grass courts, but not on the centre court. Children below"
    " ten climb in the blue area, never in the red one. Membership cards will no longer be printed."
    " The dry store was clean. With the Plus warranty a milk hose is free."
)


@pytest.mark.parametrize(
    "answer",
    [
        "Centre court is off limits for juniors who want to practise on it.",
        "Your son has to stay out of the red area and climb in the blue one, as he is below ten.",
        "The centre court is what juniors on grass should forget about, as their trainer says.",
        "It was the cold room that needed cleaning, not the dry store.",
        "Printed membership cards were scrapped.",
        "Plus warranty or not, a hose that is cut is at your own expense.",
    ],
)
def test_denials_in_other_words_pass(answer: str) -> None:
    """A claim may deny something without any of the usual words."""
    assert kinds(answer, COURT) == set()


@pytest.mark.parametrize(
    "answer",
    [
        "Junior players can practise even on the centre court.",
        "Children below ten may climb in the red area, too.",
        "Membership cards will be printed.",
    ],
)
def test_what_allows_the_exclusion_is_found(answer: str) -> None:
    """A claim that says "can", "even" or "too" of what is left out, or nothing else than it."""
    assert kinds(answer, COURT) == {"negation"}


@pytest.mark.parametrize(
    "answer",
    [
        "Bookings stay yours for a year, and engineering data never do.",
    ],
)
def test_a_denial_without_its_verb_is_left_alone(answer: str) -> None:
    """What it denies stands elsewhere."""
    passage = "Engineering data are public. Submitted forms can be changed by an officer."
    assert kinds(answer, passage) == set()


def test_two_things_may_differ() -> None:
    """What one passage denies of its thing another affirms of its own."""
    passages = (
        Passage("Nimbusly Go. Boundary wire required (150 m supplied). Price 749 euros."),
        Passage("Nimbusly Pro. No boundary wire: it steers by satellite. Price 1,690 euros."),
    )
    answer = "**Nimbusly Go**\n\nIt needs a boundary wire, which comes with it."
    spans = Facts().reduce(SegmentedSample(Sample(answer, None, passages)), (), FactsParameters())
    assert spans.scores["facts"] >= CUT


def test_who_would_like_something_need_not_like_it() -> None:
    """A wish is no liking that a passage may deny."""
    passage = "I don't like morphine. Can you change it to Dilaudid? I like that medicine."
    assert kinds("He would like to get the morphine changed to Dilaudid.", passage) == set()
    assert kinds("I do like morphine.", passage) == {"negation"}


def test_a_sentence_that_breaks_off_is_read() -> None:
    """Its last word may be one that begins an exclusion."""
    assert kinds("Vouchers are taken at the stall.", "Vouchers are taken in the shop, but") == set()


@pytest.mark.parametrize(
    ("answer", "passage", "kind"),
    [
        ("Hunde sind im Garten erlaubt.", "Hunde sind im Garten nicht erlaubt.", "negation"),
        ("Der Garten ist montags geöffnet.", "Der Garten ist montags geschlossen.", "negation"),
        ("Les cartes sont remboursables.", "Les cartes ne sont pas remboursables.", "negation"),
        ("L'accès au jardin est gratuit.", "L'accès au jardin n'est pas gratuit.", "negation"),
        ("Es posible pagar con tarjeta.", "No es posible pagar con tarjeta.", "negation"),
        ("È vietato fotografare la sala.", "È permesso fotografare la sala.", "negation"),
        ("É permitido comer na sala.", "Não é permitido comer na sala.", "negation"),
        ("Bij harde wind vaart de pont.", "Bij harde wind vaart de pont niet.", "negation"),
        ("Karta jest bezpłatna dla uczniów.", "Karta nie jest bezpłatna dla uczniów.", "negation"),
        (
            "Anna Smit verkoopt kaartjes.",
            "Joost Bakker verkoopt kaartjes. Anna Smit stuurt de pont.",
            "role",
        ),
        (
            "Il ponte è stato inaugurato dal sindaco Carlo Riva.",
            "Il ponte è stato inaugurato dal sindaco Aldo Ferri.",
            "role",
        ),
        (
            "Bitte melden Sie sich bei Kassenwart Jochen Uhlig an, er leitet den Kurs.",
            "Den Kurs leitet Roswitha Kallmeyer. Anmelden kann man sich bei Kassenwart Jens Merz.",
            "name",
        ),
        (
            "El curso lo organiza la asociación Nueva Peñalara en su local de la plaza.",
            "El curso lo organiza la asociación Torremocha en su local de la plaza mayor.",
            "name",
        ),
        (
            "なお、最寄り駅からは無料の送迎バスが運行しています。",
            "日帰り入浴は午前11時から午後4時までで、料金は大人900円です。タオルは受付で借りられます。水曜の午前中は露天"
            "風呂の清掃があり、内湯だけの利用となります。",
            "sentence",
        ),
        ("Al menos 1.900 euros al mes.", "Un sueldo de al menos 900 euros al mes.", "money"),
    ],
)
def test_other_languages(answer: str, passage: str, kind: str) -> None:
    """Their words that deny and turn are known, and names that nobody mentions are found."""
    assert kinds(answer, passage) == {kind}


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Nein, Hunde sind im Garten nicht erlaubt.", "Hunde sind im Garten verboten."),
        ("Non, les cartes ne sont pas remboursables.", "Les cartes ne sont pas remboursables."),
        ("Sí, es posible pagar con tarjeta.", "Es posible pagar con tarjeta."),
        ("El sueldo es de 10.800 euros al año.", "El sueldo es de al menos 900 euros al mes."),
        (
            "Ci sono quattro posti per sedie a rotelle.",
            "La sala dispone di 320 posti, quattro dei quali riservati alle sedie a rotelle.",
        ),
        ("Z Petrą Hollins rozmawia Pani w biurze.", "Petra Hollins przyjmuje w biurze fundacji."),
        (
            "1. **Grabado**: con Jacinta Malheiro\n2. **Azulejo**: con Graça Redondo\n\nInscriba.",
            "Hay cursos de grabado, con Jacinta Malheiro, y de azulejo, con Graça Redondo.",
        ),
        (
            "Bitte ein Schreiben Ihres Chefs mitbringen und eine Tasse Tee.",
            "Im Garten gibt es Kuchen.",
        ),
        ("Am Ende steht Ihnen im Garten ein Ruheraum offen.", "Im Garten gibt es eine Laube."),
        (
            "入浴料は大人900円で、タオルは受付で借りられます。",
            "入浴の料金は大人900円です。受付でタオルを貸します。",
        ),
    ],
)
def test_true_answers_in_other_languages_pass(answer: str, passage: str) -> None:
    """A denial of the same is no contradiction, and a rate may be multiplied."""
    assert kinds(answer, passage) == set()


@pytest.mark.parametrize(
    ("answer", "passage", "is_found"),
    [
        ("The vote ended three to two.", "The vote ended three to one.", True),
        (
            "It rained on the 21st and the 30th day.",
            "It rained on the 12th and the 30th day.",
            True,
        ),
        ("Send the form after 31 May.", "Send the form before 31 May.", True),
        (
            "Leave Holm at 7:08 and reach Ahr at 5:42.",
            "Leave Holm at 5:42 and reach Ahr at 7:08.",
            True,
        ),
        (
            "The cross was rebuilt first, in 1646.",
            "The castle was pulled down in 1649, three years after the cross had been rebuilt.",
            False,
        ),
        ("Three tickets cost £66 each way.", "Tickets cost £22 each way.", False),
    ],
)
def test_numbers_between_the_same_words(answer: str, passage: str, is_found: bool) -> None:
    """A score, one of two ordinals, a bound turned round, two times exchanged; not what follows."""
    assert bool(kinds(answer, passage)) is is_found
