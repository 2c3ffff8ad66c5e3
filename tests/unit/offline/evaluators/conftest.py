"""Fills the catalogue, so that each file here also runs alone."""

import guardrail_offline.evaluators  # noqa: F401 - importing registers the evaluators
