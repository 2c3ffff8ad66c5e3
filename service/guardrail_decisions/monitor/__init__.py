"""Watches scores and promises of policies that serve. `promise` and `drift` know no database."""
