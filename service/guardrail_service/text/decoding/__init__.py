"""Texts that another text hides, and characters that stand for others."""
