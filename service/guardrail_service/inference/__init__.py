"""Model packs, sessions, tokenizers and the scheduler; the only serving code that knows onnxruntime."""
