"""Guardrail files, the thresholds in them, and what a score means under them."""
