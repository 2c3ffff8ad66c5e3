"""Our evaluators as those of other frameworks. Each module imports its framework by itself."""
