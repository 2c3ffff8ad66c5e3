"""Acme's additions to rag-guardrail: two detectors, a model and an evaluator."""
