"""Many regular expressions in one text, in linear time."""
