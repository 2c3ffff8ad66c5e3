"""The commands of the serving package."""
