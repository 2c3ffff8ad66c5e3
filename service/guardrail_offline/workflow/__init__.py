"""Model risk in nine steps over a folder: from documents to weaknesses, each step a file."""
