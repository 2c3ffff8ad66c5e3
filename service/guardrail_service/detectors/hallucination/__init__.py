"""Checks that the passages support every claim of the answer."""
