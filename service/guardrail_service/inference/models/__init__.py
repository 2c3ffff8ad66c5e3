"""Sessions: one ONNX model each, from rows to outputs."""
