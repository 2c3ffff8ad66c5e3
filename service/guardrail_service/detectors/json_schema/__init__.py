"""Checks that the answer is JSON that satisfies a schema."""
