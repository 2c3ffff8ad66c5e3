"""Versions of a store's tables, as Alembic runs them."""
