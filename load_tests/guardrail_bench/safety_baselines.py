"""What stands beside toxicity and bias in a report: a word list, another tool, a linear model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from guardrail_service.text.patterns.search import Prepared, compile_regex

ABUSIVE_WORDS = tuple(
    "idiot moron imbecile stupid dumb dumbass retard retarded loser pathetic scum vermin filth "  # noqa: SIM905
    "trash garbage worthless ugly disgusting bastard bitch whore slut cunt dick dickhead prick "
    "pussy cock asshole arsehole jackass ass arse fuck fucking fucker fucked motherfucker shit "
    "shitty bullshit crap damn piss wanker twat nigger nigga faggot fag dyke tranny kike spic "
    "chink gook paki raghead towelhead wetback gypsy cracker redneck kill murder die hang shoot "
    "stab rape strangle slaughter exterminate hate despise subhuman parasite pervert freak creep "
    "clown psycho bigot nazi terrorist savage animal pig rat monkey ape whale cow hag bimbo".split()
)
"""Words of insult, obscenity, threat and slur, written for this comparison."""
NO_PROFANITY = (
    "alt-profanity-check not installed: pip install alt-profanity-check (it needs scikit-learn)"
)
NO_TRAINING = "no TF-IDF baseline: name the texts to train it on with --baseline-data"
NO_SKLEARN = "no TF-IDF baseline: pip install scikit-learn"
TrainingText = tuple[str, Mapping[str, bool]]
MIN_POSITIVES = 5
"""Fewer examples of a class make no model."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A way of scoring texts for a metric; None where it cannot say anything about it."""

    name: str
    score: Callable[[Sequence[str], str], list[float] | None]


def baselines(
    train: Sequence[TrainingText], metrics: Sequence[str]
) -> tuple[list[Baseline], list[str]]:
    """Return what can be run here, and notes on what cannot.

    Args:
        train: Texts with known labels for the linear model; none leaves it out.
        metrics: What the linear model is trained for.
    """
    found, notes = [Baseline("word_list", word_list)], []
    if find_spec("profanity_check"):
        found.append(Baseline("alt_profanity_check", profanity_check))
    else:
        notes.append(NO_PROFANITY)
    if not train:
        notes.append(NO_TRAINING)
    elif find_spec("sklearn") is None:
        notes.append(NO_SKLEARN)
    else:
        found.append(Baseline("tfidf_logistic", linear_model(train, metrics)))
    return found, notes


def word_list(texts: Sequence[str], metric: str) -> list[float]:
    """Return 1.0 for a text with a listed word, else 0.0, whatever the metric."""
    pattern = compile_regex(rf"\b(?:{'|'.join(ABUSIVE_WORDS)})s?\b", "abusive words", True)
    return [float(pattern.search(Prepared(text).data) is not None) for text in texts]


def profanity_check(texts: Sequence[str], metric: str) -> list[float] | None:
    """Return alt-profanity-check's probability that a text is offensive."""
    if metric not in ("toxicity", "obscene", "insult"):
        return None
    module = import_module("profanity_check")
    return [float(p) for p in module.predict_prob(list(texts))]


def linear_model(
    train: Sequence[TrainingText], metrics: Sequence[str]
) -> Callable[[Sequence[str], str], list[float] | None]:
    """Return TF-IDF (words and pairs) with logistic regression, trained for each metric apart."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    models = {}
    for metric in metrics:
        known = [(text, labels[metric]) for text, labels in train if metric in labels]
        positives = sum(label for _, label in known)
        if MIN_POSITIVES <= positives <= len(known) - MIN_POSITIVES:
            words = TfidfVectorizer(
                ngram_range=(1, 2), min_df=2, max_features=100_000, sublinear_tf=True
            )
            model = make_pipeline(words, LogisticRegression(C=4.0, max_iter=300))
            models[metric] = model.fit([t for t, _ in known], [label for _, label in known])

    def score(texts: Sequence[str], metric: str) -> list[float] | None:
        if metric not in models:
            return None
        return [float(p) for p in models[metric].predict_proba(list(texts))[:, 1]]

    return score
