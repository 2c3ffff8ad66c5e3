"""Which row runs when."""
