"""Parts that several detectors use."""
