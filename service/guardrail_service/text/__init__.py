"""Text before any model sees it: sentences with offsets, windows, language. No scoring here."""
