"""From human labels to thresholds with a known error rate."""
