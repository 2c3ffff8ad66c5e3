"""Recognises answers that abstain."""
