"""What Acme adds to rag-guardrail: two detectors, a model and an evaluator."""
