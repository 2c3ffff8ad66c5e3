"""One sample in, one verdict out."""
