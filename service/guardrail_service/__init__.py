"""Score RAG answers against calibrated thresholds: the server and the offline module."""

__version__ = "0.1.0"
