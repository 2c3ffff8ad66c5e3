"""Model packs, sessions, tokenizers, scheduler: the only serving code that knows onnxruntime."""
