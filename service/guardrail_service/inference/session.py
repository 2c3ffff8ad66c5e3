"""One ONNX model and its tokenizer as a function from row to outputs."""

from __future__ import annotations

import time
from typing import Protocol

import numpy as np
import onnxruntime as ort

from guardrail_service.errors import PackError
from guardrail_service.inference.pack import ModelFile, Pack
from guardrail_service.inference.tokenizer import Tokenizer
from guardrail_service.types import Role, Row, RowResult


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


class Session(Protocol):
    """What runs one role's rows."""

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
        feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        values = self._session.run(list(row.outputs), feeds)
        done = time.perf_counter()
        outputs = {name: value[0] for name, value in zip(row.outputs, values, strict=True)}
        return RowResult(outputs, (tokenized - started) * 1e3, (done - tokenized) * 1e3)


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
    return session
