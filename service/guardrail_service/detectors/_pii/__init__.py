"""What the detector `pii` is made of."""
