"""The studio: label, calibrate, look at decisions, compare policies and try them, in a browser."""
