"""Measurements of speed, memory and start-up (extra `bench`); never imported by serving."""
