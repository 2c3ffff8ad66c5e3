"""Tests from a database: questions whose right answers are true by construction."""
