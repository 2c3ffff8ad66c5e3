"""A text as a chat page shows it, mapped back to where each part came from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.pii.detector import PIIParameters, findings
from guardrail_service.detectors.secrets.detector import SecretsParameters, scan
from guardrail_service.text.rendering import MARKED, page, shown

CARD = "4111 1111 1111 1111"
IBAN = "DE89 **3704** 0044 **0532** 0130 **00**"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ("a **bold** and *slanted* word", "a bold and slanted word"),
        ("snake_case_name and _slanted_", "snake_case_name and slanted"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("one * alone", "one * alone"),
        ("`a*b*c` and ``d``", "a*b*c and d"),
        ("[label](https://a.example/x) and ![alt](b.png)", "label and alt"),
        ("array[1] and [EMAIL_1]", "array[1] and [EMAIL_1]"),
        ("<b>x</b><br>y<!-- no -->z <YOUR_KEY>", "x\nyz <YOUR_KEY>"),
        ("a &lt; b &amp; c &nope; d&shy;e", "a < b & c &nope; de"),
        ("in\u00advis\u200bible", "invisible"),
        (r"4111\-1111 \*no\*", "4111-1111 *no*"),
        ("12\n34 and | 56 | 78 |", "12 34 and | 56 78 |"),
        ("one\ntwo", "one\ntwo"),
        ("call plus four nine one seven six five five five", "call +49176555"),
        ("1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 8 9"),
        ("mail ann dot lee at mail dot example", "mail ann.lee@mail.example"),
        ("look at example dot com", "look at example dot com"),
        ("write to bo at example dot com", "write to bo@example.com"),
        ("~~old~~ new", "old new"),
    ],
)
def test_a_text_is_shown_without_its_marks(text: str, expected: str) -> None:
    """Only what a page would hide is gone; code, names and sums stay as they are."""
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "type_", "span"),
    [
        ("Card 4111 **1111** 1111 1111.", "credit_card", "4111 **1111** 1111 1111"),
        ("Card **4111** 1111 1111 **1111**.", "credit_card", "**4111** 1111 1111 **1111**"),
        ("Card [4111 1111](x) 1111 1111", "credit_card", "[4111 1111](x) 1111 1111"),
        ("Card `4111` `1111` `1111` `1111`", "credit_card", "`4111` `1111` `1111` `1111`"),
        ("Card | 4111 | 1111 | 1111 | 1111 |", "credit_card", "4111 | 1111 | 1111 | 1111"),
        ("Card 4111\n1111\n1111\n1111", "credit_card", "4111\n1111\n1111\n1111"),
        ("Card 4111&nbsp;1111&#32;1111 1111", "credit_card", "4111&nbsp;1111&#32;1111 1111"),
        ("Card 41\u00ad11 1111 1111 1111", "credit_card", "41\u00ad11 1111 1111 1111"),
        (f"To {IBAN}.", "iban", IBAN),
        ("Mail ann@<b>mail</b>.example.com", "email", "ann@<b>mail</b>.example.com"),
        ("Mail ann\\_lee@mail.example.com", "email", "ann\\_lee@mail.example.com"),
        (
            "Her mobile number is zero one seven six, five five five, zero one four two",
            "phone",
            "zero one seven six, five five five, zero one four two",
        ),
        (
            "My card is " + " ".join(["four", *["one"] * 15]) + ".",
            "credit_card",
            " ".join(["four", *["one"] * 15]),
        ),
    ],
)  # fmt: skip
def test_personal_data_is_found_on_the_page(text: str, type_: str, span: str) -> None:
    """The span covers all of what the original text says, so that redaction removes it."""
    found = [(f.type, text[f.start : f.end]) for f in findings(text, PIIParameters())]
    assert found == [(type_, span)]


@pytest.mark.parametrize(
    ("before", "token", "after"),
    [
        ("use ", "ghp_**qAzWsXeDcRfV**tGbYhNuJmIkOlPqWeRtYuIo12", " now"),
        ("use ", "ghp\\_qAzWsXeDcRfVtGbYhNuJmIkOlPqWeRtYuIo12", " now"),
        ("use <code>", "ghp_qAzWsXeDcRf<wbr>VtGbYhNuJmIkOlPqWeRtYuIo12", "</code>"),
        ("use ", "ghp&#95;qAzWsXeDcRfVtGbYhNuJmIkOlPqWeRtYuIo12", "."),
    ],
)
def test_a_secret_is_found_on_the_page(before: str, token: str, after: str) -> None:
    """Emphasis, escapes, tags and entities inside a key do not hide it."""
    text = before + token + after
    found = [(f.type, text[f.start : f.end]) for f in scan(text, SecretsParameters())]
    assert found == [("github_token", token)]


@pytest.mark.parametrize(
    "text",
    [
        "| Year | Sold |\n|---|---|\n| 2019 | 4512 |\n| 2020 | 3999 |\n| 2021 | 1203 |",
        "Rooms: 101\n102\n103\n104\n201\n202\n203",
        "Steps: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
        "Look at example dot com and meet us at noon.",
        "Two of three, four of five, six of seven; eight nine ten.",
        "**Price**: 12 *euros* in `2024`, see [page 4](https://a.example/4111).",
    ],
)
def test_ordinary_answers_with_marks_show_no_personal_data(text: str) -> None:
    """Columns, lists and counts are not put together to numbers of persons."""
    assert findings(text, PIIParameters()) == []


PIECES = st.sampled_from(
    ["**", "*", "_", "`", "```", "~~", "[", "](u)", "![", "<b>", "</b>", "<br>", "&amp;", "&#49;",
     "\u200b", "\u00ad", "\\", "\n", "\n\n", " | ", "|", "1", "22", "4111 ", "a", "word ", "é",
     "\ud800",
     "one two three four five six seven ", "ann dot b at c dot de ", "- ", "."]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS, st.data())
def test_the_original_of_every_span_shows_the_found_text(text: str, data: st.DataObject) -> None:
    """A part of the page lies inside what its source, read with the same marks, shows."""
    seen = page(text)
    if seen is None or not seen.text:
        return
    start = data.draw(st.integers(0, len(seen.text) - 1))
    end = data.draw(st.integers(start + 1, len(seen.text)))
    source = seen.source(start, end)
    assert 0 <= source[0] <= source[1] <= len(text)
    inside = [a for a in range(len(seen.text)) if _within(seen.source(a, a + 1), source)]
    assert inside[0] <= start
    assert end <= inside[-1] + 1
    assert inside == list(range(inside[0], inside[-1] + 1))
    assert seen.text[start:end] in "".join(seen.text[at] for at in inside)


def _within(part: tuple[int, int], whole: tuple[int, int]) -> bool:
    return whole[0] <= part[0] and part[1] <= whole[1]


WRAPPED = st.sampled_from(
    ["{}", "**{}**", "_{}_", "`{}`", "<b>{}</b>", "[{}](https://a.example/)", "~~{}~~"]
)
BETWEEN = st.sampled_from([" ", "&nbsp;", "\u200b ", "\n", "<wbr> ", " <br>"])


@given(st.lists(WRAPPED, min_size=4, max_size=4), st.lists(BETWEEN, min_size=3, max_size=3))
def test_a_number_in_any_dress_is_found_whole(wrapped: list[str], between: list[str]) -> None:
    """The original of the finding shows the number that was found, and all of it."""
    groups = [mark.format(group) for mark, group in zip(wrapped, CARD.split(), strict=True)]
    number = "".join(group + gap for group, gap in zip(groups, [*between, ""], strict=True))
    text = f"The card is {number} of hers."
    [finding] = findings(text, PIIParameters())
    assert finding.type == "credit_card"
    assert shown(text[finding.start : finding.end]).split() == CARD.split()


@given(TEXTS)
def test_whatever_a_page_changes_is_announced(text: str) -> None:
    """The quick search says so first, or a page would never be read."""
    if page(text) is not None:
        assert MARKED.search(text.encode("utf-8", "replace"))


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    """Surrogates and control characters too."""
    shown(text)
