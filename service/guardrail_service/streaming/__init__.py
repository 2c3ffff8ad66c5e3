"""An answer that is still being written: what may leave already, and what must be held back."""
