"""Sentences and model windows, with exact offsets."""
