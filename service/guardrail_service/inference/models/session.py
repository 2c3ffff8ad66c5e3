"""One ONNX model and its tokenizer as a function from row to outputs."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from guardrail_service.errors import PackError, RowFailed
from guardrail_service.inference.pack import ModelFile, Pack
from guardrail_service.inference.tokenizer import Encoded, Tokenizer
from guardrail_service.types import Role, Row, RowOutput, RowResult

Feeds = Mapping[str, npt.NDArray[np.int64]]


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
    longest = max((len(row.ids) for row in rows), default=0)
    if not all(row.ids for row in rows) or not rows:
        raise RowFailed("a row has no token")
    if any(len(row.ids) != longest for row in rows) and file.padding is None:
        raise RowFailed("rows of several lengths need `padding` in the manifest")
    made = {
        "input_ids": _filled([row.ids for row in rows], longest, file, _pad_id(file)),
        "attention_mask": _filled([[1] * len(row.ids) for row in rows], longest, file, 0),
        "token_type_ids": _filled([row.types for row in rows], longest, file, 0),
        "position_ids": _filled([range(len(row.ids)) for row in rows], longest, file, 0),
    }
    return {name: made[name] for name in file.inputs}


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


MASKS = 512
"""Lengths whose attention mask is kept: every one of a model that reads 512 tokens, 1 MB."""
METADATA_KEY = "rag-guardrail"
"""Under which an exported graph carries what its manifest entry must say, too."""


def session_options() -> ort.SessionOptions:
    """Return the options every session runs with.

    One thread per run, because rows run side by side on a fixed pool; no spinning, because it
    starves whatever shares the machine; no arena growth beyond what is asked for; and one fixed
    optimisation level, because the level moves scores.
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


def runtime_version() -> str:
    """Return which library computes, and the options of `session_options` that move scores."""
    return f"onnxruntime {ort.__version__}, extended optimisation, one thread"


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

    def run(self, row: Row) -> RowResult:
        """Return the outputs a row asks for, without the batch axis.

        One row per call: with dynamic INT8 the activation scale is taken over the whole call, so
        batch-mates would move each other's scores.

        Raises:
            RowFailed: If the row is longer than the model reads.
        """
        started = time.perf_counter()
        ids = np.array([self.tokenizer.ids(row.text, row.second)], dtype=np.int64)
        tokenized = time.perf_counter()
        feeds = {"input_ids": ids, "attention_mask": _unmasked(ids.shape[1])}
        values = self._session.run(list(row.outputs), feeds)
        done = time.perf_counter()
        outputs = {name: value[0] for name, value in zip(row.outputs, values, strict=True)}
        return RowResult(outputs, (tokenized - started) * 1e3, (done - tokenized) * 1e3)

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return the outputs of rows that ask for the same ones, from one call.

        Raises:
            RowFailed: If a row is longer than the model reads, or the manifest has no padding.
        """
        if len(rows) == 1:
            return [self.run(rows[0])]
        started = time.perf_counter()
        encoded = [self.tokenizer.encoded(row.text, row.second) for row in rows]
        tokenized = time.perf_counter()
        names = list(rows[0].outputs)
        values = self._session.run(names, feeds(encoded, self.file))
        done = time.perf_counter()
        outputs = [
            {
                name: self._own(name, value[place], len(one.ids))
                for name, value in zip(names, values, strict=True)
            }
            for place, one in enumerate(encoded)
        ]
        return shared(outputs, tokenized - started, done - tokenized)

    def _own(self, name: str, values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
        """Return one row's part of an output without padding.

        A copy: what is kept of one row must not keep the others' memory.
        """
        if isinstance(self.file.outputs[name][1], int):
            return values.copy()
        is_left = self.file.padding is not None and self.file.padding.side == "left"
        return values[len(values) - count :].copy() if is_left else values[:count].copy()


@lru_cache(MASKS)
def _unmasked(tokens: int) -> npt.NDArray[np.int64]:
    """Return the attention mask of one row without padding; nobody may write to it."""
    mask = np.ones((1, tokens), dtype=np.int64)
    mask.flags.writeable = False
    return mask


def open_session(path: str, file: ModelFile) -> ort.InferenceSession:
    """Return a checked ONNX session on one thread.

    Raises:
        PackError: If it is no ONNX model or has other inputs or outputs than its manifest entry.
    """
    try:
        session = ort.InferenceSession(path, session_options(), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise PackError(f"{path}: {type(error).__name__}; expected an ONNX model") from error
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
