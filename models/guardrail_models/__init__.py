"""Export, quantise, verify and carry model packs (extra `export`)."""
