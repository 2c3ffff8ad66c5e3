"""What models computed, kept by content."""
