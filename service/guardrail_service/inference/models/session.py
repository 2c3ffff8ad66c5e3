"""One ONNX model and its tokenizer as a function from row to outputs.

The tokenizer gives ids for the model and token offsets for windows. It never cuts and never pads.
"""

from __future__ import annotations

import json
import string
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from tokenizers import Encoding
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.models.providers import execution_providers, refuse_other
from guardrail_service.inference.pack import ModelFile, Pack
from guardrail_service.text.budget import check_time, in_time
from guardrail_service.text.sample import TokenSpan
from guardrail_service.types import Provider, Role, Row, RowOutput, RowResult

_SURROGATES = dict.fromkeys(range(55296, 57344), 65533)
"""Lone surrogates have no UTF-8 form; U+FFFD keeps every offset where it was."""


_PROBE = "a b"
_UNKNOWN = ("[UNK]", "<unk>")
"""The unknown token of WordPiece and of Unigram models; byte-level models know every text."""


KEPT_TEXTS = 2_048
KEPT_CHARS = 300
"""A check asks for a sentence's tokens up to three times: for its window, its row and its lexical
view. Sentences of 180 characters take about 2 MB; the most that these limits allow is 10 MB, and
32 MB for a tokenizer that makes four tokens of one character."""


LONG_CHARS = 4_000
"""Texts beyond this are tokenised in pieces, each as a batch of one: only then does the library let
other threads run, and 100,000 characters take it 0.2 s."""
PIECE_CHARS = 2_000
"""Code points of a piece, if there is a place to cut: a few milliseconds."""


TOKENS_AT_ONCE = 2_048
"""Tokens of a long text whose ids and offsets are copied at once: no other thread runs meanwhile,
and all of 100,000 tokens took 40 ms."""


class Encoded(NamedTuple):
    """A row as a model reads it: token ids, and 1 for each token of the second text, else 0."""

    ids: list[int]
    types: list[int]


_Read = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]
"""A text's ids without special tokens, shape (n,), and start and end of each, shape (n, 2). Arrays
in a plain tuple are small, and the garbage collector does not walk through them."""


class _Frame(NamedTuple):
    """The tokens before and after a text's own tokens in a row of one text, and their types."""

    before: list[int]
    after: list[int]
    types: tuple[list[int], int, list[int]]


