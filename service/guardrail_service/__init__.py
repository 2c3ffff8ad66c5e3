"""Score RAG answers against calibrated thresholds: the server and the offline module."""

from guardrail_service import moved
from guardrail_service.resources import shipped

__version__ = shipped("VERSION", "VERSION").read_text("utf-8").strip()

moved.install()
