"""Detects keys, tokens and passwords in the answer."""
