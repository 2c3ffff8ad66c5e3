"""Checks that the answer satisfies a condition on its text."""