class Tokenizer:
    """Thread-safe. Implements `text.windows.Windower`.

    Args:
        path: A `tokenizer.json` with truncation and padding switched off.
        max_row_tokens: Longest row the model reads, special tokens included.
    """

    def __init__(self, path: Path, max_row_tokens: int) -> None:
        self._fast = _read(path)
        if self._fast.truncation is not None or self._fast.padding is not None:
            raise PackError(f"{path}: truncates or pads; expected both switched off")
        found = (self._fast.token_to_id(token) for token in _UNKNOWN)
        self._unknown: int | None = next((token for token in found if token is not None), None)
        self._max_row_tokens = max_row_tokens
        self.max_tokens = max_row_tokens - self._fast.num_special_tokens_to_add(is_pair=False)
        self._frame = _frame(self._fast)
        self._cuts = _cut_before(self._fast)
        self._kept = lru_cache(KEPT_TEXTS)(self._encode)

    def tokens(self, text: str) -> Sequence[TokenSpan]:
        """Return each token's code points [start, end) and whether the model knows it."""
        unknown = self._unknown
        ids, offsets = self._read(text)
        found: Iterable[tuple[int, list[int]]] = zip(ids.tolist(), offsets.tolist(), strict=True)
        if len(ids) > TOKENS_AT_ONCE:
            found = in_time(found)
        return [TokenSpan(start, end, token != unknown) for token, (start, end) in found]

    def ids(self, text: str, second: str | None = None) -> list[int]:
        """Return the model's input ids for one text or a pair.

        Raises:
            RowFailed: If the row is longer than the model reads. Text is never cut here.
        """
        return self.encoded(text, second).ids

    def encoded(self, text: str, second: str | None = None) -> Encoded:
        """Return one text or a pair with special tokens, and which text each token is of.

        Raises:
            RowFailed: If the row is longer than the model reads. Text is never cut here.
        """
        if second is None and self._frame is not None:
            encoded = _framed(self.raw_ids(text), self._frame)
        else:
            found = self._fast.encode(_plain(text), None if second is None else _plain(second))
            encoded = Encoded(found.ids, found.type_ids)
        self._fits(encoded.ids)
        return encoded

    def raw_ids(self, text: str) -> list[int]:
        """Return a text's token ids without special tokens, however many there are."""
        ids: list[int] = self._read(text)[0].tolist()
        return ids

    def length(self, text: str) -> int:
        """Return how many tokens a row of one text has, special tokens included."""
        return len(self._read(text)[0]) + self._max_row_tokens - self.max_tokens

    def token_id(self, token: str) -> int | None:
        """Return the id of one token of the vocabulary."""
        found: int | None = self._fast.token_to_id(token)
        return found

    def special_tokens(self, *, is_pair: bool) -> int:
        """Return how many special tokens a row of one or two texts gets."""
        count: int = self._fast.num_special_tokens_to_add(is_pair=is_pair)
        return count

    def _read(self, text: str) -> _Read:
        if len(text) <= KEPT_CHARS:
            return self._kept(text)
        check_time()
        found = self._encode(text)
        check_time()
        return found

    def _encode(self, text: str) -> _Read:
        if len(text) <= LONG_CHARS:
            return _arrays(self._fast.encode(_plain(text), add_special_tokens=False))
        parts = []
        for start, end in _pieces(text, self._cuts):
            check_time()
            (found,) = self._fast.encode_batch([_plain(text[start:end])], add_special_tokens=False)
            found.truncate(TOKENS_AT_ONCE)  # cuts nothing off: the rest is in `overflowing`
            for part in (found, *found.overflowing):
                check_time()
                ids, offsets = _arrays(part)
                parts.append((ids, offsets + start))
        all_ids, all_offsets = zip(*parts, strict=True)
        return np.concatenate(all_ids), np.concatenate(all_offsets)

    def _fits(self, ids: list[int]) -> None:
        if len(ids) > self._max_row_tokens:
            raise RowFailed(
                f"a row has {len(ids)} tokens; the model reads at most {self._max_row_tokens}"
            )


def _cut_before(fast: FastTokenizer) -> str:
    """Return the characters in front of which a text falls into parts with tokens of their own.

    BERT's rules make a token of each sign, end one at each blank, and read nothing across either.
    Of other rules nothing is known: one may mark the first word of a text. Tokens that stand in the
    text as they are, such as `[SEP]`, must stay whole.
    """
    added = list(fast.get_added_tokens_decoder().values())
    is_bert = isinstance(fast.pre_tokenizer, BertPreTokenizer)
    if not is_bert or not isinstance(fast.normalizer, BertNormalizer):
        return ""
    if any(token.lstrip or token.rstrip or token.single_word for token in added):
        return ""
    inside = {char for token in added for char in token.content[1:]}
    return "".join(char for char in "\n " + string.punctuation if char not in inside)


def _pieces(text: str, cuts: str) -> Iterator[tuple[int, int]]:
    """Yield where to cut a text: at the last possible place within `PIECE_CHARS`, or the next."""
    start = 0
    while len(text) - start > PIECE_CHARS and cuts:
        end = max(text.rfind(char, start + 1, start + PIECE_CHARS) for char in cuts)
        if end < 0:
            behind = range(start + PIECE_CHARS, len(text))
            end = next((place for place in behind if text[place] in cuts), len(text))
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _arrays(found: Encoding) -> _Read:
    offsets = np.array(found.offsets, dtype=np.int32).reshape(-1, 2)
    return np.array(found.ids, dtype=np.int32), offsets


def _plain(text: str) -> str:
    return text if text.isascii() else text.translate(_SURROGATES)


def _framed(ids: list[int], frame: _Frame) -> Encoded:
    before, own, after = frame.types
    return Encoded([*frame.before, *ids, *frame.after], [*before, *([own] * len(ids)), *after])


