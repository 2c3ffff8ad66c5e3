"""Detects personal data in the answer."""
