"""Variants of questions with typing errors, swapped words, synonyms, opposites or an encoding."""
