"""Measurements of speed, memory and start-up, from a checkout; never imported by serving."""
