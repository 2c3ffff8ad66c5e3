"""Which answers a model that reads English gets: made from templates by a seeded generator."""

# Texts of several scripts are what is tested.
# ruff: noqa: E501, RUF001

from __future__ import annotations

import random

import pytest

from guardrail_service.text.language import has_words, identify, is_foreign
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Sample

ENGLISH = {"embedding": frozenset({"en"})}
NAMES = ("Brisa 500", "Home 100", "Veloce E", "Nordvind 8", "tallow.toml", "ABC-2000 Pro", "iPhone")
LINKS = ("https://example.com/a/b?id=7", "www.example.org", "help@example.com", "+81 3-1234-5678")
UNSPACED = {
    "zh": (
        "费用为{n}欧元。", "{name}的价格是{n}元,{date}起生效。", "保修期为{n}个月", "请访问{link}查看详情。",
        "{date}至{date}期间关闭", "共有{n}个房间,每晚{n}元", "订单{n}已于{date}发货。", "{n}%折扣",
        "{name}续航里程为{n}公里", "电话:{link}",
    ),
    "ja": (
        "料金は{n}円です。", "{name}の保証期間は{n}年です。", "詳細は{link}をご覧ください。", "{date}から利用できます。",
        "営業時間は{n}時から{n}時まで", "合計{n}名が参加しました", "{name}は{n}kgです", "{date}に発送済み",
        "パスワードは{n}文字以上", "在庫あり({n}個)",
    ),
    "th": (
        "ค่าจัดส่ง {n} บาท", "ค่าจัดส่งด่วนคือ{n}บาท", "{name} ราคา {n} บาท", "เปิดทำการวันที่ {date}",
        "ดูรายละเอียดที่ {link}", "รับประกัน {n} ปี", "จัดส่งแล้วเมื่อ {date}", "ห้องพัก{n}ห้อง",
        "ลดราคา {n}%", "สินค้ามี {n} ชิ้น",
    ),
    "ko": (
        "가격은 {n}원입니다.", "{name} 보증 기간은 {n}개월입니다.", "자세한 내용은 {link} 참조", "{date}부터 이용 가능",
        "수업은 {n}시에 있습니다", "총 {n}명 참가", "{date} 발송 완료", "{n}% 할인",
        "{name}는 {n}kg입니다", "재고 {n}개 있음",
    ),
}  # fmt: skip
STATUS = (
    "{name}: {c}{n} a month.", "Order {n} was shipped on {date}.", "Status: delivered.", "Status: in transit",
    "{n} {unit}", "{c}{n}, VAT included.", "Open Monday to Friday, {t} to {t}.", "Yes, {n} {unit}.",
    "Paid on {date}.", "Total: {c}{n}.{m}", "Standard: {c}{n}. Express: {c}{m}.", "In stock ({n} left).",
    "Version {m}.{m} or later.", "Error {n}: timeout.", "Room {n}, second floor.", "Gate {m} at {t}.",
    "No, only cash.", "Up to {n} {unit}.", "From {c}{n} per night.", "Ticket {n} closed.", "Free of charge.",
    "Cancelled on {date}", "{name} weighs {m}.{m} kg.", "Between {t} and {t}.", "Refund pending.", "Check-in: {t}.",
    "Adults {c}{n}, students {c}{m}.", "Delivery in {m} days.", "Sold out.", "Balance: {c}{n}", "Next bus: {t}",
    "Your parcel arrives on {date}.", "Plan: Basic. Renewal: {date}.", "{n} MB of {n} MB used",
)  # fmt: skip
UNITS = ("days", "euros", "kg", "GB", "months", "per cent", "rooms", "hours", "km", "guests")
MONTHS = ("May", "June", "July", "March", "October", "December")


def filled(template: str, draw: random.Random) -> str:
    """Return a template with values; every place gets one of its own."""
    while "{" in template:
        for mark, value in {
            "{n}": str(draw.choice((7, 25, 89, 410, 1200, 20250))),
            "{m}": str(draw.randint(1, 30)),
            "{t}": f"{draw.randint(1, 23)}:{draw.choice(('00', '15', '30'))}",
            "{c}": draw.choice(("€", "$", "£", "CHF ", "kr ")),
            "{unit}": draw.choice(UNITS),
            "{date}": draw.choice(
                ("2025-03-14", "14/03/2025", f"{draw.randint(1, 28)} {draw.choice(MONTHS)}")
            ),
            "{name}": draw.choice(NAMES),
            "{link}": draw.choice(LINKS),
        }.items():
            template = template.replace(mark, value, 1)
    return template


