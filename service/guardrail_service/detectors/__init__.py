"""One file per risk; importing this package registers the built-in detectors."""
