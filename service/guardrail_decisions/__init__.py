"""The store of decisions: what was judged, what people said of it, and proof that none is missing.

Serving loads it by entry point when `GUARDRAIL_DECISIONS_URL` is set, and never imports it.
"""