def readable(answer: str, question: str | None, passage: str) -> bool:
    """Return whether the English model would judge the answer."""
    sample = Sample(answer, question, (Passage(passage),) if passage else ())
    return SegmentedSample(sample, {}, ENGLISH).readable_by("embedding", "answer")


@pytest.mark.parametrize("code", UNSPACED)
def test_no_text_without_latin_words_is_judged_by_an_english_model(code: str) -> None:
    """A digit, a date or an address in it makes it no English: 250 texts for each language."""
    draw = random.Random(code)  # noqa: S311 - made-up text, not a secret
    texts = [filled(draw.choice(UNSPACED[code]), draw) for _ in range(250)]
    english = "The Brisa 500 costs 129 euros and comes with a remote control."
    assert [t for t in texts if readable(t, "What does it cost?", english)] == []
    assert [t for t in texts if readable(t, None, "")] == []


def test_short_english_answers_are_judged() -> None:
    """Prices and status lines beside an English question and passage: 1,000, at most 5 missed."""
    draw = random.Random(20)  # noqa: S311 - made-up text, not a secret
    texts = [filled(draw.choice(STATUS), draw) for _ in range(1_000)]
    question = "What does it cost and when is it open?"
    passage = (
        "Prices, opening hours and the state of an order are shown on the page of your account."
    )
    missed = [text for text in texts if not readable(text, question, passage)]
    assert len(missed) <= 5, sorted(set(missed))


@pytest.mark.parametrize(
    "answer",
    [
        "Sie können Ihr Abonnement jederzeit in den Einstellungen Ihres Kontos kündigen, ohne Angabe von Gründen.",
        "Vous pouvez résilier votre abonnement à tout moment dans les paramètres de votre compte personnel.",
        "Puede cancelar su suscripción en cualquier momento desde la página de configuración de su cuenta.",
        "Можно отменить подписку в любое время.",
        "Η συνδρομή ακυρώνεται οποτεδήποτε.",
    ],
)  # fmt: skip
def test_an_answer_in_another_language_is_not_judged_whatever_surrounds_it(answer: str) -> None:
    """A whole sentence is strong evidence against the language of the passages."""
    assert not readable(answer, "Can I cancel?", "You can cancel at any time on the settings page.")


@pytest.mark.parametrize(
    ("answer", "question", "passage"),
    [
        ("Ja, das kostet 25 Euro.", "Was kostet ein Hund pro Nacht im Hotel?", ""),
        ("Oui, c'est gratuit.", "Le parking de l'hôtel est-il gratuit ?", "The car park is free."),
    ],
)
def test_a_short_answer_is_in_the_language_of_its_question(
    answer: str, question: str, passage: str
) -> None:
    """Where question or passages are no English, nothing speaks for English."""
    found = identify(answer)
    assert found is None or not readable(answer, question, passage)


@pytest.mark.parametrize(
    "answer",
    ["...", "👍👍👍", "```\n\n```", "| | |\n|---|---|\n| | |", "€€€ ?!", "—", "![](gate.png)", "■■■■ ■■",
     "<br>", "```python\n```", "[](https://example.com)", "***", "- \n- \n", "\u200b", "🙂 !"],
)  # fmt: skip
def test_an_answer_of_signs_has_no_words(answer: str) -> None:
    """What a chat page would show of it holds no letter and no digit."""
    assert not has_words(answer)


@pytest.mark.parametrize(
    "answer",
    ["42", "yes", "`x`", "是", "[here](https://example.com)", "![a flask](f.jpg)", "<b>No</b>", "½",
     "a < b", "```\nx = 1\n```", "| 7 |\n|---|", "5 €"],
)  # fmt: skip
def test_a_letter_or_digit_that_is_shown_is_a_word(answer: str) -> None:
    """Short answers are answers."""
    assert has_words(answer)


@pytest.mark.parametrize("text", ["𝖞𝖔𝖚 𝖆𝖗𝖊 𝖘𝖙𝖚𝖕𝖎𝖉", "ｙｏｕ ａｒｅ ｓｔｕｐｉｄ", "Ⓨⓞⓤ ⓐⓡⓔ ⓢⓣⓤⓟⓘⓓ"])
def test_latin_letters_in_another_dress_are_latin(text: str) -> None:
    """Or whoever insults in Fraktur would be taken for a foreigner and shown."""
    assert not is_foreign(text)