def _frame(fast: FastTokenizer) -> _Frame | None:
    """Return what special tokens stand around one text; None if a probe does not tell.

    The template is the same for every text, so one text shows it.
    """
    with_special: Encoding = fast.encode(_PROBE)
    own = fast.encode(_PROBE, add_special_tokens=False).ids
    ids, types = with_special.ids, with_special.type_ids
    places = [
        place for place, special in enumerate(with_special.special_tokens_mask) if not special
    ]
    if not own or [ids[place] for place in places] != own:
        return None
    start, end = places[0], places[-1] + 1
    if end - start != len(own) or len(set(types[start:end])) != 1:
        return None
    return _Frame(ids[:start], ids[end:], (types[:start], types[start], types[end:]))


def _read(path: Path) -> FastTokenizer:
    try:
        return FastTokenizer.from_file(str(path))
    except Exception as error:
        raise PackError(f"{path}: {type(error).__name__}; expected a tokenizer.json") from error


Feeds = Mapping[str, npt.NDArray[np.int64]]
MASK = "attention_mask"
"""The input that is 1 for each token of a row, and 0 for what fills it up."""


def shared(outputs: Sequence[RowOutput], tokenize_s: float, run_s: float) -> list[RowResult]:
    """Return the results of rows that ran in one call, each with its share of the seconds."""
    count = len(outputs)
    return [RowResult(one, tokenize_s * 1e3 / count, run_s * 1e3 / count) for one in outputs]


def feeds(rows: Sequence[Encoded], file: ModelFile) -> Feeds:
    """Return the graph's inputs for rows of tokens; shape (rows, longest row).

    Raises:
        RowFailed: If a row has no token, or several rows are of different lengths and the
            manifest says that they are never run together.
    """
    if not all(row.ids for row in rows) or not rows:
        raise RowFailed("a row has no token")
    longest = filled(max(len(row.ids) for row in rows), file)
    if any(len(row.ids) != longest for row in rows) and file.padding is None:
        raise RowFailed("rows of several lengths need `padding` in the manifest")
    made: dict[str, tuple[Sequence[Sequence[int]], int]] = {
        "input_ids": ([row.ids for row in rows], _pad_id(file)),
        MASK: ([[1] * len(row.ids) for row in rows], 0),
        "token_type_ids": ([row.types for row in rows], 0),
        "position_ids": ([range(len(row.ids)) for row in rows], 0),
    }
    return {name: _filled(made[name][0], longest, file, made[name][1]) for name in file.inputs}


