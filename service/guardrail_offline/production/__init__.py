"""Reads decisions of production: replays them under another policy, and reports on them."""
