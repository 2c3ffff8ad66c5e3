"""What the senders say, and what a reader should see of it."""

from __future__ import annotations

from dataclasses import dataclass

PASSAGES = [
    "Guests may stay for two weeks at most. The pool opens at seven.",
    "The deposit was paid with the card 4111 1111 1111 1111.",
]
QUESTION = "How long may guests stay?"
GOOD = PASSAGES[0]
VALUE = "4111 1111 1111 1111"
LEAK = f"The deposit was paid with the card {VALUE}. The pool opens at seven."
BAD = "The hotel was built in 1834 by the Duke of Kent."
MARKED = "Vieraat saavat viipyä enintään kaksi viikkoa."
FALLBACK = "Sorry, I cannot show an answer to this question."


@dataclass(frozen=True)
class Saying:
    """An answer of a sender.

    Attributes:
        text: As it is sent.
        shown: As a reader should see it.
        hidden: What may stand in no byte and in no object that a reader is sent.
    """

    text: str
    shown: str
    hidden: tuple[str, ...] = ()


SAYINGS = {
    "good": Saying(GOOD, GOOD),
    "redacted": Saying(LEAK, LEAK.replace(VALUE, "[CREDIT_CARD_1]"), (VALUE, "1111")),
    "stopped": Saying(BAD, FALLBACK, ("1834", "Duke", "Kent", "built")),
    "marked": Saying(MARKED, MARKED),
}


def pieces(text: str, size: int = 7) -> list[str]:
    """Return a text in pieces as a model writes it."""
    return [text[at : at + size] for at in range(0, len(text), size)]