def filled(tokens: int, file: ModelFile) -> int:
    """Return how many tokens a row of some length is filled up to, also when it runs alone."""
    multiple = file.padding.multiple if file.padding else 1
    return min(-(-tokens // multiple) * multiple, max(tokens, file.max_tokens))


def _pad_id(file: ModelFile) -> int:
    return file.padding.id if file.padding else 0


def _filled(
    rows: Sequence[Sequence[int]], longest: int, file: ModelFile, fill: int
) -> npt.NDArray[np.int64]:
    is_left = file.padding is not None and file.padding.side == "left"
    filled = np.full((len(rows), longest), fill, dtype=np.int64)
    for line, row in zip(filled, rows, strict=True):
        line[longest - len(row) if is_left else 0 :][: len(row)] = row
    return filled


METADATA_KEY = "rag-guardrail"
"""Under which an exported graph carries what its manifest entry must say, too."""


def session_options() -> ort.SessionOptions:
    """Return the options every session runs with.

    One thread per run, because rows run side by side on a fixed pool; no spinning, because it
    starves whatever shares the machine; and one fixed optimisation level, because the level moves
    scores.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3
    return options


NOT_FUSED = ("SkipLayerNormFusion", "BiasGeluFusion")
"""Nodes that the optimiser must not put together: on a CPU what it makes of them is slower. With
`SkipLayerNormalization` the embedded encoder takes a fifth longer (models/row_graph.py)."""


def library_version() -> str:
    """Return the version of onnxruntime, whichever package brought it."""
    return str(ort.__version__)


def runtime_version(elsewhere: Mapping[Role, Provider] | None = None) -> str:
    """Return which library computes, and the options of `session_options` that move scores.

    Args:
        elsewhere: The providers of the roles that do not run on the CPU.
    """
    told = "".join(f" {role}={name}" for role, name in (elsewhere or {}).items())
    options = "extended optimisation without layer norm fusion, one thread"
    return f"onnxruntime {ort.__version__}{told}, {options}"


class Session(Protocol):
    """Runs the rows of one role."""

    @property
    def file(self) -> ModelFile:
        """Return the manifest's entry of the model."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """Return how the model counts tokens."""
        ...

    def run(self, row: Row) -> RowResult:
        """Return the outputs a row asks for, without the batch axis."""
        ...


class ModelSession:
    """One loaded model. Thread-safe: runs share weights, each on its caller's thread."""

    def __init__(self, pack: Pack, role: Role) -> None:
        self.role = role
        self.file: ModelFile = pack.model(role)
        self.tokenizer = Tokenizer(pack.path(self.file.tokenizer), self.file.max_tokens)
        self._session = open_session(str(pack.path(self.file)), self.file)
        self._one_length = self.file.one_length

    def run(self, row: Row) -> RowResult:
        """Return the outputs a row asks for, without the batch axis.

        Raises:
            RowFailed: If the row is longer than the model reads.
        """
        return self.run_many([row])[0]

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return the outputs of rows that ask for the same ones.

        From one call; where rows of several lengths would move each other, from one a length.

        Raises:
            RowFailed: If a row is longer than the model reads, or the manifest has no padding.
        """
        started = time.perf_counter()
        encoded = [self.tokenizer.encoded(row.text, row.second) for row in rows]
        tokenize_s = (time.perf_counter() - started) / len(rows)
        names = list(rows[0].outputs)
        found: dict[int, RowResult] = {}
        all_places = list(range(len(rows)))
        lengths = [len(one.ids) for one in encoded]
        for _, places in calls(lengths, self.file) if self._one_length else [(0, all_places)]:
            started = time.perf_counter()
            together = [encoded[place] for place in places]
            values = self._session.run(names, feeds(together, self.file))
            run_s = time.perf_counter() - started
            outputs = own_outputs(names, values, [len(one.ids) for one in together], self.file)
            results = shared(outputs, tokenize_s * len(places), run_s)
            found |= zip(places, results, strict=True)
        return [found[place] for place in all_places]

    def row_lengths(self, rows: Sequence[Row]) -> list[int]:
        """Return how many tokens rows without second text have when they are filled up."""
        return [filled(self.tokenizer.length(row.text), self.file) for row in rows]


def calls(lengths: Sequence[int], file: ModelFile) -> list[tuple[int, list[int]]]:
    """Return the tokens of each row and the places of the rows, by call, where those of one length
    share calls.

    No call has more tokens than the longest row that the model reads, so that what is urgent never
    waits for longer than for one row.
    """
    by_length: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        by_length.setdefault(filled(length, file), []).append(place)
    return [
        (length, places[start : start + most])
        for length, places in by_length.items()
        for most in (max(1, file.max_tokens // max(1, length)),)
        for start in range(0, len(places), most)
    ]


def run_filled_up(
    session: ort.InferenceSession,
    names: Sequence[str],
    reads: str,
    states: Sequence[npt.NDArray[Any]],
    file: ModelFile,
) -> list[tuple[RowOutput, float]]:
    """Return the outputs of a graph over states, and each row's share of the milliseconds.

    Rows are filled up with ones: a token is divided by the largest of its values.

    Args:
        session: The graph.
        names: Of its outputs.
        reads: The name of its input that takes the states.
        states: Of each row, shape (tokens, dim).
        file: The model's entry in the manifest.
    """
    found: dict[int, tuple[RowOutput, float]] = {}
    for longest, places in calls([len(one) for one in states], file):
        started = time.perf_counter()
        read = [states[place] for place in places]
        values = np.ones((len(read), longest, read[0].shape[1]), dtype=np.float32)
        mask = np.zeros((len(read), longest), dtype=np.int64)
        for line, own in enumerate(read):
            values[line, : len(own)] = own
            mask[line, : len(own)] = 1
        given = {reads: values, MASK: mask}
        outputs = session.run(names, {name: given[name] for name in file.inputs})
        share_ms = (time.perf_counter() - started) * 1e3 / len(read)
        own_parts = own_outputs(names, outputs, [len(own) for own in read], file)
        found |= zip(places, ((own, share_ms) for own in own_parts), strict=True)
    return [found[place] for place in range(len(states))]


def own_outputs(
    names: Sequence[str],
    values: Sequence[npt.NDArray[Any]],
    lengths: Sequence[int],
    file: ModelFile,
) -> list[RowOutput]:
    """Return each row's part of a call's outputs, without what filled it up.

    Copies: what is kept of one row must keep neither the others' memory nor the runtime's.

    Args:
        names: Of the outputs.
        values: The outputs, shape (rows, ...).
        lengths: Tokens of each row.
        file: The model's entry in the manifest.
    """
    is_left = file.padding is not None and file.padding.side == "left"
    longest = filled(max(lengths), file)
    shapes = {name: file.outputs[name] for name in names}
    by_token = {n for n, shape in shapes.items() if len(shape) > 1 and isinstance(shape[1], str)}
    outputs: list[RowOutput] = []
    for line, count in enumerate(lengths):
        row = {}
        for name, value in zip(names, values, strict=True):
            own = value[line]
            if name in by_token and count < longest:
                own = own[len(own) - count :] if is_left else own[:count]
            row[name] = own.copy()
        outputs.append(row)
    return outputs


def open_session(path: str, file: ModelFile) -> ort.InferenceSession:
    """Return a checked ONNX session on one thread, on the provider that the file is for.

    Raises:
        PackError: If it is no ONNX model or has other inputs or outputs than its manifest entry.
        ConfigurationError: If the provider is missing here or cannot be started.
    """
    providers = execution_providers(file.provider)
    try:
        session = ort.InferenceSession(
            path,
            session_options(),
            providers=providers,
            disabled_optimizers=NOT_FUSED if file.provider == "cpu" else None,
        )
    except Exception as error:
        raise PackError(f"{path}: {type(error).__name__}; expected an ONNX model") from error
    refuse_other(session.get_providers(), file.provider)
    inputs = {value.name for value in session.get_inputs()}
    outputs = {value.name for value in session.get_outputs()}
    if inputs != set(file.inputs) or not set(file.outputs) <= outputs:
        raise PackError(
            f"{file.path}: found inputs {sorted(inputs)} and outputs {sorted(outputs)}; "
            f"expected {sorted(file.inputs)} and {sorted(file.outputs)}"
        )
    _check_declared(session, file)
    return session


def _check_declared(session: ort.InferenceSession, file: ModelFile) -> None:
    """Raise PackError if the graph says other things about itself than its manifest entry does.

    A graph without such a note, which this project did not export, is taken at its word.
    """
    note = session.get_modelmeta().custom_metadata_map.get(METADATA_KEY)
    if note is None:
        return
    written = json.loads(note)
    for key, found in file.declared().items():
        if key in written and written[key] != found:
            raise PackError(
                f"{file.path}: manifest key {key}: found {_brief(found)}; expected "
                f"{_brief(written[key])}, which the graph was exported with. Export it again "
                "instead of editing the manifest"
            )


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


class TextModel:
    """A graph with its tokenizer. Thread-safe.

    Args:
        pack: Where the model lies.
        model: Its name in the manifest.
    """

    def __init__(self, pack: Pack, model: str) -> None:
        self.file: ModelFile = pack.manifest.models[model]
        self.tokenizer = Tokenizer(pack.path(self.file.tokenizer), self.file.max_tokens)
        self._session = open_session(str(pack.path(self.file)), self.file)

    def run(self, rows: Sequence[Encoded], output: str) -> npt.NDArray[np.float32]:
        """Return one output of the graph for rows of tokens; shape (rows, ...).

        One row runs as it is. Serving passes more only if the manifest allows it; measurements
        always do, to see whether a row moves beside others.
        """
        found: npt.NDArray[np.float32] = self._session.run([output], feeds(rows, self.file))[0]
        return found
