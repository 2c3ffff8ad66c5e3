"""Similarities of two texts, letter by letter: edit distance, Jaro and chrF. Pure, no model."""

from __future__ import annotations

from collections import Counter, deque
from functools import lru_cache

CHRF_ORDER, CHRF_BETA = 6, 2.0
"""M. Popović, "chrF: character n-gram F-score", 2015, and sacrebleu's defaults (chrF2)."""


_KEPT_RUNS = 32
"""The answers to one question are compared with the same expected one."""


def edit_distance(left: str, right: str) -> int:
    """Return the least number of letters to insert, delete or replace between two texts.

    Bit-parallel: a column of the table is one integer, so a pair costs len(right) additions.

    Source:
        V. Levenshtein, 1966; H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and
        Damerau edit distances", 2003.
    """
    if not left:
        return len(right)
    places: dict[str, int] = {}
    for index, letter in enumerate(left):
        places[letter] = places.get(letter, 0) | 1 << index
    mask, last = (1 << len(left)) - 1, 1 << (len(left) - 1)
    more, less, distance = mask, 0, len(left)
    for letter in right:
        hits = places.get(letter, 0)
        diagonal = (((hits & more) + more) ^ more) | hits | less
        up, down = less | (mask & ~(diagonal | more)), more & diagonal
        distance += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        more = (down << 1 | ~(diagonal | up)) & mask
        less = up & diagonal & mask
    return distance


def edit_similarity(left: str, right: str) -> float:
    """Return 1 - edit distance / length of the longer text, in [0, 1]; 1 for two empty texts."""
    longest = max(len(left), len(right))
    return 1 - edit_distance(left, right) / longest if longest else 1.0


def jaro_similarity(left: str, right: str) -> float:
    """Return Jaro's similarity, in [0, 1]; 1 for two empty texts.

    Source:
        M. A. Jaro, "Advances in record-linkage methodology", 1989.
    """
    if not left or not right:
        return float(left == right)
    reach = max(0, max(len(left), len(right)) // 2 - 1)
    free: dict[str, deque[int]] = {}
    for index, letter in enumerate(right):
        free.setdefault(letter, deque()).append(index)
    ours: list[str] = []
    taken: list[int] = []
    for index, letter in enumerate(left):
        open_places = free.get(letter)
        while open_places and open_places[0] < index - reach:
            open_places.popleft()
        if open_places and open_places[0] <= index + reach:
            ours.append(letter)
            taken.append(open_places.popleft())
    if not ours:
        return 0.0
    theirs = [right[place] for place in sorted(taken)]
    swapped = sum(one != other for one, other in zip(ours, theirs, strict=True)) // 2
    count = len(ours)
    return (count / len(left) + count / len(right) + (count - swapped) / count) / 3


def chrf(expected: str, actual: str) -> float:
    """Return chrF2 of a text against the expected one, in [0, 1]; blanks do not count.

    Precision and recall of runs of one to six letters, each averaged over the lengths that both
    texts have, and their F score with recall twice as important. Digits are sacrebleu's / 100.
    """
    reference, hypothesis = "".join(expected.split()), "".join(actual.split())
    precisions, recalls = [], []
    for order in range(1, CHRF_ORDER + 1):
        wanted, given = _runs(reference, order), _runs(hypothesis, order)
        if wanted and given:
            shared = (wanted & given).total()
            precisions.append(shared / given.total())
            recalls.append(shared / wanted.total())
    if not sum(precisions):
        return 0.0
    precision, recall = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    weight = CHRF_BETA**2
    return (1 + weight) * precision * recall / (weight * precision + recall)


@lru_cache(_KEPT_RUNS)
def _runs(text: str, order: int) -> Counter[str]:
    """Return how often each run stands in a text; nobody may write to it."""
    return Counter(text[at : at + order] for at in range(len(text) - order + 1))
