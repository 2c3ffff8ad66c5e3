"""Everything that must hold; `make test` runs it all."""
