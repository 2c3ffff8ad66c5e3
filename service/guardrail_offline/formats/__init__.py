"""Labs in, results out: H2O's JSON, JSON lines, CSV, Parquet, Hugging Face folders."""
