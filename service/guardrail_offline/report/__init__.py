"""A finished run as something to look at: one HTML page, tables, plots, one archive."""
