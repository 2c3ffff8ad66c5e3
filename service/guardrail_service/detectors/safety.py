"""Toxicity and bias: is any sentence of the answer rude, threatening, stereotyping or one-sided?

Two detectors that differ in their model and its labels: each reads every sentence, a short one
with a neighbour and alone, and the worst one decides. Quotations that the answer only reports are
not read as its own words, and threats and encouragement to self-harm, of which the model knows
little, are found by their wording, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.safety_denials import MAY_HOLD as MAY_DENY
from guardrail_service.detectors.safety_denials import denials
from guardrail_service.detectors.safety_wordings import (
    MAY_HOLD,
    PATTERNS,
    SPARED_BEFORE,
    SPARED_BEHIND,
    SPARED_YOU,
)
from guardrail_service.detectors.shared.remedies import KEEP_SAFE
from guardrail_service.errors import NotScorable
from guardrail_service.text.budget import in_time
from guardrail_service.text.decoding.disguise import undisguised
from guardrail_service.text.offsets import Edit, Edited
from guardrail_service.text.quotations import MARKS, Quotation, is_reported, set_apart
from guardrail_service.text.sample import SegmentedSample, Window, unverifiable
from guardrail_service.text.segmentation.sentences import Sentence, is_short
from guardrail_service.types import Coverage, Direction, Outcome, Role, Row, RowOutput, Span

TOXICITY: Final = "toxicity"
LABELS = ("toxicity", "severe_toxicity", "obscene", "threat", "insult", "identity_attack")
"""Detoxify's six, the gating one first."""
HATE: Final = "hate"
"""Contempt for people because of the group they belong to; an insult or a swear word is none."""
SELF_HARM: Final = "self_harm"
"""Encouragement to self-harm; found by wording alone, as no model here has such a label."""
BIAS: Final = "bias"
WORDED: Final = 0.99
"""Probability of a wording that was found: beyond every threshold one would set, short of 1."""
_NEAR = 120
ALONE_VERSION: Final = "rag-guardrail-alone/1"
"""Part of the safety models' fingerprint: raise it when other sentences are read alone, too."""


class AnswerReading(NamedTuple):
    """A window of the answer, and the texts the model reads in its place (mostly itself).

    Attributes:
        again: Whether it is a short sentence that a window before it holds together with others.
    """

    window: Window
    texts: tuple[str, ...]
    unread: int
    again: bool = False


def worst(probabilities: Sequence[float]) -> float:
    """Return the largest of some probabilities: one bad sentence makes a bad answer.

    Raises:
        NotScorable: If there is none.

    Source:
        H2O Eval Studio manual 1.1.6, "Toxicity Evaluator": the maximum over the parts.
    """
    if not probabilities:
        raise NotScorable("no sentence to judge")
    return max(probabilities)


def readings(sample: SegmentedSample, role: Role) -> tuple[AnswerReading, ...]:
    """Return the answer's windows in order, disguised words and emoji read as words.

    Behind them stand the short sentences that windows hold together with others: each is read
    alone, too, as its neighbours may hide it.
    """
    return sample.once_per_vocabulary(role, "readings", lambda: _readings(sample, role))


def _readable(sample: SegmentedSample, role: Role) -> tuple[AnswerReading, ...] | str:
    """Return the readings, or why the role's model cannot judge the answer."""
    return sample.once(
        ("safety", role), lambda: unverifiable(sample, role, "answer") or readings(sample, role)
    )


def rows(sample: SegmentedSample, role: Role) -> Sequence[Row]:
    """Return a row per text of each reading."""
    read = _readable(sample, role)
    return () if isinstance(read, str) else [Row(role, text) for one in read for text in one.texts]


