"""Turns human labels into thresholds with a known error rate."""
