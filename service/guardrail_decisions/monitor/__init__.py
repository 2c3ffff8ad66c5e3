"""Watches the scores and the promises of policies that serve. Pure; knows no database."""