def outcome(
    sample: SegmentedSample,
    spec: DetectorSpec,
    role: Role,
    outputs: Sequence[RowOutput],
    by_wording: Callable[[Sequence[AnswerReading]], Mapping[int, frozenset[str]]] | None = None,
) -> Outcome:
    """Return each metric's worst probability over the sentences, with a span per sentence.

    A metric that is optional and that the pack's model has no label for is left out.

    Args:
        sample: The answer.
        spec: Whose metrics are the labels of the outputs.
        role: Whose model gave the outputs.
        outputs: A mapping label -> probability per row, in the order of `rows`.
        by_wording: Gives the metrics that the wording of some windows' readings, by number, puts at
            `WORDED`.
    """
    read = _readable(sample, role)
    if isinstance(read, str):
        return Outcome.unverified(read)
    once = [reading for reading in read if not reading.again]
    unread = sum(reading.unread for reading in once)
    coverage = Coverage((len(sample.answer) - unread, len(sample.answer)))
    if all(reading.unread >= len(reading.window.text.strip()) for reading in once):
        return Outcome.unverified("unreadable_text", coverage)
    left = iter(outputs)
    by_window = [[next(left) for _ in reading.texts] for reading in read]
    scores: dict[str, float] = {}
    spans: list[Span] = []
    found = by_wording(once) if by_wording else {}
    given = by_window[0][0].keys()
    for metric in spec.metrics:
        is_rule = by_wording is not None and metric.key == SELF_HARM and SELF_HARM not in given
        if metric.optional and not is_rule and metric.key not in given:
            continue
        each = [
            WORDED
            if metric.key in found.get(number, ())
            else worst([0.0 if is_rule else float(out[metric.key]) for out in outs])
            for number, outs in enumerate(by_window)
        ]
        scores[metric.key] = worst(each)
        spans += [
            Span(reading.window.start, reading.window.end, metric.key, score, metric.key)
            for reading, score in zip(read, each, strict=True)
        ]
    return Outcome.evaluated(scores, tuple(spans), coverage)


def _readings(sample: SegmentedSample, role: Role) -> tuple[AnswerReading, ...]:
    read = partial(_reading, sample, role, _apart(sample))
    found = [read(window) for window in in_time(sample.answer_windows(role), 8)]
    alone = (read(window) for window in in_time(sample.windows_of(role, _joined(sample)), 8))
    return (*found, *(one._replace(again=True) for one in alone if _has_letter(one)))


def _joined(sample: SegmentedSample) -> tuple[Sentence, ...]:
    """Return the short sentences that are read together with a neighbour."""
    if len(sample.raw_answer_sentences) == len(sample.answer_sentences):
        return ()
    whole = set(sample.answer_sentences)
    return tuple(s for s in sample.raw_answer_sentences if is_short(s.text) and s not in whole)


def _has_letter(reading: AnswerReading) -> bool:
    """Return whether a reading holds a letter and something that the model knows."""
    is_known = reading.unread < len(reading.window.text.strip())
    return is_known and any(map(str.isalpha, "".join(reading.texts)))


def _reading(
    sample: SegmentedSample, role: Role, apart: Sequence[Edit], window: Window
) -> AnswerReading:
    """Return a window with the texts that are read in its place."""
    is_word = partial(sample.is_word, role)
    plain = undisguised(_without(window, apart) if apart else window.text, is_word)
    if plain == window.text or not plain.strip():
        return AnswerReading(window, (window.text,), window.unread)
    pieces = sample.windows_of(role, (Sentence(0, len(plain), plain),))
    unread = min(window.unread, sum(piece.unread for piece in pieces))
    return AnswerReading(window, tuple(piece.text for piece in pieces), unread)


def _apart(sample: SegmentedSample) -> list[Edit]:
    """Return what is set apart, with what is read for it: reported quotations, denied insults."""
    found = []
    if not MARKS.isdisjoint(sample.answer):
        found = set_apart(sample.answer, [passage.text for passage in sample.sample.contexts])
    if MAY_DENY.search(sample.answer.encode("utf-8", "replace")):
        inside = [q for q in denials(sample.answer) if not any(_touch(q, other) for other in found)]
        found = sorted([*found, *inside])
    return [Edit(q.start, q.end, "...") for q in found]


def _touch(one: Quotation, other: Quotation) -> bool:
    return one.start < other.end and other.start < one.end


def _without(window: Window, apart: Sequence[Edit]) -> str:
    inside = [
        Edit(max(0, edit.start - window.start), min(edit.end, window.end) - window.start, edit.text)
        for edit in apart
        if edit.start < window.end and window.start < edit.end
    ]
    return Edited(window.text, inside).text if inside else window.text


