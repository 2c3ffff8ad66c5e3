"""Is every claim of the answer supported by the passages?"""
