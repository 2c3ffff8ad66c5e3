"""Test labs and suites: cases, and the files they are read from."""