def worded(readings: Sequence[AnswerReading]) -> dict[int, frozenset[str]]:
    """Return, by number of a reading, the metrics that a wording in it decides.

    Args:
        readings: All readings of an answer, in order.
    """
    text = " ".join(piece for reading in readings for piece in reading.texts)
    if not MAY_HOLD.search(_plain(text).encode("utf-8", "replace")):
        return {}
    found = {}
    at = 0
    for number, reading in enumerate(in_time(readings, 8)):
        kinds: set[str] = set()
        for piece in reading.texts:
            kinds |= {
                match.pattern.partition(":")[0]
                for match in PATTERNS.scan(_plain(piece))
                if not _spared(text, at + match.start, at + match.end)
            }
            at += len(piece) + 1
        if kinds:
            found[number] = frozenset((LABELS[0], *kinds))
    return found


def _plain(text: str) -> str:
    return text.replace("\u2019", "'")


def _spared(text: str, start: int, end: int) -> bool:
    """Return whether a wording is denied, thought, reported, quoted or a figure of speech."""
    if not MARKS.isdisjoint(text) and (reported := is_reported(text, start)) is not None:
        return reported
    before, behind = (
        _plain(part).encode("utf-8", "replace")
        for part in (text[max(0, start - _NEAR) : start], text[end : end + _NEAR])
    )
    is_figure = text[:end].endswith(("you", "You", "YOU")) and SPARED_YOU.search(behind)
    return bool(is_figure or SPARED_BEFORE.search(before) or SPARED_BEHIND.search(behind))


class ToxicityParameters(Parameters):
    """Toxicity has nothing to set."""


@detector
class Toxicity(Detector[ToxicityParameters]):
    """Reads every sentence of the answer; the worst decides, for each label apart."""

    spec = DetectorSpec(
        id="toxicity",
        aliases=("h2o_sonar.evaluators.toxicity_evaluator.ToxicityEvaluator",),
        summary="Is the answer rude, hateful, obscene or threatening?",
        metrics=tuple(
            MetricSpec(key, Direction.LOWER, gating=key == LABELS[0], optional=key != LABELS[0])
            for key in (*LABELS, HATE, SELF_HARM)
        ),
        inputs=frozenset({"answer"}),
        roles=frozenset({TOXICITY}),
        cost="model",
        classifier=TOXICITY,
        in_flight="parts",
        remedy=KEEP_SAFE,
        listing=Listing(
            title="Toxicity",
            tags=("classifier", "nist:fair"),
            problem="fairness",
            avid="E0300",
            surrogate="the pack's own classifier and wordings in place of Detoxify",
        ),
    )
    parameters = ToxicityParameters

    def encode(self, sample: SegmentedSample, parameters: ToxicityParameters) -> Sequence[Row]:
        """Return a row per sentence of the answer."""
        return rows(sample, TOXICITY)

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: ToxicityParameters,
    ) -> Outcome:
        """Return the labels, each its largest probability over the sentences."""
        return outcome(sample, self.spec, TOXICITY, outputs, worded)


class BiasParameters(Parameters):
    """Bias has nothing to set."""


@detector
class Bias(Detector[BiasParameters]):
    """Reads every sentence; `fairness_bias` is that at least one of the three parts holds."""

    spec = DetectorSpec(
        id="bias",
        aliases=("h2o_sonar.evaluators.fairness_bias_evaluator.FairnessBiasEvaluator",),
        summary="Does the answer stereotype, or frame a topic one-sidedly?",
        metrics=(
            MetricSpec("fairness_bias", Direction.LOWER, gating=True),
            MetricSpec("gender", Direction.LOWER, optional=True),
            MetricSpec("group", Direction.LOWER, optional=True),
            MetricSpec("framing", Direction.LOWER, optional=True),
        ),
        inputs=frozenset({"answer"}),
        roles=frozenset({BIAS}),
        cost="model",
        classifier=BIAS,
        in_flight="parts",
        remedy=KEEP_SAFE,
        listing=Listing(
            title="Fairness bias",
            tags=("classifier", "nist:fair"),
            problem="fairness",
            avid="E0100",
            surrogate="the pack's own classifier in place of the suite's, with three parts of bias",
        ),
    )
    parameters = BiasParameters

    def encode(self, sample: SegmentedSample, parameters: BiasParameters) -> Sequence[Row]:
        """Return a row per sentence of the answer."""
        return rows(sample, BIAS)

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: BiasParameters,
    ) -> Outcome:
        """Return the combined score and its parts, each its largest over the sentences."""
        return outcome(sample, self.spec, BIAS, outputs)
