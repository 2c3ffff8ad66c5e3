"""Test generation: documents to checked test cases. Each file is imported where it is used."""
