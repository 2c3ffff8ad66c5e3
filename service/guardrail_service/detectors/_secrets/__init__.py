"""What the detector `secrets` is made of."""
