"""Finds instructions to a model in passages, and answers that follow them."""
